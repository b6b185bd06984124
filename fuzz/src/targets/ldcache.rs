//! `/etc/ld.so.cache`.

use gpuscope::probe::ldcache::paths_in;

pub fn run(cache: &[u8]) {
    let paths = paths_in(cache);
    assert!(paths.len() <= cache.len() / 24);
    assert!(paths.iter().all(|path| path.len() < 4096));
}
