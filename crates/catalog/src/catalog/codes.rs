//! Enum tables, which also hold error codes, and struct layouts.

use super::kind::Kind;
use super::pattern::Majors;

/// The named values of an enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumTable {
    /// Its C name.
    pub name: String,
    values: Vec<(i64, String)>,
}

impl EnumTable {
    /// A table of values in any order; of two names for a value the first stays.
    #[must_use]
    pub(crate) fn new(name: String, mut values: Vec<(i64, String)>) -> Self {
        values.sort_by_key(|(value, _)| *value);
        values.dedup_by_key(|(value, _)| *value);
        Self { name, values }
    }

    /// `(value, name)` by ascending value.
    #[must_use]
    pub fn values(&self) -> &[(i64, String)] {
        &self.values
    }

    /// The name of a value, also where it was read as 32 bits of another sign.
    #[must_use]
    pub fn name_of(&self, value: i64) -> Option<&str> {
        let exact = |value: i64| {
            let at = self.values.binary_search_by_key(&value, |(value, _)| *value).ok()?;
            self.values.get(at).map(|(_, name)| name.as_str())
        };
        let other_sign = if value < 0 {
            value.checked_add(1 << 32)
        } else {
            value.checked_sub(1 << 32)
        };
        exact(value).or_else(|| other_sign.and_then(exact))
    }
}

/// One field of a struct, addressed by its full path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructField {
    /// `extent.width`; elements of short arrays are `maxGridSize.0` and so on.
    pub path: String,
    /// What it holds.
    pub kind: Kind,
    /// Bytes from the struct's start.
    pub offset: u16,
    /// Size in bytes.
    pub bytes: u16,
    /// Shares its place with other fields, so it may mean nothing.
    pub union: bool,
}

/// One layout of a struct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructTable {
    /// Its C name.
    pub name: String,
    /// `sizeof`, in bytes.
    pub size: u16,
    /// Sonames that use this layout.
    pub majors: Majors,
    /// Fields in order, nested ones flattened; padding is left out.
    pub fields: Vec<StructField>,
}

impl StructTable {
    /// The field at a path.
    #[must_use]
    pub(crate) fn field(&self, path: &str) -> Option<&StructField> {
        self.fields.iter().find(|field| field.path == path)
    }
}
