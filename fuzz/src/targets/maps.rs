//! `/proc/PID/maps`.

use gpuscope::discover::parse_maps;
use gpuscope::probe::address_space;
use gpuscope::stack::regions::{self, region_at};

pub fn run(text: &[u8]) {
    for map in parse_maps(text) {
        assert!(map.inode != 0 && map.path.is_absolute() && map.range.contains('-'));
    }
    let _ = address_space::parse(text);
    let regions = regions::parse(text);
    for region in &regions {
        let found = region_at(&regions, region.start);
        std::hint::black_box(found.map(|region| (region.file_offset(u64::MAX), region.module(), region.mapping())));
    }
}
