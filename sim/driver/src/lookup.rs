//! Exports by name, for `cuGetProcAddress`.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::ids::{ADDRESSES, NAMES, SINCE};

const PER_THREAD: u64 = 2;

/// The address of the newest variant of `name` that CUDA `version` has. A name that carries its
/// variant already is that variant.
pub fn find(name: &[u8], version: u32, flags: u64) -> Option<usize> {
    static INDEX: OnceLock<HashMap<&[u8], (usize, u32)>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let found = ADDRESSES.iter().map(|f| *f as usize).zip(SINCE);
        NAMES.iter().map(|n| n.to_bytes()).zip(found).collect()
    });
    let get = |name: Vec<u8>| {
        index
            .get(name.as_slice())
            .filter(|(_, since)| *since <= version)
            .map(|(f, _)| *f)
    };
    let suffixes: &[&str] = if flags & PER_THREAD != 0 {
        &["_ptsz", "_ptds", ""]
    } else {
        &[""]
    };
    let versions: &[&str] = if has_version(name) {
        &[""]
    } else {
        &["_v4", "_v3", "_v2", ""]
    };
    for version in versions {
        for suffix in suffixes {
            let full = [name, version.as_bytes(), suffix.as_bytes()].concat();
            if let Some(address) = get(full) {
                return Some(address);
            }
        }
    }
    None
}

fn has_version(name: &[u8]) -> bool {
    matches!(name, [.., b'_', b'v', b'2'..=b'9'])
}
