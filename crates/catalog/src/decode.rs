//! From the bytes of an event to a call with named, typed arguments.
//!
//! Pure and total: any bytes yield a call or `None`, never a panic. Nothing is allocated but for text.

use crate::capture::{Field, Plan, Show, direction, kind_bytes};
use crate::catalog::{Catalog, Class, CopyKind, EnumId, Kind, Returns, Row, StructField, StructTable};
use crate::text::quantity::hexadecimal;
use crate::wire::{self, CallHeader};
use std::borrow::Cow;

/// The value of an argument or of a structure's field.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    Unsigned(u64),
    Signed(i64),
    Bool(bool),
    /// Bytes, or a count that the API declares as `size_t`.
    Size(u64),
    /// A pointer or handle.
    Address(u64),
    /// An enum's value by name.
    Name(&'a str),
    Text {
        text: Cow<'a, str>,
        cut: bool,
    },
    Dim3([u32; 3]),
    Struct(Structure<'a>),
    /// Bytes without structure.
    Opaque,
    /// Could not be read: a bad pointer, or a vector register.
    Unreadable,
    /// An output of a call that failed.
    Unset,
}

/// A structure whose bytes were captured, possibly only its beginning.
#[derive(Debug, Clone)]
pub struct Structure<'a> {
    table: &'a StructTable,
    catalog: &'a Catalog,
    bytes: Cow<'a, [u8]>,
}

impl<'a> Structure<'a> {
    /// The fields whose bytes were captured, with their path.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> + '_ {
        let table = self.table;
        let kept = table.fields.iter().filter(|field| !field.union);
        kept.filter_map(move |field| Some((field.path.as_str(), self.field(field)?)))
    }

    fn field(&self, field: &'a StructField) -> Option<Value<'a>> {
        let (start, length) = (usize::from(field.offset), usize::from(field.bytes));
        let bytes = self.bytes.get(start..start + length)?;
        let mut word = [0; 8];
        let kept = length.min(8);
        word[..kept].copy_from_slice(&bytes[..kept]);
        Some(match field.kind {
            Kind::Chars(_) => Value::Text {
                text: Cow::Owned(characters(bytes)),
                cut: false,
            },
            Kind::CStr | Kind::Text => Value::Address(u64::from_le_bytes(word)),
            Kind::Bytes(_) | Kind::Struct(_) => Value::Opaque,
            Kind::Dim3 => Value::Dim3([wire::u32_at(bytes, 0), wire::u32_at(bytes, 4), wire::u32_at(bytes, 8)]),
            kind => scalar(self.catalog, kind, u64::from_le_bytes(word), length.min(8) as u8),
        })
    }
}

/// Bytes of a `char[]` that may hold an identifier instead of text, such as a UUID.
const IDENTIFIER: usize = 16;

/// What a `char[]` holds: text, ended by zero; or an identifier, in hexadecimal.
fn characters(bytes: &[u8]) -> String {
    match bytes.len() <= IDENTIFIER && !is_text(bytes) {
        true => hexadecimal(bytes),
        false => wire::text_of(bytes),
    }
}

/// Whether these are characters, with nothing but zeroes behind them.
fn is_text(bytes: &[u8]) -> bool {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    std::str::from_utf8(&bytes[..end]).is_ok_and(|text| !text.chars().any(char::is_control))
}

/// One call, as it lies in an event.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub header: CallHeader,
    pub row: &'a Row,
    pub catalog: &'a Catalog,
    plan: &'a Plan,
    bytes: &'a [u8],
}

impl<'a> Call<'a> {
    /// Reads an event. `None`: too short, or of a row that does not exist.
    pub fn decode(bytes: &'a [u8], catalog: &'a Catalog, plans: &'a [Plan]) -> Option<Call<'a>> {
        let header = CallHeader::parse(bytes)?;
        let row = catalog.rows.get(header.row as usize)?;
        let plan = plans.get(header.row as usize)?;
        Some(Call {
            header,
            row,
            catalog,
            plan,
            bytes,
        })
    }

    /// Whether the call returned and its result says that it failed.
    pub fn failed(&self) -> bool {
        self.returned() && self.catalog.is_failure(self.row, self.header.result)
    }

    /// Whether its result says that it had no effect: it failed, or its library is being unloaded.
    pub fn refused(&self) -> bool {
        self.returned() && self.catalog.is_refusal(self.row, self.header.result)
    }

    /// False for functions that are probed at entry only.
    pub fn returned(&self) -> bool {
        self.header.flags & wire::EVENT_NO_RETURN == 0
    }

    /// The name of the result, where it is an error code.
    pub fn result_name(&self) -> Option<&'a str> {
        self.catalog.error_name(self.row, self.header.result as i64)
    }

