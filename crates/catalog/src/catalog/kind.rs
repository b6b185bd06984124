//! What a value is, and its name in tables: `size`, `enum:cudaMemcpyKind`.

use super::Catalog;
use super::id::{EnumId, StructId};

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Unsigned, 1 byte.
    U8,
    /// Unsigned, 2 bytes.
    U16,
    /// Unsigned, 4 bytes.
    U32,
    /// Unsigned, 8 bytes.
    U64,
    /// Signed, 1 byte.
    I8,
    /// Signed, 2 bytes.
    I16,
    /// Signed, 4 bytes.
    I32,
    /// Signed, 8 bytes.
    I64,
    /// 1 byte, 0 or 1.
    Bool,
    /// `size_t`: a count or number of bytes.
    Size,
    /// Device address.
    DevPtr,
    /// Address that is shown and never followed.
    Ptr,
    /// Opaque handle (8 bytes).
    Handle,
    /// Address of a NUL-terminated text.
    CStr,
    /// Address of a character buffer that the callee fills.
    Text,
    /// Address of a function.
    Fn,
    /// `float`.
    F32,
    /// `double`.
    F64,
    /// Three `unsigned` (12 bytes): x, y, z.
    Dim3,
    /// 4 bytes with names.
    Enum(EnumId),
    /// A struct of known layout.
    Struct(StructId),
    /// That many bytes without structure.
    Bytes(u16),
    /// That many bytes of NUL-padded text.
    Chars(u16),
}

pub(super) const PLAIN: [(&str, Kind); 19] = [
    ("u8", Kind::U8),
    ("u16", Kind::U16),
    ("u32", Kind::U32),
    ("u64", Kind::U64),
    ("i8", Kind::I8),
    ("i16", Kind::I16),
    ("i32", Kind::I32),
    ("i64", Kind::I64),
    ("bool", Kind::Bool),
    ("size", Kind::Size),
    ("devptr", Kind::DevPtr),
    ("ptr", Kind::Ptr),
    ("handle", Kind::Handle),
    ("cstr", Kind::CStr),
    ("text", Kind::Text),
    ("fn", Kind::Fn),
    ("f32", Kind::F32),
    ("f64", Kind::F64),
    ("dim3", Kind::Dim3),
];

impl Kind {
    /// Size in bytes; `None` when the struct is not in `catalog`.
    #[must_use]
    pub fn bytes(self, catalog: &Catalog) -> Option<u16> {
        Some(match self {
            Kind::U8 | Kind::I8 | Kind::Bool => 1,
            Kind::U16 | Kind::I16 => 2,
            Kind::U32 | Kind::I32 | Kind::F32 | Kind::Enum(_) => 4,
            Kind::Dim3 => 12,
            Kind::Struct(id) => catalog.structs.get(usize::from(id.0))?.size,
            Kind::Bytes(bytes) | Kind::Chars(bytes) => bytes,
            _ => 8,
        })
    }

    /// Reads one kind without `*` or marks.
    ///
    /// # Errors
    /// Says what was expected.
    pub(crate) fn parse(text: &str, catalog: &Catalog) -> Result<Self, String> {
        if let Some((_, kind)) = PLAIN.iter().find(|(name, _)| *name == text) {
            return Ok(*kind);
        }
        let unknown = || {
            let names = PLAIN.iter().map(|(name, _)| *name);
            super::hint::unknown(
                "kind",
                text,
                names.chain(["enum:NAME", "struct:NAME", "bytes:N", "chars:N"]),
            )
        };
        let (head, rest) = text.split_once(':').ok_or_else(unknown)?;
        let length = || match rest.parse::<u16>() {
            Ok(bytes @ 1..=4096) => Ok(bytes),
            _ => Err(format!("`{text}` needs a length of 1 to 4096 bytes")),
        };
        let missing = |what: &str, names: &[&str]| super::hint::undefined(what, rest, names.iter().copied());
        match head {
            "enum" => catalog.enum_names.get(rest).map(|id| Kind::Enum(*id)).ok_or_else(|| {
                missing(
                    "enum",
                    &catalog.enums.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(),
                )
            }),
            "struct" => catalog
                .struct_names
                .get(rest)
                .map(|id| Kind::Struct(*id))
                .ok_or_else(|| {
                    let names: Vec<_> = catalog.structs.iter().map(|s| s.name.as_str()).collect();
                    missing("struct", &names)
                }),
            "bytes" => length().map(Kind::Bytes),
            "chars" => length().map(Kind::Chars),
            _ => Err(unknown()),
        }
    }

    /// The text that [`Kind::parse`] reads back.
    #[must_use]
    pub fn text(self, catalog: &Catalog) -> String {
        let name = |table: Option<&String>| table.map_or("?", String::as_str).to_owned();
        match self {
            Kind::Enum(id) => {
                format!("enum:{}", name(catalog.enums.get(usize::from(id.0)).map(|e| &e.name)))
            }
            Kind::Struct(id) => {
                format!(
                    "struct:{}",
                    name(catalog.structs.get(usize::from(id.0)).map(|s| &s.name))
                )
            }
            Kind::Bytes(bytes) => format!("bytes:{bytes}"),
            Kind::Chars(bytes) => format!("chars:{bytes}"),
            plain => PLAIN
                .iter()
                .find(|(_, kind)| *kind == plain)
                .map_or_else(|| "?".to_owned(), |(name, _)| (*name).to_owned()),
        }
    }
}
