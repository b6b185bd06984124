use super::*;
use crate::catalog::{Catalog, Family, Part};
use crate::wire::MemoryCall;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::builtin().unwrap());

/// A process's calls, one after the other, as the kernel would tell of them.
struct World {
    catalog: &'static Catalog,
    ledgers: Ledgers,
    now: u64,
    context: u64,
}

const PID: u32 = 7;
const OUT_OF_MEMORY: i32 = 2;
const DEINITIALIZED: i32 = 4;

impl World {
    fn new(origin: Origin) -> World {
        let mut ledgers = Ledgers::default();
        ledgers.introduce(PID, origin, 1);
        World {
            catalog: &CATALOG,
            ledgers,
            now: 100,
            context: 0,
        }
    }

    /// Makes one call that takes 10 ns.
    fn call(&mut self, symbol: &str, bytes: u64, parts: &[(Part, u64)]) {
        self.now += 20;
        self.call_at(symbol, bytes, parts, self.now - 10, 0);
    }

    fn fails(&mut self, symbol: &str, parts: &[(Part, u64)]) {
        self.now += 20;
        self.call_at(symbol, 64, parts, self.now - 10, OUT_OF_MEMORY);
    }

    fn too_late(&mut self, symbol: &str, parts: &[(Part, u64)]) {
        self.now += 20;
        self.call_at(symbol, 0, parts, self.now - 10, DEINITIALIZED);
    }

    fn call_at(&mut self, symbol: &str, bytes: u64, parts: &[(Part, u64)], entered: u64, result: i32) {
        let library = self.catalog.library("driver").unwrap();
        let row = self.catalog.find(library, symbol, None).unwrap();
        let effect = self.catalog.row(row).unwrap().memory.as_ref().unwrap();
        let mut raw = MemoryCall {
            row: row.0,
            tgid: PID,
            tid: PID,
            entered,
            returned: self.now,
            context: self.context,
            site: 5,
            bytes,
            result,
            ..MemoryCall::default()
        };
        for (part, value) in parts {
            let index = effect.parts.iter().position(|(known, _)| known == part).unwrap();
            raw.part[index] = *value;
        }
        self.ledgers.apply(&Call::decode(&raw, self.catalog).unwrap());
    }

    fn alloc(&mut self, key: u64, bytes: u64) {
        self.call("cuMemAlloc_v2", bytes, &[(Part::Key, key)]);
    }

    fn free(&mut self, key: u64) {
        self.call("cuMemFree_v2", 0, &[(Part::Key, key)]);
    }

    fn report(&self) -> ProcessReport {
        self.ledgers.report(self.now).remove(0)
    }

    fn held(&self, device: i16) -> u64 {
        let devices = self.report().devices;
        let found = devices.iter().find(|one| one.device == device);
        found.map_or(0, |found| found.account.held_bytes)
    }

    fn family(&self, family: Family) -> Account {
        let families = self.report().families;
        let found = families.iter().filter(|one| one.family == family);
        found.map(|one| one.account).next().unwrap_or_default()
    }

    fn ended(&self, how: Ending) -> Ended {
        let endings = self.report().endings;
        endings
            .iter()
            .find(|(one, _)| *one == how)
            .map_or(Ended::default(), |(_, ended)| *ended)
    }
}

const NOWHERE: i16 = UNKNOWN_DEVICE;

#[test]
fn what_is_allocated_is_held_until_it_is_freed() {
    let mut world = World::new(Origin::Start);
    world.alloc(0x1000, 100);
    world.alloc(0x2000, 50);
    assert_eq!(world.held(NOWHERE), 150);
    world.free(0x1000);
    let account = world.family(Family::Device);
    assert_eq!(
        (account.held_bytes, account.peak_bytes, account.outstanding),
        (50, 150, 1)
    );
    assert_eq!((account.allocations, account.frees, account.freed_bytes), (2, 1, 100));
    assert_eq!(world.report().sites[0].oldest_ns, world.now - 140);
}

