//! What calls are to a device.

/// A wait that was shorter was none.
pub(crate) const PROMPT_NS: u64 = 20_000;

/// What a call is to a device, of calls that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Part {
    Launch,
    /// A wait that was asked for.
    Sync,
    /// A wait for a value of a few bytes: of the copy itself, or right behind it.
    Item,
    /// A few bytes to the host, of which only what follows tells whether they are waited for.
    SmallCopy,
    Copy,
    Alloc,
    Free,
    /// Loads or makes code, or graphs.
    Code,
    #[default]
    Other,
}

impl Part {
    /// Whether nobody waits for the device in it, nor for memory or code.
    pub(super) fn is_elsewhere(self) -> bool {
        matches!(self, Part::Launch | Part::Other)
    }
}
