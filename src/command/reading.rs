//! Reading a recording, with a bar on a terminal where that takes long.

use super::progress::Progress;
use crate::record::Taker;
use crate::trace::{End, Recording};
use std::path::Path;

/// Hands all rows of the recording at `path` to `taker`. `doing`: what that is for.
pub fn read(recording: Recording, path: &Path, doing: &str, taker: &mut dyn Taker) -> End {
    let mut progress = Progress::of(format!("{doing} {}", path.display()));
    recording.read_watched(path, taker, &mut |done, all| progress.show(done, all))
}