    /// Bytes that the call moves, fills or allocates.
    pub fn size(&self) -> Option<u64> {
        let spec = &self.plan.spec;
        if spec.scale == 0 || !self.has_args() {
            return None;
        }
        let factors = &spec.factor[..usize::from(spec.factors).min(wire::FACTORS)];
        let read = factors.iter().all(|factor| self.is_read(factor.word));
        let size = || {
            let factors = factors.iter();
            factors.fold(spec.scale, |bytes, factor| bytes.wrapping_mul(self.number(*factor)))
        };
        read.then(size)
    }

    /// The direction of a copy.
    pub fn direction(&self) -> Option<CopyKind> {
        let [first, second] = self.plan.spec.variant;
        if !self.is_read(first.word) || !self.is_read(second.word) {
            return None;
        }
        let part = |factor: wire::Factor| {
            if factor.word == wire::WORD_NONE {
                0
            } else {
                self.number(factor) as u32 & 15
            }
        };
        let variant = if first.word == wire::WORD_NONE {
            0
        } else {
            1 + u64::from(part(first) + (part(second) << 4))
        };
        direction(self.row, variant)
    }

    /// The id of the kernel that it launches, or why that is not known.
    pub fn kernel(&self) -> Option<u64> {
        let launches = matches!(self.plan.spec.launch.role, wire::ROLE_LAUNCH | wire::ROLE_STUB);
        let id = || self.word(wire::WORD_VALUES + 1);
        launches.then(|| if self.has_args() { id() } else { wire::KERNEL_NO_ARGS })
    }

    /// Where it was called from, if its row asks for that; see `crates/collect/src/bpf/site.h` for ids below 16.
    pub fn site(&self) -> Option<u64> {
        let asked = self.plan.spec.hook.flags & wire::HOOK_SITE != 0;
        asked.then(|| self.word(wire::WORD_SITE))
    }

    /// The stream that it gives work or is about, where its arguments say; 0: the default one of a context.
    pub fn stream(&self) -> Option<u64> {
        let (launch, work) = (&self.plan.spec.launch, &self.plan.spec.work);
        let (raw, default) = match launch.role {
            _ if !self.has_args() => return None,
            wire::ROLE_LAUNCH if launch.stream_in_block != 0 && !self.is_read(wire::WORD_STREAM) => return None,
            wire::ROLE_LAUNCH if launch.stream_in_block != 0 => (self.word(wire::WORD_STREAM), launch.null_stream),
            wire::ROLE_LAUNCH if launch.stream.word == wire::WORD_NONE => (0, launch.null_stream),
            wire::ROLE_LAUNCH => (self.number(launch.stream), launch.null_stream),
            _ if work.step == wire::WORK_NONE => self.stream_argument()?,
            _ if work.stream.bytes == 0 => return None,
            _ if work.stream.offset != wire::READ_DIRECT => return None,
            _ => {
                let per_thread = work.flags & wire::WORK_PER_THREAD != 0;
                let raw = narrow(self.word(work.stream.word), work.stream.bytes);
                (raw, default_stream(per_thread))
            }
        };
        Some(if raw == 0 { u64::from(default) } else { raw })
    }

    /// Of a call that is only seen at entry, whose work nobody tells: the argument, and what 0 stands for.
    fn stream_argument(&self) -> Option<(u64, u8)> {
        let work = self.row.work.as_ref()?;
        let place = work.stream.filter(|place| place.field.is_none())?;
        let (_, Value::Address(raw)) = self.args().nth(place.arg)? else {
            return None;
        };
        Some((raw, default_stream(work.per_thread)))
    }

    /// False of a word that lies behind a pointer, and was not read there.
    fn is_read(&self, word: u8) -> bool {
        // bits 5 to 7 also stand for texts and blocks, which such rows rarely have beside this many values
        let value = word.checked_sub(wire::WORD_VALUES).filter(|value| *value < 8);
        value.is_none_or(|value| self.header.unreadable >> value & 1 == 0)
    }

    /// False when nesting was too deep to keep the arguments.
    pub fn has_args(&self) -> bool {
        self.header.flags & wire::EVENT_NO_ARGS == 0
    }

