//! By what copies and waits of devices are told apart.

use crate::catalog::{CopyKind, HostMemory};

/// Copies that are shown as one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CopyClass {
    pub direction: Option<CopyKind>,
    pub host: Option<HostMemory>,
    /// The call waits for it.
    pub blocking: bool,
}

/// Why a program waits that does not seem to ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HiddenKind {
    /// A small copy to the host, and a wait for it on the same thread: `.item()`.
    Item,
    /// A copy without a stream.
    BlockingCopy,
    /// A copy that is called asynchronous, of pageable memory.
    PageableAsync,
    /// Giving back memory waits for the device.
    Free,
    /// Taking memory can do so, too.
    Alloc,
}

impl HiddenKind {
    /// All of them.
    pub(crate) const ALL: [HiddenKind; 5] = [
        HiddenKind::Item,
        HiddenKind::BlockingCopy,
        HiddenKind::PageableAsync,
        HiddenKind::Free,
        HiddenKind::Alloc,
    ];

    /// The kind of that word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<HiddenKind> {
        HiddenKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The word in outputs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            HiddenKind::Item => "item",
            HiddenKind::BlockingCopy => "blocking_copy",
            HiddenKind::PageableAsync => "pageable_async",
            HiddenKind::Free => "free",
            HiddenKind::Alloc => "alloc",
        }
    }
}
