//! `/etc/ld.so.cache`.
#![no_main]

use gpuscope::probe::machine::ldcache::paths_in;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|cache: &[u8]| {
    let paths = paths_in(cache);
    assert!(paths.len() <= cache.len() / 24);
    assert!(paths.iter().all(|path| path.len() < 4096));
});
