//! What the objects of a class are.

/// What the objects of a class are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClassKind {
    /// The root of a program's objects.
    Client,
    Device,
    Subdevice,
    /// A time-slice group: channels that are scheduled together.
    ChannelGroup,
    /// A ring of work for one engine.
    Channel,
    /// A sub-context: what a CUDA context's channels share.
    ContextShare,
    VaSpace,
    /// Memory of the GPU.
    Vidmem,
    /// Memory of the host that the GPU reaches: the driver's own pages, or the program's, pinned.
    Sysmem,
    /// A range of addresses with no memory of its own.
    Virtual,
    /// Memory of another sort: imported, exported, fabric, registers.
    Memory,
    Event,
    /// The page that a program writes to when there is work.
    Doorbell,
    /// Compute or copy engine of a channel.
    Engine,
    Other,
}

impl ClassKind {
    /// Every kind.
    pub(crate) const ALL: [Self; 15] = [
        Self::Client,
        Self::Device,
        Self::Subdevice,
        Self::ChannelGroup,
        Self::Channel,
        Self::ContextShare,
        Self::VaSpace,
        Self::Vidmem,
        Self::Sysmem,
        Self::Virtual,
        Self::Memory,
        Self::Event,
        Self::Doorbell,
        Self::Engine,
        Self::Other,
    ];

    /// The word for it in tables and output.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Device => "device",
            Self::Subdevice => "subdevice",
            Self::ChannelGroup => "channel_group",
            Self::Channel => "channel",
            Self::ContextShare => "context_share",
            Self::VaSpace => "va_space",
            Self::Vidmem => "vidmem",
            Self::Sysmem => "sysmem",
            Self::Virtual => "virtual",
            Self::Memory => "memory",
            Self::Event => "event",
            Self::Doorbell => "doorbell",
            Self::Engine => "engine",
            Self::Other => "other",
        }
    }

    /// Whether objects of this kind take memory.
    #[must_use]
    pub fn takes_memory(self) -> bool {
        matches!(self, Self::Vidmem | Self::Sysmem | Self::Memory)
    }
}