#[test]
fn single_allocations_are_told_with_their_place_and_age_the_largest_first() {
    let mut world = World::new(Origin::Start);
    world.alloc(0x1000, 100);
    world.alloc(0x2000, 50);
    world.alloc(0x3000, 70);
    world.free(0x1000);
    let map = |most, older_ns| world.ledgers.map_of(PID, Wanted { older_ns, most }, world.now).unwrap();
    let all = map(9, 0);
    let seen: Vec<(Option<u64>, u64)> = all.shown.iter().map(|one| (one.address, one.bytes)).collect();
    assert_eq!(seen, [(Some(0x3000), 70), (Some(0x2000), 50)]);
    let age = |address: u64| {
        all.shown
            .iter()
            .find(|one| one.address == Some(address))
            .unwrap()
            .age_ns
    };
    assert!(age(0x2000) > age(0x3000));
    let old = map(9, age(0x2000));
    assert_eq!(old.shown.len(), 1, "the other is younger");
    let largest = map(1, 0);
    assert_eq!(
        (largest.shown[0].bytes, largest.left_out, largest.left_out_bytes),
        (70, 1, 50)
    );
}

#[test]
fn the_report_says_who_held_what_when_most_was_held() {
    let mut world = World::new(Origin::Start);
    world.alloc(0x1000, 100);
    world.call("cuMemHostAlloc", 50, &[(Part::Key, 0x8000)]);
    let summit = world.now;
    world.free(0x1000);
    world.alloc(0x2000, 20);
    let report = world.report();
    let peak = &report.peaks[0];
    assert_eq!((peak.bytes, peak.highest_bytes, peak.at), (150, 150, summit));
    let at_peak = |family| {
        let site = report.sites.iter().find(|site| site.family == family).unwrap();
        (site.peak_bytes, site.peak_count, site.account.held_bytes)
    };
    assert_eq!(at_peak(Family::Device), (100, 1, 20));
    assert_eq!(at_peak(Family::Pinned), (50, 1, 50));
}

#[test]
fn a_context_says_which_device_memory_is_on() {
    let mut world = World::new(Origin::Start);
    world.call("cuDevicePrimaryCtxRetain", 0, &[(Part::Key, 0xc0), (Part::Device, 3)]);
    world.context = 0xc0;
    world.alloc(0x1000, 100);
    assert_eq!((world.held(3), world.held(NOWHERE)), (100, 0));
}

#[test]
fn a_stream_says_so_before_the_current_context_does() {
    let mut world = World::new(Origin::Start);
    for (context, device) in [(0xc0, 0), (0xc1, 1)] {
        let parts = [(Part::Key, context), (Part::Device, device)];
        world.call("cuDevicePrimaryCtxRetain", 0, &parts);
    }
    world.context = 0xc1;
    world.call("cuStreamCreate", 0, &[(Part::Key, 0x51)]);
    world.context = 0xc0;
    world.call("cuMemAllocAsync", 10, &[(Part::Key, 0x1000), (Part::Stream, 0x51)]);
    assert_eq!((world.held(0), world.held(1)), (0, 10));
}

#[test]
fn a_failed_allocation_is_counted_and_holds_nothing() {
    let mut world = World::new(Origin::Start);
    world.fails("cuMemAlloc_v2", &[(Part::Key, 0xbad)]);
    let account = world.family(Family::Device);
    assert_eq!(
        (account.failed_allocations, account.allocations, account.held_bytes),
        (1, 0, 0)
    );
}

#[test]
fn a_refused_free_changes_nothing() {
    let mut world = World::new(Origin::Start);
    world.alloc(0x1000, 100);
    world.fails("cuMemFree_v2", &[(Part::Key, 0x1000)]);
    assert_eq!(world.held(NOWHERE), 100);
    assert_eq!(world.report().anomalies.failed_frees, 1);
}

#[test]
fn a_double_free_is_told_from_a_free_of_something_unknown() {
    let mut world = World::new(Origin::Start);
    world.alloc(0x1000, 100);
    world.alloc(0x2000, 7);
    world.free(0x1000);
    world.fails("cuMemFree_v2", &[(Part::Key, 0x1000)]);
    world.free(0x9999);
    let anomalies = world.report().anomalies;
    assert_eq!(
        (anomalies.double_frees, anomalies.unknown_frees, anomalies.failed_frees),
        (1, 1, 0)
    );
    assert_eq!(world.held(NOWHERE), 7);
}

#[test]
fn freeing_nothing_is_allowed() {
    let mut world = World::new(Origin::Start);
    world.free(0);
    assert_eq!(world.report().anomalies, Anomalies::default());
}

