//! What an answer of NVML means: a value, nothing to be told, or an error that is counted.

use nvml_wrapper::error::NvmlError;

/// The GPU or the driver has no such thing, or is older than the question.
const TOO_NEW: [u32; 2] = [25, 26]; // NVML_ERROR_ARGUMENT_VERSION_MISMATCH, NVML_ERROR_DEPRECATED

/// Takes the answers about one GPU.
pub(super) struct Answers<'a> {
    pub(super) index: u32,
    /// One line for each error.
    pub(super) notes: &'a mut Vec<String>,
    /// What was worst.
    pub(super) trouble: &'a mut Trouble,
}

/// What is to be done about errors; later ones are worse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    #[default]
    None,
    /// NVML may answer again once it is opened anew.
    Reopen,
    /// It answers nothing any more.
    Closed,
}

impl Trouble {
    pub(super) fn of(error: &NvmlError) -> Trouble {
        match error {
            NvmlError::Uninitialized | NvmlError::DriverNotLoaded | NvmlError::LibRmVersionMismatch => Trouble::Closed,
            NvmlError::GpuLost | NvmlError::Unknown | NvmlError::ResetRequired => Trouble::Reopen,
            _ => Trouble::None,
        }
    }
}

/// Whether the error says only that there is nothing to be told.
pub(super) fn is_unsupported(error: &NvmlError) -> bool {
    match error {
        NvmlError::NotSupported
        | NvmlError::InvalidArg
        | NvmlError::FailedToLoadSymbol(_)
        | NvmlError::FunctionNotFound => true,
        NvmlError::UnexpectedVariant(code) => TOO_NEW.contains(code),
        _ => false,
    }
}

impl Answers<'_> {
    /// The value; an error leaves a note of `what`.
    pub(super) fn told<T>(&mut self, what: &str, answer: Result<T, NvmlError>) -> Option<T> {
        match answer {
            Ok(value) => Some(value),
            Err(error) if is_unsupported(&error) => None,
            Err(error) => {
                self.failed(what, &error);
                None
            }
        }
    }

    pub(super) fn failed(&mut self, what: &str, error: &NvmlError) {
        *self.trouble = (*self.trouble).max(Trouble::of(error));
        self.notes.push(crate::device::ask::note(self.index, what, error));
    }
}