    /// Arguments in the order of the prototype.
    pub fn args(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> + '_ {
        let fields: &'a [Field] = if self.has_args() { &self.plan.fields } else { &[] };
        fields.iter().map(move |field| (field.name.as_str(), self.value(field)))
    }

    /// The result when it is no error code: an address, a number, or nothing.
    pub fn plain_result(&self) -> Option<Value<'a>> {
        match self.row.returns {
            Returns::Ptr | Returns::CStr => Some(Value::Address(self.header.result)),
            Returns::U32 => Some(Value::Unsigned(u64::from(self.header.result as u32))),
            Returns::I32 | Returns::Error => Some(Value::Signed(i64::from(self.header.result as i32))),
            Returns::U64 => Some(Value::Unsigned(self.header.result)),
            Returns::I64 => Some(Value::Signed(self.header.result as i64)),
            Returns::Size => Some(Value::Size(self.header.result)),
            Returns::Void => None,
        }
    }

    /// Where the text of that number lies in the program; `None`: the call was given none, or its address was lost.
    pub fn text_address(&self, text: usize) -> Option<u64> {
        let text_of = |field: &Field| match field.show {
            Show::Text { pointer, text: of } if usize::from(of) == text => Some(pointer),
            _ => None,
        };
        let pointer = self.plan.fields.iter().find_map(text_of).filter(|_| self.has_args())?;
        Some(self.word(pointer)).filter(|address| *address != 0)
    }

    fn value(&self, field: &'a Field) -> Value<'a> {
        let unset = field.out && self.refused();
        match field.show {
            Show::Word { word, bytes } => self.by_word(field, word, bytes),
            _ if unset => Value::Unset,
            Show::Words { word } => self.by_words(field, word),
            Show::Pointee { pointer, value, bytes } => self.behind(field, pointer, value, bytes),
            Show::Text { pointer, text } => self.text(pointer, text),
            Show::Block { pointer } => self.block(field, pointer),
            Show::Unreadable => Value::Unreadable,
        }
    }

    fn by_word(&self, field: &Field, word: u8, bytes: u8) -> Value<'a> {
        let raw = self.word(word);
        match field.kind {
            _ if field.out => Value::Address(raw),
            Kind::Struct(_) | Kind::Dim3 | Kind::Bytes(_) | Kind::Chars(_) | Kind::CStr | Kind::Text => {
                Value::Address(raw)
            }
            kind if kind_bytes(kind).is_some_and(|size| size <= bytes) => scalar(self.catalog, kind, raw, bytes),
            _ => Value::Address(raw),
        }
    }

    fn by_words(&self, field: &Field, first: u8) -> Value<'a> {
        match field.kind {
            Kind::Dim3 => {
                let (xy, z) = (self.word(first), self.word(first.saturating_add(1)));
                Value::Dim3([xy as u32, (xy >> 32) as u32, z as u32])
            }
            Kind::Struct(id) => {
                let Some(table) = self.catalog.layout(id, None) else {
                    return Value::Opaque;
                };
                let words = usize::from(table.size).div_ceil(8).min(wire::STACK) as u8;
                let bytes: Vec<u8> = (0..words)
                    .flat_map(|word| self.word(first.saturating_add(word)).to_le_bytes())
                    .collect();
                Value::Struct(Structure {
                    table,
                    catalog: self.catalog,
                    bytes: Cow::Owned(bytes),
                })
            }
            _ => Value::Opaque,
        }
    }

    fn behind(&self, field: &Field, pointer: u8, value: u8, bytes: u8) -> Value<'a> {
        if self.word(pointer) == 0 {
            return Value::Address(0);
        }
        let word = wire::WORD_VALUES.saturating_add(value);
        if !self.is_read(word) {
            return Value::Unreadable;
        }
        scalar(self.catalog, field.kind, self.word(word), bytes)
    }

    fn text(&self, pointer: u8, text: u8) -> Value<'a> {
        if self.word(pointer) == 0 {
            return Value::Address(0);
        }
        let index = usize::from(text).min(wire::TEXTS - 1);
        if self.header.unreadable & wire::UNREADABLE_TEXT[index] != 0 {
            return Value::Unreadable;
        }
        let start = wire::MEDIUM_BYTES + wire::BLOCK * 8 + index * wire::TEXT;
        let Some(bytes) = self.bytes.get(start..start + wire::TEXT) else {
            return Value::Unreadable;
        };
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Value::Text {
            text: String::from_utf8_lossy(&bytes[..end]),
            cut: end + 1 >= wire::TEXT,
        }
    }

    fn block(&self, field: &Field, pointer: u8) -> Value<'a> {
        if self.word(pointer) == 0 {
            return Value::Address(0);
        }
        if self.header.unreadable & wire::UNREADABLE_BLOCK != 0 {
            return Value::Unreadable;
        }
        let Kind::Struct(id) = field.kind else {
            return Value::Opaque;
        };
        let Some(table) = self.catalog.layout(id, None) else {
            return Value::Opaque;
        };
        let end = wire::MEDIUM_BYTES + usize::from(self.plan.spec.block_qwords) * 8;
        let Some(bytes) = self.bytes.get(wire::MEDIUM_BYTES..end) else {
            return Value::Unreadable;
        };
        Value::Struct(Structure {
            table,
            catalog: self.catalog,
            bytes: Cow::Borrowed(bytes),
        })
    }

    fn number(&self, factor: wire::Factor) -> u64 {
        narrow(self.word(factor.word), factor.bytes)
    }

    /// A captured word: registers, stack, then values. Not captured in this size of event: 0.
    fn word(&self, index: u8) -> u64 {
        const VALUES: u8 = wire::WORD_VALUES;
        let index_in = |first: u8| usize::from(index - first) * 8;
        match index {
            0..wire::WORD_STACK => wire::u64_at(self.bytes, wire::HEADER_BYTES + index_in(0)),
            wire::WORD_STACK..VALUES if self.header.size > wire::SIZE_SMALL => {
                wire::u64_at(self.bytes, wire::SMALL_BYTES + index_in(wire::WORD_STACK))
            }
            16 | 17 => wire::u64_at(self.bytes, wire::HEADER_BYTES + wire::REGS * 8 + index_in(VALUES)),
            18..24 if self.header.size > wire::SIZE_SMALL => {
                wire::u64_at(self.bytes, wire::SMALL_BYTES + wire::STACK * 8 + index_in(VALUES) - 16)
            }
            _ => 0,
        }
    }
}