#[test]
fn what_was_there_before_us_is_not_invented() {
    let mut world = World::new(Origin::Late);
    world.alloc(0x1000, 100);
    world.free(0x5000);
    assert_eq!(world.held(NOWHERE), 100);
    assert_eq!(world.report().anomalies.unknown_frees, 1);
    assert!(!world.report().is_exact());
}

#[test]
fn a_process_whose_first_calls_are_missing_is_not_exact_from_then_on() {
    let mut world = World::new(Origin::Start);
    world.alloc(0x1000, 100);
    assert!(world.report().is_exact());
    world.ledgers.doubt(PID);
    world.alloc(0x2000, 30);
    assert_eq!((world.held(NOWHERE), world.report().origin), (130, Origin::Late));
    assert!(!world.report().is_exact());
}

#[test]
fn an_address_handed_out_again_before_its_free_is_told_of() {
    let mut world = World::new(Origin::Start);
    world.alloc(0x1000, 100);
    let free_entered = world.now + 1;
    world.alloc(0x1000, 30);
    world.now += 5;
    world.call_at("cuMemFree_v2", 0, &[(Part::Key, 0x1000)], free_entered, 0);
    assert_eq!(world.held(NOWHERE), 30);
    assert_eq!(world.ended(Ending::Freed), Ended { count: 1, bytes: 100 });
    assert_eq!(world.family(Family::Device).peak_bytes, 100);
    world.free(0x1000);
    assert_eq!(world.held(NOWHERE), 0);
    assert_eq!(world.report().anomalies, Anomalies::default());
}

#[test]
fn an_address_handed_out_again_whose_free_was_never_seen_is_an_anomaly() {
    let mut world = World::new(Origin::Start);
    world.alloc(0x1000, 100);
    world.alloc(0x1000, 30);
    world.ledgers.settle(world.now + 60_000_000_000);
    assert_eq!(world.held(NOWHERE), 30);
    assert_eq!(world.ended(Ending::PointerReused), Ended { count: 1, bytes: 100 });
    assert_eq!(world.report().anomalies.reused_pointers, 1);
}

#[test]
fn physical_memory_is_counted_once_and_lives_while_it_is_mapped() {
    let mut world = World::new(Origin::Start);
    world.call("cuMemAddressReserve", 0, &[(Part::Key, 0x7000), (Part::Size, 4096)]);
    let create = [(Part::Key, 0xa), (Part::Location, 1), (Part::Device, 2)];
    world.call("cuMemCreate", 4096, &create);
    let map = [(Part::Key, 0x7000), (Part::Size, 4096), (Part::Handle, 0xa)];
    world.call("cuMemMap", 0, &map);
    assert_eq!(world.held(2), 4096, "neither the addresses nor the mapping count");
    world.call("cuMemRelease", 0, &[(Part::Key, 0xa)]);
    assert_eq!(world.held(2), 4096, "still mapped");
    assert_eq!(world.family(Family::Mapped).held_bytes, 4096);
    world.call("cuMemUnmap", 0, &[(Part::Key, 0x7000), (Part::Size, 4096)]);
    assert_eq!((world.held(2), world.family(Family::Mapped).held_bytes), (0, 0));
    assert_eq!(world.ended(Ending::Freed), Ended { count: 1, bytes: 4096 });
}

#[test]
fn a_retained_handle_keeps_physical_memory() {
    let mut world = World::new(Origin::Start);
    world.call("cuMemCreate", 10, &[(Part::Key, 0xa), (Part::Location, 1)]);
    let map = [(Part::Key, 0x7000), (Part::Size, 10), (Part::Handle, 0xa)];
    world.call("cuMemMap", 0, &map);
    world.call(
        "cuMemRetainAllocationHandle",
        0,
        &[(Part::Key, 0xb), (Part::Address, 0x7005)],
    );
    world.call("cuMemRelease", 0, &[(Part::Key, 0xa)]);
    world.call("cuMemUnmap", 0, &[(Part::Key, 0x7000), (Part::Size, 10)]);
    assert_eq!(world.held(0), 10);
    world.call("cuMemRelease", 0, &[(Part::Key, 0xb)]);
    assert_eq!(world.held(0), 0);
}

#[test]
fn physical_memory_of_the_host_is_the_hosts() {
    let mut world = World::new(Origin::Start);
    world.call("cuMemCreate", 10, &[(Part::Key, 0xa), (Part::Location, 2)]);
    assert_eq!((world.held(0), world.report().host.held_bytes), (0, 10));
}

