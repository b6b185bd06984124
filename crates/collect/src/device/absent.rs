//! Why there is no NVML, in one line for reports.

use nvml_wrapper::error::NvmlError;
use std::fmt;

const INSTALL: &str = "install the NVIDIA driver; in a container, NVIDIA_DRIVER_CAPABILITIES=utility";
const LOAD: &str = "sudo modprobe nvidia";
const REBOOT: &str = "reboot: the library is newer or older than the loaded kernel module";
const PERMIT: &str = "run with sudo, or let this user open /dev/nvidiactl and /dev/nvidia*";
const SHOW: &str = "nvidia-smi shows whether the driver works";

/// NVML cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    why: String,
    hint: &'static str,
}

impl fmt::Display for Absent {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "NVML: {}; hint: {}", self.why, self.hint)
    }
}

impl std::error::Error for Absent {}

impl Absent {
    pub(super) fn new(library: &str, error: &NvmlError) -> Absent {
        let (why, hint) = match error {
            NvmlError::LibloadingError(error) => (format!("{library} cannot be loaded: {}", cause(error)), INSTALL),
            NvmlError::FailedToLoadSymbol(_) => (format!("{library} is no NVML: {error}"), SHOW),
            NvmlError::DriverNotLoaded => ("the NVIDIA driver is not loaded".to_owned(), LOAD),
            NvmlError::LibRmVersionMismatch => (error.to_string(), REBOOT),
            NvmlError::NoPermission => (error.to_string(), PERMIT),
            other => (other.to_string(), SHOW),
        };
        let why = why.replace('\n', " ");
        Absent { why, hint }
    }

    /// What is wrong.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// What mends it.
    pub fn hint(&self) -> &'static str {
        self.hint
    }

    pub(super) fn is_missing_library(error: &NvmlError) -> bool {
        matches!(error, NvmlError::LibloadingError(_))
    }
}

/// What the dynamic linker says, which the error itself keeps for its debug form.
fn cause(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
