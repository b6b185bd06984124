//! The kernel's type information (BTF): its functions, and where fields of its structures lie. Pure.

mod prototype;

pub(crate) use prototype::Prototype;

use super::place::number_kind;
use crate::catalog::Kind;
use std::cell::OnceCell;
use std::collections::HashMap;

const MAGIC: u16 = 0xeb9f;
/// Types that lead to others without adding to them, followed at most so often.
const MOST_LINKS: usize = 32;
/// Unnamed structures inside each other.
const DEEPEST: usize = 8;

/// Types, after those of the kernel itself where they are a module's.
#[derive(Debug)]
pub struct Btf<'b> {
    base: Option<&'b Btf<'b>>,
    bytes: Vec<u8>,
    /// Where each type begins.
    starts: Vec<usize>,
    strings: std::ops::Range<usize>,
    /// The first function of each name, as an index of `starts`; made when it is first needed.
    by_name: OnceCell<HashMap<Box<str>, usize>>,
}

/// What is wrong with type information.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BtfError {
    #[error("is no BTF")]
    NoBtf,
    #[error("ends in the middle of a type")]
    CutOff,
    #[error("holds a type of unknown kind {0}")]
    UnknownKind(u32),
}

/// A type's head.
#[derive(Debug, Clone, Copy)]
struct Type {
    name: u32,
    kind: u32,
    members: usize,
    flag: bool,
    /// Bytes, or the type that it leads to.
    size_or_type: u32,
    /// Where what follows the head begins.
    rest: usize,
}

const INT: u32 = 1;
const PTR: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const FUNC: u32 = 12;
const FUNC_PROTO: u32 = 13;
const ENUM64: u32 = 19;

