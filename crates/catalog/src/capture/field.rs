//! Where decode finds the arguments of a call, and what is copied for them.

use super::Planner;
use crate::catalog::{Arg, Kind, Loc, Pass, StructId};
use crate::wire;

/// Where decode finds one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// The value itself, `bytes` of word `word`.
    Word { word: u8, bytes: u8 },
    /// A structure or dim3 by value, from word `word` on.
    Words { word: u8 },
    /// What pointer `pointer` pointed to: value `value`.
    Pointee { pointer: u8, value: u8, bytes: u8 },
    /// The C string at pointer `pointer`.
    Text { pointer: u8, text: u8 },
    /// The structure at pointer `pointer`, copied from its start.
    Block { pointer: u8 },
    /// In a vector register, or beyond what is captured.
    Unreadable,
}

/// One argument of a row, ready to be read from an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub kind: Kind,
    pub show: Show,
    /// Meaningless when the call failed.
    pub out: bool,
}

pub(super) fn raw_fields() -> Vec<Field> {
    (0..wire::REGS as u8)
        .map(|word| Field {
            name: format!("arg{word}"),
            kind: Kind::Ptr,
            show: Show::Word { word, bytes: 8 },
            out: false,
        })
        .collect()
}

impl Planner<'_> {
    pub(super) fn field(&mut self, arg: &Arg) -> Field {
        let show = self.show(arg).unwrap_or(Show::Unreadable);
        let address_only = arg.pass != Pass::Value && matches!(show, Show::Word { .. });
        Field {
            name: arg.name.clone(),
            kind: if address_only { Kind::Ptr } else { arg.kind },
            show,
            out: arg.is_out(),
        }
    }

    fn show(&mut self, arg: &Arg) -> Option<Show> {
        let (word, bytes) = self.word(arg.loc)?;
        if arg.pass == Pass::Value {
            return Some(match arg.kind {
                Kind::CStr => self.text(word).unwrap_or(Show::Word { word, bytes }),
                Kind::Text if self.used.returns => self.text(word).unwrap_or(Show::Word { word, bytes }),
                Kind::Dim3 | Kind::Struct(_) | Kind::Bytes(_) | Kind::Chars(_) => Show::Words { word },
                _ => Show::Word { word, bytes },
            });
        }
        Some(self.pointee(arg, word).unwrap_or(Show::Word { word, bytes: 8 }))
    }

    /// What to read behind a pointer; `None`: only the address is shown.
    fn pointee(&mut self, arg: &Arg, word: u8) -> Option<Show> {
        if arg.is_out() && !self.used.returns {
            return None;
        }
        match arg.kind {
            Kind::Struct(id) => self.block(word, id),
            Kind::Text => self.text(word),
            Kind::CStr | Kind::Bytes(_) | Kind::Chars(_) | Kind::Dim3 | Kind::F64 => None,
            // an input pointer to a scalar is most often an array: its first element says little
            _ if !arg.is_out() => None,
            kind => {
                let bytes = kind_bytes(kind)?;
                let value = self.value(word, 0, bytes)?;
                Some(Show::Pointee {
                    pointer: word,
                    value,
                    bytes,
                })
            }
        }
    }

    fn block(&mut self, word: u8, id: StructId) -> Option<Show> {
        if self.spec.block_qwords != 0 {
            return None;
        }
        let size = usize::from(self.catalog.layout(id, None)?.size);
        let qwords = size.div_ceil(8).min(wire::BLOCK);
        // a last partial word might lie on the next page: keep to whole ones, at least one
        let whole = if size % 8 == 0 || size > wire::BLOCK * 8 {
            qwords
        } else {
            (size / 8).max(1)
        };
        if size < 8 {
            return None;
        }
        self.spec.block_word = word;
        self.spec.block_qwords = whole.min(wire::BLOCK) as u8;
        Some(Show::Block { pointer: word })
    }

    fn text(&mut self, word: u8) -> Option<Show> {
        let text = self.spec.texts;
        *self.spec.text_word.get_mut(usize::from(text))? = word;
        self.spec.texts += 1;
        Some(Show::Text { pointer: word, text })
    }

    /// The index of the value read at `offset` behind `word`, shared with an equal earlier read.
    pub(super) fn value(&mut self, word: u8, offset: u16, bytes: u8) -> Option<u8> {
        let read = wire::Read { word, bytes, offset };
        let used = usize::from(self.spec.values);
        if self.spec.hook.flags & wire::HOOK_SITE != 0 && used + 1 >= wire::VALUES {
            return None; // the last is the stack's
        }
        if let Some(index) = self.spec.value[..used].iter().position(|known| *known == read) {
            return Some(index as u8);
        }
        *self.spec.value.get_mut(used)? = read;
        self.spec.values += 1;
        Some(used as u8)
    }

    /// The first captured word of an argument and the bytes of it that are defined.
    pub(super) fn word(&mut self, loc: Loc) -> Option<(u8, u8)> {
        match loc {
            Loc::Reg { index, bytes } => Some((index, bytes)),
            Loc::Regs { first, .. } => {
                let past = (first + 2).saturating_sub(wire::REGS as u8);
                self.spec.stack_words = self.spec.stack_words.max(past);
                Some((first, 8))
            }
            Loc::Float { .. } => None,
            Loc::Stack { offset, bytes } => {
                let first = usize::from(offset / 8).checked_sub(1)?;
                let last = first + usize::from(bytes).div_ceil(8);
                if last > wire::STACK {
                    return None;
                }
                self.spec.stack_words = self.spec.stack_words.max(last as u8);
                Some((wire::WORD_STACK + first as u8, bytes.min(8) as u8))
            }
        }
    }
}

/// Bytes of a scalar kind; `None` for what is no scalar.
pub(crate) fn kind_bytes(kind: Kind) -> Option<u8> {
    match kind {
        Kind::U8 | Kind::I8 | Kind::Bool => Some(1),
        Kind::U16 | Kind::I16 => Some(2),
        Kind::U32 | Kind::I32 | Kind::Enum(_) | Kind::F32 => Some(4),
        Kind::U64 | Kind::I64 | Kind::Size | Kind::DevPtr | Kind::Ptr | Kind::Handle | Kind::Fn | Kind::F64 => Some(8),
        Kind::CStr | Kind::Text => Some(8),
        Kind::Dim3 | Kind::Struct(_) | Kind::Bytes(_) | Kind::Chars(_) => None,
    }
}
