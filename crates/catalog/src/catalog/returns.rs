//! What functions return.

/// What the C function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Returns {
    /// The library's error type (4 bytes).
    Error,
    /// Nothing.
    Void,
    /// An address.
    Ptr,
    /// 4 bytes, unsigned.
    U32,
    /// 4 bytes, signed.
    I32,
    /// Address of a NUL-terminated text.
    CStr,
    /// 8 bytes, unsigned.
    U64,
    /// 8 bytes, signed.
    I64,
    /// 8 bytes: a count or number of bytes.
    Size,
}

impl Returns {
    /// Names accepted by `returns`, with their meaning.
    pub(super) const NAMES: [(&'static str, Self); 8] = [
        ("void", Self::Void),
        ("ptr", Self::Ptr),
        ("u32", Self::U32),
        ("i32", Self::I32),
        ("cstr", Self::CStr),
        ("u64", Self::U64),
        ("i64", Self::I64),
        ("size", Self::Size),
    ];
}