#[test]
fn a_destroyed_context_takes_its_memory_and_no_other() {
    let mut world = World::new(Origin::Start);
    world.call("cuCtxCreate_v2", 0, &[(Part::Key, 0xc1), (Part::Device, 0)]);
    world.call("cuCtxCreate_v2", 0, &[(Part::Key, 0xc2), (Part::Device, 0)]);
    world.context = 0xc1;
    world.alloc(0x1000, 100);
    world.call("cuMemHostAlloc", 10, &[(Part::Key, 0x8000)]);
    world.call("cuMemCreate", 7, &[(Part::Key, 0xa), (Part::Location, 1)]);
    world.context = 0xc2;
    world.alloc(0x2000, 30);
    world.call("cuCtxDestroy_v2", 0, &[(Part::Key, 0xc1)]);
    assert_eq!((world.held(0), world.report().host.held_bytes), (37, 0));
    assert_eq!(world.ended(Ending::ContextDestroyed), Ended { count: 2, bytes: 110 });
}

#[test]
fn the_last_release_of_a_primary_context_ends_it() {
    let mut world = World::new(Origin::Start);
    let retain = [(Part::Key, 0xc0), (Part::Device, 0)];
    world.call("cuDevicePrimaryCtxRetain", 0, &retain);
    world.call("cuDevicePrimaryCtxRetain", 0, &retain);
    world.context = 0xc0;
    world.alloc(0x1000, 100);
    world.call("cuDevicePrimaryCtxRelease_v2", 0, &[(Part::Device, 0)]);
    assert_eq!(world.held(0), 100);
    world.call("cuDevicePrimaryCtxRelease_v2", 0, &[(Part::Device, 0)]);
    assert_eq!(world.held(0), 0);
}

#[test]
fn what_a_driver_that_is_being_unloaded_refuses_has_changed_nothing_and_is_no_mistake() {
    let mut world = World::new(Origin::Start);
    world.call("cuDevicePrimaryCtxRetain", 0, &[(Part::Key, 0xc0), (Part::Device, 0)]);
    world.context = 0xc0;
    world.alloc(0x1000, 100);
    world.too_late("cuDevicePrimaryCtxRelease_v2", &[(Part::Device, 0)]);
    world.too_late("cuMemFree_v2", &[(Part::Key, 0x1000)]);
    assert_eq!(world.held(0), 100);
    assert_eq!(world.report().anomalies, Anomalies::default());
}

#[test]
fn attached_late_a_release_may_not_be_the_last() {
    let mut world = World::new(Origin::Late);
    world.call("cuDevicePrimaryCtxRetain", 0, &[(Part::Key, 0xc0), (Part::Device, 0)]);
    world.context = 0xc0;
    world.alloc(0x1000, 100);
    world.call("cuDevicePrimaryCtxRelease_v2", 0, &[(Part::Device, 0)]);
    assert_eq!(world.held(0), 100);
}

#[test]
fn a_reset_ends_everything_on_its_device() {
    let mut world = World::new(Origin::Late);
    world.call("cuDevicePrimaryCtxRetain", 0, &[(Part::Key, 0xc0), (Part::Device, 0)]);
    world.context = 0xc0;
    world.alloc(0x1000, 100);
    world.call("cuDevicePrimaryCtxReset_v2", 0, &[(Part::Device, 0)]);
    assert_eq!(world.held(0), 0);
    assert_eq!(world.ended(Ending::ContextReset), Ended { count: 1, bytes: 100 });
}

#[test]
fn a_pool_knows_what_is_used_of_it_and_what_the_driver_said_that_it_keeps() {
    let mut world = World::new(Origin::Start);
    world.call("cuMemPoolCreate", 0, &[(Part::Key, 0x90), (Part::Device, 1)]);
    let from = |key| [(Part::Key, key), (Part::Stream, 0), (Part::Pool, 0x90)];
    world.call("cuMemAllocFromPoolAsync", 10, &from(0x1000));
    world.call("cuMemAllocFromPoolAsync", 20, &from(0x2000));
    world.call("cuMemFreeAsync", 0, &[(Part::Key, 0x1000)]);
    let read = [(Part::Key, 0x90), (Part::Attribute, 5), (Part::Value, 64)];
    world.call("cuMemPoolGetAttribute", 0, &read);
    let pool = world.report().pools[0].clone();
    assert_eq!((pool.device, pool.used_bytes, pool.peak_used_bytes), (1, 20, 30));
    assert_eq!(pool.reserved, Some((64, world.now)));
    assert_eq!(world.held(1), 20);
    world.call("cuMemPoolDestroy", 0, &[(Part::Key, 0x90)]);
    assert_eq!(world.held(1), 20, "what came out of it lives on");
}