impl<'b> Btf<'b> {
    /// Reads `bytes`, which of a module follow those of `base`.
    ///
    /// # Errors
    /// They are no type information.
    pub fn parse(bytes: Vec<u8>, base: Option<&'b Btf<'b>>) -> Result<Btf<'b>, BtfError> {
        let word = |at| word_in(&bytes, at).ok_or(BtfError::NoBtf);
        if bytes.get(..2) != Some(&MAGIC.to_le_bytes()[..]) {
            return Err(BtfError::NoBtf);
        }
        let header = word(4)? as usize;
        let range = |offset: u32, length: u32| {
            let start = header.checked_add(offset as usize)?;
            let end = start.checked_add(length as usize)?;
            (end <= bytes.len()).then_some(start..end)
        };
        let types = range(word(8)?, word(12)?).ok_or(BtfError::NoBtf)?;
        let strings = range(word(16)?, word(20)?).ok_or(BtfError::NoBtf)?;
        let starts = starts_of(&bytes, types)?;
        Ok(Btf {
            base,
            bytes,
            starts,
            strings,
            by_name: OnceCell::new(),
        })
    }

    /// Ids below are those of the base; 0 is `void`.
    fn first(&self) -> usize {
        self.base.map_or(1, |base| base.first() + base.starts.len())
    }

    fn strings_before(&self) -> usize {
        self.base.map_or(0, |base| base.strings_before() + base.strings.len())
    }

    /// The type of that id, and whose it is.
    fn get(&self, id: u32) -> Option<(Type, &Btf<'b>)> {
        let id = id as usize;
        match (id.checked_sub(self.first()), self.base) {
            (Some(index), _) => Some((head(&self.bytes, *self.starts.get(index)?)?, self)),
            (None, Some(base)) => base.get(id as u32),
            (None, None) => None,
        }
    }

    fn string(&self, offset: u32) -> Option<&str> {
        let offset = offset as usize;
        let Some(own) = offset.checked_sub(self.strings_before()) else {
            return self.base?.string(offset as u32);
        };
        let rest = self.bytes.get(self.strings.clone())?.get(own..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    }

    /// The type that `id` leads to when names and qualifiers are taken off.
    fn bare(&self, mut id: u32) -> Option<(Type, &Btf<'b>)> {
        for _ in 0..MOST_LINKS {
            let (found, owner) = self.get(id)?;
            match found.kind {
                TYPEDEF | 9..=11 | 18 => id = found.size_or_type,
                _ => return Some((found, owner)),
            }
        }
        None
    }

    /// What is known of the arguments of function `name`; here alone, not in the base.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<Prototype<'_>> {
        let index = *self.by_name().get(name)?;
        let function = head(&self.bytes, *self.starts.get(index)?)?;
        let (proto, owner) = self.get(function.size_or_type)?;
        (proto.kind == FUNC_PROTO).then_some(())?;
        let args = (0..proto.members).map(|index| {
            let at = proto.rest + index * 8;
            let name = self.string(word_in(&owner.bytes, at)?)?.to_owned();
            Some((name, word_in(&owner.bytes, at + 4)?))
        });
        Some(Prototype {
            btf: self,
            args: args.collect::<Option<_>>()?,
        })
    }

    /// The number of function `name`; here alone, not in the base.
    #[must_use]
    pub(crate) fn function_id(&self, name: &str) -> Option<u32> {
        let index = *self.by_name().get(name)?;
        u32::try_from(self.first() + index).ok()
    }

    fn by_name(&self) -> &HashMap<Box<str>, usize> {
        self.by_name.get_or_init(|| {
            let mut known = HashMap::new();
            for (index, start) in self.starts.iter().enumerate() {
                let found = head(&self.bytes, *start).filter(|found| found.kind == FUNC);
                if let Some(name) = found.and_then(|found| self.string(found.name)) {
                    known.entry(name.into()).or_insert(index);
                }
            }
            known
        })
    }

    /// The names of all functions that are described here.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        let own = self.starts.iter().filter_map(|start| head(&self.bytes, *start));
        own.filter(|found| found.kind == FUNC)
            .filter_map(|found| self.string(found.name))
    }

    /// Where in a structure a field of that name lies, in bits, its width if it is a bit field, and its type.
    fn member(&self, (structure, owner): (Type, &Btf<'b>), name: &str, depth: usize) -> Option<(u32, u32, u32)> {
        (matches!(structure.kind, STRUCT | UNION) && depth < DEEPEST).then_some(())?;
        for index in 0..structure.members {
            let at = structure.rest + index * 12;
            let word = |offset| word_in(&owner.bytes, at + offset);
            let (known, kind, place) = (self.string(word(0)?)?, word(4)?, word(8)?);
            let (bits, width) = match structure.flag {
                true => (place & 0xff_ffff, place >> 24),
                false => (place, 0),
            };
            if known == name {
                return Some((bits, width, kind));
            }
            if known.is_empty()
                && let Some(inner) = self.bare(kind)
                && let Some((inner, width, kind)) = self.member(inner, name, depth + 1)
            {
                return Some((bits.checked_add(inner)?, width, kind));
            }
        }
        None
    }

    /// Bytes and kind of a value; `None`: it is no number, address or text.
    fn value(&self, id: u32) -> Option<Value> {
        let (found, owner) = self.bare(id)?;
        let bytes = u8::try_from(found.size_or_type)
            .ok()
            .filter(|bytes| matches!(bytes, 1 | 2 | 4 | 8));
        match found.kind {
            INT => {
                let encoding = word_in(&owner.bytes, found.rest)? >> 24;
                let kind = if encoding & 4 != 0 {
                    Kind::Bool
                } else {
                    number_kind(bytes?, encoding & 1 != 0)
                };
                Some(Value {
                    bytes: bytes?,
                    kind,
                    signed: encoding & 1 != 0,
                    is_array: false,
                })
            }
            ENUM | ENUM64 => Some(Value {
                bytes: bytes?,
                kind: number_kind(bytes?, found.flag),
                signed: found.flag,
                is_array: false,
            }),
            PTR => {
                let kind = if self.is_character(found.size_or_type, &["char"]) {
                    Kind::CStr
                } else {
                    Kind::Ptr
                };
                Some(Value {
                    bytes: 8,
                    kind,
                    signed: false,
                    is_array: false,
                })
            }
            ARRAY if self.is_character(word_in(&owner.bytes, found.rest)?, &["char", "unsigned char"]) => Some(Value {
                bytes: 8,
                kind: Kind::CStr,
                signed: false,
                is_array: true,
            }),
            _ => None,
        }
    }

    fn is_character(&self, id: u32, names: &[&str]) -> bool {
        let named = |found: Type| self.string(found.name).is_some_and(|name| names.contains(&name));
        self.bare(id)
            .is_some_and(|(found, _)| found.kind == INT && named(found))
    }
}

struct Value {
    bytes: u8,
    kind: Kind,
    signed: bool,
    is_array: bool,
}

fn word_in(bytes: &[u8], at: usize) -> Option<u32> {
    let end = at.checked_add(4)?;
    Some(u32::from_le_bytes(bytes.get(at..end)?.try_into().ok()?))
}

fn head(bytes: &[u8], at: usize) -> Option<Type> {
    let info = word_in(bytes, at + 4)?;
    Some(Type {
        name: word_in(bytes, at)?,
        kind: info >> 24 & 0x1f,
        members: (info & 0xffff) as usize,
        flag: info >> 31 != 0,
        size_or_type: word_in(bytes, at + 8)?,
        rest: at + 12,
    })
}

fn starts_of(bytes: &[u8], types: std::ops::Range<usize>) -> Result<Vec<usize>, BtfError> {
    let mut starts = Vec::new();
    let mut at = types.start;
    while at < types.end {
        let found = head(bytes, at).ok_or(BtfError::CutOff)?;
        starts.push(at);
        at = found.rest + rest_bytes(&found)?;
    }
    if at != types.end {
        return Err(BtfError::CutOff);
    }
    Ok(starts)
}

/// Bytes behind a type's head.
fn rest_bytes(found: &Type) -> Result<usize, BtfError> {
    Ok(match found.kind {
        INT | 14 | 17 => 4,
        PTR | 7..=12 | 16 | 18 => 0,
        ARRAY => 12,
        STRUCT | UNION | 15 | ENUM64 => found.members * 12,
        ENUM | FUNC_PROTO => found.members * 8,
        kind => return Err(BtfError::UnknownKind(kind)),
    })
}
