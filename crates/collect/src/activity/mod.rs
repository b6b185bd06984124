//! What GPUs have executed, as CUPTI tells it inside of processes: a library that CUDA loads there asks for it and hands it over
//! through shared memory, whichever engine traces calls.
//!
//! Owns the library's file, the memory that is shared with each process, and who may hand something over. What records mean is
//! nobody's business here; the library itself is `activity.c` and its neighbours.

pub mod hostile;
mod meeting;
mod process;
pub mod shared;
mod visit;

pub use process::{Report, Source, Windows, Wish};
pub use visit::is_waiting;

use crate::inside::folder::{self, ACTIVITY, Folder};
use crate::inside::socket::Listener;
use anyhow::Result;
use meeting::{Meeting, Shared};
use shared::ActivityRecord;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use crate::inside::folder::{CUDA_INJECTION as INJECTION, GPU_THREAD as THREAD};

/// Whether another tool has CUDA load its library, by what a program's environment has for [`INJECTION`].
#[must_use]
pub fn is_taken(given: Option<OsString>) -> bool {
    folder::is_taken(given)
}

/// Whether a program does not run where CUDA is to load anybody's library, by its name: Nsight Compute, which says so and ends.
#[must_use]
pub fn is_refused_by(program: &OsStr) -> bool {
    let name = Path::new(program).file_name();
    name.is_some_and(|name| ["ncu", "nv-nsight-cu-cli"].iter().any(|tool| name == *tool))
}

/// What GPUs have executed.
pub struct Activities {
    shared: Arc<Shared>,
    folder: Folder,
    _meeting: Meeting,
}

impl Activities {
    /// Makes what programs that are started from now on can hand their records over by. `wish`: what of them.
    ///
    /// # Errors
    /// There is no folder for the library, or no thread.
    pub fn start(wish: Wish) -> Result<Activities> {
        let folder = Folder::make(ACTIVITY)?;
        let shared = Arc::new(Shared::new(wish)?);
        let listener = Listener::open(&folder.socket())?;
        Ok(Activities {
            _meeting: Meeting::start(Arc::clone(&shared), listener)?,
            shared,
            folder,
        })
    }

    /// Asks process `pid`, which runs already, from now on; false: it does not wait for that (`gpuscope preload`). It may be busy
    /// with another gpuscope for a moment: for `patience` it is waited for.
    ///
    /// # Errors
    /// It does not answer.
    pub fn visit(&self, pid: u32, patience: Duration) -> Result<bool> {
        match visit::call_at(pid, patience)? {
            Some(caller) => self.shared.add(caller).map(|()| true),
            None => Ok(false),
        }
    }

    /// What a program has to be started with; `user`: somebody else as whom it is started.
    ///
    /// # Errors
    /// It could not reach us.
    pub fn environment(&self, user: Option<u32>) -> Result<Vec<(OsString, OsString)>> {
        if let Some(user) = user {
            self.shared.admit(user);
            self.folder.open_to_others()?;
        }
        Ok(vec![
            (INJECTION.into(), self.folder.library().into()),
            (ACTIVITY.variable.into(), self.folder.socket().into()),
        ])
    }

    /// Hands all that has come to `take`, with where it comes from. Of a process that has ended nothing comes later.
    pub fn drain(&self, take: &mut dyn FnMut(&Source, &ActivityRecord)) {
        self.shared.drain(take);
    }

    /// What is known of each process that has loaded the library, in the order in which they did.
    #[must_use]
    pub fn reports(&self) -> Vec<Report> {
        self.shared.reports()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_runs_with_every_glibc_that_cuda_runs_with() {
        use object::Object;
        let library = object::File::parse(ACTIVITY.bytes).expect("a library");
        let names = library.imports().expect("imports");
        assert!(names.iter().any(|import| import.name() == b"dlopen"));
        let text = String::from_utf8_lossy(ACTIVITY.bytes);
        let versions = text.split('\0').filter_map(|word| word.strip_prefix("GLIBC_2."));
        let newest = versions
            .filter_map(|version| version.split('.').next()?.parse::<u32>().ok())
            .max();
        assert_eq!(newest, Some(17), "RHEL 7 has that");
    }
}
