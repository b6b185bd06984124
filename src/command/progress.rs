//! How far a file has been read, on a terminal, of what takes longer than a second.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Who waits less wants no bar.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK: &str = "{prefix} {wide_bar} {bytes}/{total_bytes} {eta}";

/// How far a file has been read, on a terminal, of what takes longer than a second.
pub(crate) struct Progress {
    begun: Instant,
    wanted: bool,
    what: String,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Of reading `what`.
    #[must_use]
    pub(crate) fn of(what: String) -> Progress {
        Progress {
            begun: Instant::now(),
            wanted: std::io::stderr().is_terminal(),
            what,
            bar: None,
        }
    }

    /// So many bytes of so many are read.
    pub(crate) fn show(&mut self, done: u64, all: u64) {
        if !self.wanted || self.bar.is_none() && self.begun.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let look = ProgressStyle::with_template(LOOK);
            let look = look.unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(all).with_style(look).with_prefix(self.what.clone())
        });
        bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