/// What 0 stands for where a stream is named.
fn default_stream(per_thread: bool) -> u8 {
    u8::from(per_thread) * wire::PER_THREAD as u8
}

fn narrow(word: u64, bytes: u8) -> u64 {
    match bytes {
        1 => word & 0xff,
        2 => word & 0xffff,
        4 => word & 0xffff_ffff,
        _ => word,
    }
}

fn scalar(catalog: &Catalog, kind: Kind, raw: u64, bytes: u8) -> Value<'_> {
    let raw = narrow(raw, kind_bytes(kind).unwrap_or(bytes));
    match kind {
        Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 => Value::Unsigned(raw),
        Kind::I8 => Value::Signed(i64::from(raw as i8)),
        Kind::I16 => Value::Signed(i64::from(raw as i16)),
        Kind::I32 => Value::Signed(i64::from(raw as i32)),
        Kind::I64 => Value::Signed(raw as i64),
        Kind::Bool => Value::Bool(raw != 0),
        Kind::Size => Value::Size(raw),
        Kind::Enum(id) => named(catalog, id, i64::from(raw as i32)),
        Kind::F32 | Kind::F64 => Value::Unreadable,
        _ => Value::Address(raw),
    }
}

fn named(catalog: &Catalog, id: EnumId, value: i64) -> Value<'_> {
    catalog.enum_name(id, value).map_or(Value::Signed(value), Value::Name)
}

/// Whether a call of this class belongs to a class name or category as written after `@`.
pub fn class_is(class: Class, wanted: &str) -> bool {
    class.name() == wanted || class.category() == wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_shown_in_hexadecimal() {
        assert_eq!(characters(b"RGBA\0\0\0\0"), "RGBA");
        assert_eq!(characters(&[0; 16]), "");
        let uuid = *b"\x4b\x24\x6a\x12\x00\x36\xfa\xd0\xfa\x33\xde\x2c\x72\x54\x06\x9d";
        assert_eq!(characters(&uuid), "4b246a120036fad0fa33de2c7254069d");
        assert_eq!(characters(b"ab\0cdefg"), "6162006364656667");
        let mut name = [0; 256];
        name[..11].copy_from_slice(b"NVIDIA H200");
        assert_eq!(characters(&name), "NVIDIA H200");
    }
}
