//! Where the dynamic linker finds libraries: `/etc/ld.so.cache` and the places that CUDA is installed to.

use crate::processor::HERE;
use std::path::{Path, PathBuf};

const CACHE: &str = "/etc/ld.so.cache";
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER: usize = 48;
const ENTRY: usize = 24;
/// A cache is some hundred kilobytes.
const LARGEST: u64 = 64 << 20;
/// `PATH_MAX`; without it a damaged cache could name its whole self at each entry.
const LONGEST_PATH: usize = 4096;
/// Files of these libraries that a program started from here would find, best first, each once.
///
/// `is_wanted` sees base names such as `libcudart.so.12`.
pub fn find(is_wanted: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for directory in search_path() {
        found.extend(in_directory(&directory, is_wanted));
    }
    found.extend(
        paths_in(&read_cache())
            .into_iter()
            .map(PathBuf::from)
            .filter(|path| wanted(path, is_wanted)),
    );
    for place in HERE.libraries {
        found.extend(in_directory(Path::new(place), is_wanted));
    }
    found.retain(|path| path.is_file());
    let mut seen = std::collections::HashSet::new();
    found.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
    found
}

fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .collect()
}

fn wanted(path: &Path, is_wanted: &dyn Fn(&str) -> bool) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(is_wanted)
}

fn in_directory(directory: &Path, is_wanted: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| wanted(path, is_wanted))
        .collect();
    paths.sort();
    paths
}

fn read_cache() -> Vec<u8> {
    let small = std::fs::metadata(CACHE).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LARGEST);
    if small {
        std::fs::read(CACHE).unwrap_or_default()
    } else {
        Vec::new()
    }
}

/// The paths that a cache lists. Offsets count from the header, which an older format may precede.
pub fn paths_in(cache: &[u8]) -> Vec<String> {
    let start = memchr::memmem::find(cache, MAGIC).unwrap_or(cache.len());
    let cache = cache.get(start..).unwrap_or_default();
    let count = u32_at(cache, MAGIC.len()).unwrap_or(0) as usize;
    let entries = cache.get(HEADER..).unwrap_or_default().chunks_exact(ENTRY).take(count);
    entries
        .filter_map(|entry| text_at(cache, u32_at(entry, 8)? as usize))
        .collect()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

fn text_at(bytes: &[u8], at: usize) -> Option<String> {
    let rest = bytes.get(at..)?;
    let text = rest.get(..memchr::memchr(0, rest.get(..LONGEST_PATH).unwrap_or(rest))?)?;
    std::str::from_utf8(text).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(entries: u32, path: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(entries.to_le_bytes());
        bytes.resize(HEADER, 0);
        let value = (HEADER + ENTRY) as u32;
        bytes.extend([3, value, value].into_iter().flat_map(u32::to_le_bytes));
        bytes.resize(HEADER + ENTRY, 0);
        bytes.extend(path);
        bytes
    }

    #[test]
    fn paths_are_read_with_and_without_the_older_format_in_front() {
        let new = cache(1, b"/lib/libcuda.so.1\0");
        assert_eq!(paths_in(&new), ["/lib/libcuda.so.1"]);
        assert_eq!(
            paths_in(&[&b"ld.so-1.7.0\0\0\0\0\0"[..], &new].concat()),
            ["/lib/libcuda.so.1"]
        );
    }

    #[test]
    fn damaged_caches_yield_nothing_more() {
        let good = cache(u32::MAX, b"/lib/a\0");
        for end in 0..HEADER + ENTRY {
            assert!(paths_in(&good[..end]).is_empty());
        }
        assert!(paths_in(b"something else").is_empty());
    }

    proptest::proptest! {
        #[test]
        fn any_cache_yields_what_it_has(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
            proptest::prop_assert!(paths_in(&[MAGIC, &bytes].concat()).len() <= bytes.len() / ENTRY);
        }
    }
}
