//! What a field of a call's argument says, and how it is shown.

use std::fmt;

use super::branch::Branch;
use super::layout::FieldKind;
use super::tables;

/// A field's value with its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Of an object of the resource manager; shown in hexadecimal.
    Handle(u32),
    /// With its name, when the tables have it.
    Class(u32, Option<&'static str>),
    /// With its name, when the tables have it.
    Command(u32, Option<&'static str>),
    Bytes(u64),
    /// Shown in hexadecimal.
    Address(u64),
    /// Shown in hexadecimal.
    Flags(u64),
    Number(u64),
    /// −1: none.
    Descriptor(i32),
    /// Of a processor, as NVIDIA writes it: `GPU-…`.
    Uuid([u8; 16]),
    /// What stands before the first zero byte; not to be trusted.
    Text(String),
    /// A number of `NV2080_ENGINE_TYPE`.
    Engine(u32),
}

impl Value {
    /// The value of a field's bytes, little-endian.
    pub(super) fn of(kind: FieldKind, bytes: &[u8], branch: Branch) -> Self {
        let number = number(bytes);
        let low = (number & u64::from(u32::MAX)) as u32;
        match kind {
            FieldKind::Handle => Self::Handle(low),
            FieldKind::Class => Self::Class(low, tables::class(low).map(|class| class.name)),
            FieldKind::Command => Self::Command(low, tables::control(low, branch).map(|control| control.name)),
            FieldKind::Bytes => Self::Bytes(number),
            FieldKind::Limit => Self::Bytes(number.saturating_add(1)),
            FieldKind::Address => Self::Address(number),
            FieldKind::Flags => Self::Flags(number),
            FieldKind::Number => Self::Number(number),
            FieldKind::Descriptor => Self::Descriptor(low.cast_signed()),
            FieldKind::Uuid => Self::Uuid(uuid(bytes)),
            FieldKind::Text => Self::Text(text(bytes)),
            FieldKind::Engine => Self::Engine(low),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class(_, Some(name)) | Self::Command(_, Some(name)) => f.write_str(name),
            Self::Handle(n) | Self::Class(n, None) | Self::Command(n, None) => write!(f, "{n:#x}"),
            Self::Address(n) | Self::Flags(n) => write!(f, "{n:#x}"),
            Self::Bytes(n) | Self::Number(n) => write!(f, "{n}"),
            Self::Descriptor(n) => write!(f, "{n}"),
            Self::Uuid(bytes) => write_uuid(f, bytes),
            Self::Text(text) => write!(f, "{}", text.escape_default()),
            Self::Engine(n) => write_engine(f, *n),
        }
    }
}

/// The low eight bytes, little-endian.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .take(8)
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn uuid(bytes: &[u8]) -> [u8; 16] {
    let mut uuid = [0; 16];
    for (to, from) in uuid.iter_mut().zip(bytes) {
        *to = *from;
    }
    uuid
}

pub(super) fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

fn write_uuid(f: &mut fmt::Formatter<'_>, bytes: &[u8; 16]) -> fmt::Result {
    f.write_str("GPU-")?;
    for (at, byte) in bytes.iter().enumerate() {
        let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
        write!(f, "{dash}{byte:02x}")?;
    }
    Ok(())
}

/// Graphics engines are 1 to 8, copy engines 9 to 18, of `NV2080_ENGINE_TYPE`; the others by number.
fn write_engine(f: &mut fmt::Formatter<'_>, engine: u32) -> fmt::Result {
    match engine {
        1..=8 => write!(f, "GR{}", engine - 1),
        9..=18 => write!(f, "COPY{}", engine - 9),
        _ => write!(f, "{engine:#x}"),
    }
}

/// What the resource manager or UVM answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NvStatus {
    pub code: u32,
    /// In NVIDIA's headers: `NV_OK`, `NV_ERR_NO_MEMORY`, `NV_WARN_…`; `None` when they do not have the code.
    pub name: Option<&'static str>,
}

impl NvStatus {
    /// The answer of that code from a driver of that branch.
    #[must_use]
    pub fn of(code: u32, branch: Branch) -> Self {
        Self {
            code,
            name: tables::status(code, branch),
        }
    }

    /// Whether the call failed: neither `NV_OK` nor a warning (0x1000x).
    #[must_use]
    pub fn failed(self) -> bool {
        self.code != 0 && !(0x1_0000..0x2_0000).contains(&self.code)
    }
}

impl fmt::Display for NvStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.code),
        }
    }
}
