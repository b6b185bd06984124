//! Why a file that a web config names cannot be read.

use std::io::{self, ErrorKind};
use std::path::Path;

/// The error of a file that cannot be read, with its cure.
pub(super) fn unreadable(path: &Path, kind: &str, error: io::Error) -> anyhow::Error {
    let named = path.display();
    let hint = match error.kind() {
        ErrorKind::NotFound => "\nhint: paths in a web config begin at its own directory".to_owned(),
        ErrorKind::PermissionDenied => {
            // SAFETY: asks for a number
            let uid = unsafe { libc::geteuid() };
            format!("\nhint: gpuscope runs as uid {uid}: chown {uid} {named}, and chmod 600 {named}")
        }
        _ => String::new(),
    };
    anyhow::Error::new(error).context(format!("failed to read the {kind} {named}{hint}"))
}
