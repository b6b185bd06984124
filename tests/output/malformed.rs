//! Records that no kernel program would send: short, of unknown kinds, with times that cannot be. Each is refused, or shown as
//! one line without a negative number of seconds.

use super::event::World;
use gpuscope::clock::Clock;
use gpuscope::decode::Call;
use gpuscope::model::order::Numbered;
use gpuscope::record::{Encoder, Facts, Maker, Traced};
use gpuscope::sink::json::Json;
use gpuscope::wire::{CallHeader, DriverCall, Flow, KernelEvent, MemoryCall, Notice, WorkCall, XidEvent};
use proptest::prelude::*;
use std::sync::LazyLock;

static WORLD: LazyLock<World> = LazyLock::new(World::new);

fn line(call: &Call<'_>) -> String {
    let clock = Clock {
        start_monotonic_ns: u64::MAX / 2,
        start_unix_ns: 1,
    };
    let traced = Traced {
        call,
        number: Numbered { id: 1, caller: Some(2) },
        comm: "x",
        layer: "driver",
        kernel: call.kernel().map(|_| "kernel"),
        asked: None,
        stack: None,
        facts: Facts::default(),
    };
    let mut line = Vec::new();
    Json::default().take(&Maker::new(clock).call(&traced, true), &mut line);
    String::from_utf8(line).expect("UTF-8")
}

/// Bytes as a record: as they are, with a row that there is, and at the sizes that events have.
fn forged(bytes: &[u8], row: u32, size: u8) -> Vec<u8> {
    let mut event = bytes.to_vec();
    if event.len() > 47 {
        event[40..44].copy_from_slice(&(row % WORLD.catalog.rows.len() as u32).to_le_bytes());
        event[46] = size;
    }
    event
}

proptest! {
    #[test]
    fn a_record_of_any_kind_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..700)) {
        let read = (
            CallHeader::parse(&bytes).is_some(),
            DriverCall::parse(&bytes).is_some(),
            KernelEvent::parse(&bytes).is_some(),
            MemoryCall::parse(&bytes).is_some(),
            (Notice::parse(&bytes).is_some(), Flow::parse(&bytes).is_some()),
            (WorkCall::parse(&bytes).is_some(), XidEvent::parse(&bytes).is_some()),
        );
        prop_assert!(bytes.len() >= 16 || !(read.0 || read.1 || read.3));
    }

    #[test]
    fn whatever_an_event_says_it_is_one_line_with_a_time_that_did_not_run_backwards(
        bytes in prop::collection::vec(any::<u8>(), 0..700), row: u32, size in 0..5u8,
    ) {
        let event = forged(&bytes, row, size);
        if let Some(call) = Call::decode(&event, &WORLD.catalog, &WORLD.plans) {
            let line = line(&call);
            prop_assert_eq!(line.matches('\n').count(), 1);
            let json: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            let duration = &json["duration_us"];
            prop_assert!(duration.is_null() || duration.as_f64().is_some_and(|us| us >= 0.0), "{line}");
        }
    }
}

#[test]
fn an_unknown_size_and_an_unknown_row_are_refused() {
    let mut event = vec![0; 700];
    event[46] = 9;
    assert_eq!(CallHeader::parse(&event), None);
    event[46] = 0;
    event[40..44].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(Call::decode(&event, &WORLD.catalog, &WORLD.plans).is_none());
}
