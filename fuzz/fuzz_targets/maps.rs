//! `/proc/PID/maps`.
#![no_main]

use gpuscope::discover::parse_maps;
use gpuscope::probe::address_space;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    for map in parse_maps(text) {
        assert!(map.inode != 0 && map.path.is_absolute() && map.range.contains('-'));
        let _ = map.base_name();
    }
    let _ = address_space::parse(text);
});
