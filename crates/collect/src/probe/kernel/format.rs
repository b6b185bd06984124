//! What a tracepoint's record holds, as tracefs describes it in its `format` file. Pure.

use super::place::{Names, Placed, number_kind};
use crate::catalog::Kind;
use crate::wire::{self, KernelPlace};
use std::collections::HashSet;

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub offset: u32,
    pub bytes: u32,
    pub signed: bool,
    pub shape: Shape,
}

/// What a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Number,
    Bool,
    Address,
    /// Characters in the record itself.
    Text,
    /// Where in the record characters lie.
    TextElsewhere,
    /// An array, or something that has no size of a number.
    Other,
}

/// The fields of a tracepoint, without those that all have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Format {
    pub fields: Vec<Field>,
}

impl Format {
    /// Reads a `format` file; lines that describe no field are passed over.
    #[must_use]
    pub fn parse(text: &str) -> Format {
        let mut names = HashSet::new();
        let own = |field: &Field| !field.name.starts_with("common_") && names.insert(field.name.clone());
        Format {
            fields: text.lines().filter_map(field).filter(own).collect(),
        }
    }
}

/// Reads `field:unsigned int flags; offset:8; size:4; signed:0;`.
fn field(line: &str) -> Option<Field> {
    let line = line.trim().strip_prefix("field:")?;
    let mut parts = line.split(';').map(str::trim);
    let declared = parts.next()?;
    let (mut offset, mut bytes, mut signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", value)) => offset = value.parse().ok(),
            Some(("size", value)) => bytes = value.parse().ok(),
            Some(("signed", value)) => signed = value == "1",
            _ => {}
        }
    }
    let (declared, array) = declared
        .strip_suffix(']')
        .and_then(|declared| declared.rsplit_once('['))
        .map_or((declared, false), |(declared, _)| (declared, true));
    let name = declared.rsplit([' ', '*']).next()?;
    let kind = declared.strip_suffix(name)?.trim();
    let bytes = bytes?;
    Some(Field {
        name: name.to_owned(),
        offset: offset?,
        bytes,
        signed,
        shape: shape(kind, array, bytes),
    })
}

fn shape(kind: &str, array: bool, bytes: u32) -> Shape {
    let is_char = kind.ends_with("char") || kind.ends_with("char[]");
    match () {
        () if kind.starts_with("__data_loc") && is_char => Shape::TextElsewhere,
        () if kind.starts_with("__") && kind.contains("_loc") => Shape::Other,
        () if array && is_char => Shape::Text,
        () if array || !matches!(bytes, 1 | 2 | 4 | 8) => Shape::Other,
        () if kind.ends_with('*') => Shape::Address,
        () if kind == "bool" => Shape::Bool,
        () => Shape::Number,
    }
}

impl Names for Format {
    fn place(&self, path: &[String]) -> Result<Placed, String> {
        let [name] = path else {
            return Err("a tracepoint's fields are taken as they are; nothing is followed from there".to_owned());
        };
        let known = || {
            let names: Vec<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
            format!("no field {name}; it has {}", names.join(", "))
        };
        let field = self.fields.iter().find(|field| field.name == *name).ok_or_else(known)?;
        let bytes = u8::try_from(field.bytes).unwrap_or(8);
        let (bytes, flags, kind) = match field.shape {
            Shape::Number => (
                bytes,
                u8::from(field.signed) * wire::KERNEL_SIGNED,
                number_kind(bytes, field.signed),
            ),
            Shape::Bool => (bytes, 0, Kind::Bool),
            Shape::Address => (bytes, 0, Kind::Ptr),
            Shape::Text => (8, wire::KERNEL_ADDRESS, Kind::CStr),
            Shape::TextElsewhere => (4, wire::KERNEL_IN_RECORD, Kind::CStr),
            Shape::Other => return Err(format!("field {name} is no number, address or text")),
        };
        Ok(Placed {
            place: KernelPlace {
                base: 0,
                bytes,
                steps: 1,
                flags,
                shift: 0,
                mask: u64::MAX,
                offset: [field.offset, 0, 0, 0, 0, 0],
            },
            kind,
        })
    }

    fn all(&self) -> Vec<String> {
        let shown = self.fields.iter().filter(|field| field.shape != Shape::Other);
        shown.map(|field| field.name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IRQ: &str = "name: irq_handler_entry
ID: 91
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:int irq;	offset:8;	size:4;	signed:1;
	field:__data_loc char[] name;	offset:12;	size:4;	signed:0;
	field:char comm[16];	offset:16;	size:16;	signed:0;
	field:const void * where;	offset:32;	size:8;	signed:0;
	field:unsigned long args[6];	offset:40;	size:48;	signed:0;

print fmt: \"irq=%d name=%s\", REC->irq, __get_str(name)
";

    fn placed(name: &str) -> Placed {
        Format::parse(IRQ).place(&[name.to_owned()]).expect("a field")
    }

    #[test]
    fn what_all_records_begin_with_is_left_out() {
        assert_eq!(Format::parse(IRQ).all(), ["irq", "name", "comm", "where"]);
    }

    #[test]
    fn numbers_addresses_and_texts_are_told_apart() {
        assert_eq!(placed("irq").kind, Kind::I32);
        assert_eq!(placed("where").kind, Kind::Ptr);
        assert_eq!(
            (placed("comm").kind, placed("comm").place.flags),
            (Kind::CStr, wire::KERNEL_ADDRESS)
        );
        assert_eq!(
            (placed("name").kind, placed("name").place.flags),
            (Kind::CStr, wire::KERNEL_IN_RECORD)
        );
    }

    #[test]
    fn an_array_of_numbers_is_refused_and_an_unknown_field_names_the_known_ones() {
        let format = Format::parse(IRQ);
        assert!(format.place(&["args".to_owned()]).is_err());
        let said = format.place(&["irk".to_owned()]).unwrap_err();
        assert!(said.contains("it has irq, name"), "{said}");
    }
}