#[test]
fn memory_of_a_graph_exists_once_it_has_run_and_outlives_it() {
    let mut world = World::new(Origin::Start);
    let node = [
        (Part::Key, 0x6000),
        (Part::Size, 64),
        (Part::Graph, 0x61),
        (Part::Device, 0),
    ];
    world.call("cuGraphAddMemAllocNode", 0, &node);
    world.call(
        "cuGraphInstantiateWithFlags",
        0,
        &[(Part::Key, 0xe1), (Part::Graph, 0x61)],
    );
    assert_eq!(world.held(0), 0, "only described");
    world.call("cuGraphLaunch", 0, &[(Part::Key, 0xe1)]);
    assert_eq!(world.held(0), 64);
    world.call("cuGraphLaunch", 0, &[(Part::Key, 0xe1)]);
    assert_eq!(world.held(0), 64, "its memory stays the same");
    world.call("cuGraphExecDestroy", 0, &[(Part::Key, 0xe1)]);
    world.call("cuGraphDestroy", 0, &[(Part::Key, 0x61)]);
    assert_eq!(world.held(0), 64, "CUDA does not free it");
    world.free(0x6000);
    assert_eq!(world.held(0), 0);
}

#[test]
fn a_graph_takes_an_address_whose_free_is_told_of_late() {
    let mut world = World::new(Origin::Start);
    let node = [(Part::Key, 0x6000), (Part::Size, 64), (Part::Graph, 0x61)];
    world.call("cuGraphAddMemAllocNode", 0, &node);
    let parts = [(Part::Key, 0xe1), (Part::Graph, 0x61)];
    world.call("cuGraphInstantiateWithFlags", 0, &parts);
    world.alloc(0x6000, 7);
    let free_entered = world.now + 1;
    world.call("cuGraphLaunch", 0, &[(Part::Key, 0xe1)]);
    world.now += 5;
    world.call_at("cuMemFree_v2", 0, &[(Part::Key, 0x6000)], free_entered, 0);
    assert_eq!(world.family(Family::Graph).held_bytes, 64);
    world.free(0x6000);
    assert_eq!(world.ended(Ending::Freed), Ended { count: 2, bytes: 71 });
    assert_eq!(world.report().anomalies, Anomalies::default());
}

#[test]
fn a_graph_that_frees_what_it_allocates_holds_nothing_between_runs() {
    let mut world = World::new(Origin::Start);
    world.call("cuStreamBeginCapture_v2", 0, &[(Part::Stream, 0x51)]);
    world.call("cuMemAllocAsync", 64, &[(Part::Key, 0x6000), (Part::Stream, 0x51)]);
    world.call("cuMemFreeAsync", 0, &[(Part::Key, 0x6000), (Part::Stream, 0x51)]);
    world.call("cuStreamEndCapture", 0, &[(Part::Stream, 0x51), (Part::Graph, 0x61)]);
    world.call(
        "cuGraphInstantiateWithFlags",
        0,
        &[(Part::Key, 0xe1), (Part::Graph, 0x61)],
    );
    assert_eq!(world.family(Family::Async), Account::default());
    world.call("cuGraphLaunch", 0, &[(Part::Key, 0xe1)]);
    let account = world.family(Family::Graph);
    assert_eq!((account.held_bytes, account.allocations, account.frees), (0, 1, 1));
}

#[test]
fn arrays_are_as_large_as_their_shape() {
    let mut world = World::new(Origin::Start);
    let shape = |levels: u64| {
        [
            (Part::Key, 0xa0 + levels),
            (Part::Width, 64),
            (Part::Height, 32),
            (Part::Format, 0x20),
            (Part::Channels, 4),
        ]
    };
    world.call("cuArrayCreate_v2", 0, &shape(0));
    assert_eq!(world.family(Family::Array).held_bytes, 64 * 32 * 16);
    let mut mipmapped = shape(2).to_vec();
    mipmapped.push((Part::Levels, 2));
    world.call("cuMipmappedArrayCreate", 0, &mipmapped);
    assert_eq!(world.family(Family::Mipmapped).held_bytes, (64 * 32 + 32 * 16) * 16);
    let mut compressed = shape(1);
    compressed[3].1 = 145;
    world.call("cuArrayCreate_v2", 0, &compressed);
    assert_eq!(world.report().anomalies.unsized_arrays, 1);
}

