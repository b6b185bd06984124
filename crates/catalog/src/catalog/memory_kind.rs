//! Kinds of memory, as copies know them.

/// Memory as a copy sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    Device,
    /// Moves between host and device.
    Managed,
    /// Host memory that the device reads and writes directly.
    Pinned,
}

/// Host memory at one end of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostMemory {
    /// The device reads and writes it directly.
    Pinned,
    /// Goes through a buffer of the driver.
    Pageable,
    /// Moves between host and device.
    Managed,
    /// The process ran before it was watched: it may have pinned it then.
    Unknown,
}

impl HostMemory {
    /// That of this word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<HostMemory> {
        use HostMemory::{Managed, Pageable, Pinned, Unknown};
        [Pinned, Pageable, Managed, Unknown]
            .into_iter()
            .find(|host| host.name() == name)
    }

    /// The word in outputs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            HostMemory::Pinned => "pinned",
            HostMemory::Pageable => "pageable",
            HostMemory::Managed => "managed",
            HostMemory::Unknown => "unknown",
        }
    }
}
