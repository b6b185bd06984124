//! What of a name is hooked.

/// What of a name is hooked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SiteKind {
    /// A function of a file.
    Function,
    /// A static probe of a file: its words are the arguments of its note, in their order.
    StaticProbe,
    /// A function of the kernel or of one of its modules.
    KernelFunction,
    /// A tracepoint of the kernel: its words are fields of its record.
    Tracepoint,
}

impl SiteKind {
    /// Whether it lies in the kernel, and in no file.
    #[must_use]
    pub fn is_in_kernel(self) -> bool {
        matches!(self, Self::KernelFunction | Self::Tracepoint)
    }

    /// What it is called in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::StaticProbe => "static probe",
            Self::KernelFunction => "kernel function",
            Self::Tracepoint => "tracepoint",
        }
    }
}

/// Reads `GROUP:NAME`.
pub(super) fn check_tracepoint(name: &str) -> Result<(), String> {
    match name.split_once(':') {
        Some((group, name)) if !group.is_empty() && !name.is_empty() => Ok(()),
        _ => Err(format!(
            "tracepoint \"{name}\" is not of the form \"GROUP:NAME\", such as \"sched:sched_switch\""
        )),
    }
}