#[test]
fn memory_of_another_process_may_be_opened_twice() {
    let mut world = World::new(Origin::Start);
    for _ in 0..2 {
        world.call("cuIpcOpenMemHandle_v2", 0, &[(Part::Key, 0x1000)]);
    }
    world.call("cuIpcCloseMemHandle", 0, &[(Part::Key, 0x1000)]);
    assert_eq!(world.family(Family::Ipc).outstanding, 1);
    world.call("cuIpcCloseMemHandle", 0, &[(Part::Key, 0x1000)]);
    assert_eq!(world.family(Family::Ipc).outstanding, 0);
    assert_eq!(world.report().anomalies, Anomalies::default());
}

#[test]
fn memory_of_others_is_shown_apart() {
    let mut world = World::new(Origin::Start);
    world.call("cuIpcOpenMemHandle_v2", 0, &[(Part::Key, 0x1000)]);
    world.call("cuImportExternalMemory", 0, &[(Part::Key, 0xe), (Part::Size, 500)]);
    assert_eq!(world.report().held_bytes(), 0);
    assert_eq!(world.family(Family::External).held_bytes, 500);
    assert_eq!(world.family(Family::Ipc).outstanding, 1);
}

#[test]
fn the_report_of_an_ended_process_says_what_it_held_at_its_end() {
    let mut world = World::new(Origin::Start);
    world.alloc(0x1000, 100);
    world.ledgers.end(PID, world.now + 1_000);
    let report = world.report();
    assert_eq!((report.held_bytes(), report.ended_at), (100, Some(world.now + 1_000)));
    assert_eq!(report.endings, [(Ending::ProcessEnded, Ended { count: 1, bytes: 100 })]);
    world.ledgers.introduce(PID, Origin::Start, world.now + 2_000);
    world.alloc(0x1000, 1);
    assert_eq!(
        world.ledgers.report(world.now).len(),
        2,
        "another process of the same number"
    );
}

proptest! {
    /// Against a model that knows nothing but addresses and sizes.
    #[test]
    fn held_bytes_equal_a_simple_models(steps in proptest::collection::vec((0..4u8, 1..12u64, 1..1000u64), 0..300)) {
        let mut world = World::new(Origin::Start);
        let mut model: HashMap<u64, u64> = HashMap::new();
        let (mut peak, mut freed) = (0, 0);
        for (what, key, bytes) in steps {
            match what {
                0 | 1 if !model.contains_key(&key) => {
                    world.alloc(key, bytes);
                    model.insert(key, bytes);
                }
                2 => {
                    if let Some(bytes) = model.remove(&key) {
                        world.free(key);
                        freed += bytes;
                    } else {
                        world.fails("cuMemFree_v2", &[(Part::Key, key)]);
                    }
                }
                _ => world.fails("cuMemAlloc_v2", &[(Part::Key, key)]),
            }
            peak = peak.max(model.values().sum::<u64>());
        }
        let account = world.family(Family::Device);
        prop_assert_eq!(account.held_bytes, model.values().sum::<u64>());
        prop_assert_eq!(account.outstanding, model.len() as u64);
        prop_assert_eq!((account.peak_bytes, account.freed_bytes), (peak, freed));
        let report = world.report();
        let sites: u64 = report.sites.iter().map(|site| site.account.held_bytes).sum();
        prop_assert_eq!(sites, account.held_bytes);
        if let Some(picture) = report.peaks.first() {
            let shown: u64 = report.sites.iter().map(|site| site.peak_bytes).sum();
            prop_assert_eq!((shown, picture.highest_bytes), (picture.bytes, peak));
            prop_assert!(picture.bytes + picture.bytes / 100 >= peak);
        }
    }

    /// Whatever a hostile process makes its calls look like.
    #[test]
    fn no_sequence_of_calls_makes_a_total_negative(
        steps in proptest::collection::vec((0..2000u32, 0..6u64, 0..6u64, any::<u64>(), 0..3i32), 0..200),
    ) {
        let mut world = World::new(Origin::Start);
        let rows: Vec<u32> = (0..world.catalog.rows.len() as u32)
            .filter(|row| world.catalog.rows[*row as usize].memory.is_some())
            .collect();
        for (row, a, b, bytes, result) in steps {
            world.now += 10;
            let raw = MemoryCall {
                row: rows[row as usize % rows.len()],
                tgid: PID,
                entered: world.now.saturating_sub(b * 7),
                returned: world.now,
                context: a,
                bytes,
                result,
                part: [a, b, 1, a, b, 10, bytes, 2, 3],
                ..MemoryCall::default()
            };
            world.ledgers.apply(&Call::decode(&raw, world.catalog).unwrap());
        }
        world.ledgers.settle(u64::MAX);
        for family in world.report().families {
            let account = family.account;
            prop_assert!(account.held_bytes <= account.allocated_bytes, "{:?}", family);
            prop_assert!(account.held_bytes <= account.peak_bytes, "{:?}", family);
            prop_assert!(account.outstanding <= account.allocations, "{:?}", family);
        }
        let live = world.report().sites.iter().map(|site| site.account.outstanding).sum::<u64>();
        let families = world.report().families.iter().map(|one| one.account.outstanding).sum::<u64>();
        prop_assert_eq!(live, families);
    }
}

