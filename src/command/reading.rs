//! Reading a recording, with a bar on a terminal where that takes long.

use super::progress::Progress;
use crate::trace::Taker;
use crate::trace::reader::{End, Reader};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Hands all rows of the recording at `path` to `taker`. `doing`: what that is for.
pub fn read(reader: Reader<BufReader<File>>, path: &Path, doing: &str, taker: &mut dyn Taker) -> End {
    let mut progress = Progress::of(format!("{doing} {}", path.display()));
    reader.read_watched(path, taker, &mut |done, all| progress.show(done, all))
}