#[test]
fn what_is_refused_is_counted_where_it_would_have_been() {
    let mut world = World::new(Origin::Start);
    world.call("cuDevicePrimaryCtxRetain", 0, &[(Part::Key, 0xc0), (Part::Device, 2)]);
    world.context = 0xc0;
    world.fails("cuMemAlloc_v2", &[]);
    world.fails("cuMemHostAlloc", &[]);
    world.fails("cuMemAddressReserve", &[]);
    world.fails("cuMemMap", &[]);
    world.fails("cuMemUnmap", &[(Part::Key, 0x9000)]);
    let report = world.report();
    let refused: Vec<(Family, i16)> = report.families.iter().map(|row| (row.family, row.device)).collect();
    let expected = [
        (Family::Device, 2),
        (Family::Pinned, HOST),
        (Family::Reserved, UNKNOWN_DEVICE),
        (Family::Mapped, 2),
    ];
    assert_eq!(refused, expected);
    assert!(report.families.iter().all(|row| row.account.failed_allocations == 1));
    assert_eq!((report.host.failed_allocations, report.anomalies.failed_frees), (1, 1));
}

#[test]
fn a_handle_released_once_too_often_is_a_double_free_until_it_is_given_out_again() {
    let mut world = World::new(Origin::Start);
    let create = |world: &mut World| world.call("cuMemCreate", 64, &[(Part::Key, 0x77), (Part::Location, 1)]);
    create(&mut world);
    world.call("cuMemRelease", 0, &[(Part::Key, 0x77)]);
    world.fails("cuMemRelease", &[(Part::Key, 0x77)]);
    create(&mut world);
    world.fails("cuMemRelease", &[(Part::Key, 0x77)]);
    let anomalies = world.report().anomalies;
    assert_eq!((anomalies.double_frees, anomalies.failed_frees), (1, 1));
}

#[test]
fn sizes_that_nobody_can_mean_add_up_to_the_largest() {
    let mut world = World::new(Origin::Start);
    world.alloc(1, u64::MAX);
    world.call("cuMemHostAlloc", u64::MAX, &[(Part::Key, 2)]);
    assert_eq!(world.report().held_bytes(), u64::MAX);
    assert_eq!(world.ledgers.held_on_devices(PID), Some(u64::MAX));
    let sides = [Part::Width, Part::Height, Part::Channels].map(|part| (part, u64::MAX));
    let array = [&[(Part::Key, 3), (Part::Format, 1)], &sides[..]].concat();
    world.call("cuArrayCreate_v2", 0, &array);
    assert_eq!(world.report().held_bytes(), u64::MAX);
}

#[test]
fn a_call_that_gives_back_more_than_a_number_holds_gives_back_the_largest() {
    let mut ledger = super::ledger::Ledger::default();
    let group = ledger.group(super::group::GroupKey {
        site: 5,
        row: 0,
        family: Family::Device,
        device: 0,
    });
    let live = super::ledger::Live {
        bytes: u64::MAX,
        at: 1,
        group,
        context: 0,
        pool: 0,
    };
    for _ in 0..2 {
        ledger.open(&live);
        ledger.close(&live, Ending::Freed);
    }
    assert_eq!(ledger.given_back, Some(u64::MAX));
}
