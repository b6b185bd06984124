//! Devices that wait, and threads that keep them waiting.

use super::super::busy::Busy;
use super::super::{Does, Turn, Waits, What};
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::rc::Rc;

const PID: u32 = 7;
const THREAD: (u32, u32) = (PID, 8);
const MS: u64 = 1_000_000;

fn ran(begin: u64, end: u64, entered: Option<u64>) -> Activity {
    Activity {
        pid: PID,
        begin,
        end,
        device: 0,
        context: 1,
        stream: 13,
        graph: None,
        call: entered.map(|entered| Cause {
            tid: THREAD.1,
            entered,
            site: Some(30),
            waits: None,
        }),
        what: What::Memset { bytes: 4 },
    }
}

fn call(waiting: &mut Waiting, does: Does, entered: u64, returned: u64) {
    let called = Called {
        entered,
        returned,
        does,
        site: (does == Does::Waits).then_some(31),
    };
    waiting.call(THREAD, called);
}

/// Something runs for a millisecond; the next was given by a call from `entered` on and begins 10 µs later.
fn between(waiting: &mut Waiting, entered: u64) -> Vec<(u32, Idle)> {
    call(waiting, Does::Else, 0, 5_000);
    call(waiting, Does::Else, entered, entered + 5_000);
    waiting.run(&ran(10_000, 10_000 + MS, Some(0)));
    waiting.run(&ran(entered + 10_000, entered + MS, Some(entered)));
    waiting.settle(0, |_| u64::MAX);
    waiting.take()
}

fn stay(from: u64, until: u64, running: bool) -> Stay {
    let stack = Rc::from(r#"[{"function":"load_batch","file":"train.py","line":10,"language":"python"}]"#);
    Stay {
        from,
        until,
        running,
        stack,
    }
}

#[test]
fn a_host_that_sleeps_behind_a_wait_is_the_cause_and_says_where() {
    let mut waiting = Waiting::default();
    call(&mut waiting, Does::Waits, 6_000, 1_040_000);
    waiting.stay(THREAD, stay(1_060_000, 6 * MS, false));
    let told = between(&mut waiting, 6 * MS);
    let gap = Idle {
        since: 1_010_000,
        until: 6_010_000,
        devices: Waited::Only(0),
        tid: 8,
        why: Some(Why::Blocked),
    };
    assert_eq!(told, [(PID, gap)]);
    let causes = waiting.causes(PID, 0, 5 * MS);
    assert_eq!(
        (causes.len(), causes[0].why, causes[0].total.ns),
        (1, Why::Blocked, 5 * MS)
    );
    assert_eq!(causes[0].place.as_deref(), Some("train.py:10 load_batch"));
}

#[test]
fn a_sample_stands_for_no_time_before_the_last_call_that_returned_before_it() {
    let mut waiting = Waiting::default();
    call(&mut waiting, Does::Else, 6 * MS + 20_000, 6 * MS + 30_000);
    // taken at its end, 4 ms after that call, for a tick of 10 ms
    waiting.stay(THREAD, stay(30_000, 10 * MS + 30_000, false));
    let told = between(&mut waiting, 1_110_000);
    assert_eq!(told[0].1.why, Some(Why::HostCode), "too short to be sampled");
    waiting.run(&ran(10 * MS + 40_000, 11 * MS, Some(10 * MS + 32_000)));
    waiting.settle(0, |_| u64::MAX);
    assert_eq!(waiting.take()[0].1.why, Some(Why::Blocked));
}

#[test]
fn the_return_of_a_wait_is_the_cause_of_what_is_not_much_longer() {
    let mut waiting = Waiting::default();
    call(&mut waiting, Does::Waits, 6_000, 1_040_000);
    let told = between(&mut waiting, 1_050_000);
    assert_eq!(told[0].1.why, Some(Why::SyncReturn));
    assert_eq!(waiting.causes(PID, 0, 50_000)[0].site, Some(31));
}

#[test]
fn a_stream_that_waits_for_most_of_a_gap_is_the_cause_though_its_work_was_given_within() {
    let why = |waits: Option<Waits>, entered: u64, until: u64| {
        let mut waiting = Waiting::default();
        call(&mut waiting, Does::Else, 0, 5_000);
        call(&mut waiting, Does::Else, entered, entered + 5_000);
        waiting.run(&ran(10_000, 10_000 + MS, Some(0)));
        let next = ran(until, until + MS, Some(entered));
        let call = next.call.map(|call| Cause { waits, ..call });
        waiting.run(&Activity { call, ..next });
        waiting.settle(0, |_| u64::MAX);
        waiting.take()[0].1.why
    };
    let (begun, waits) = (1_010_000, Some(Waits::HostFunction));
    assert_eq!(why(waits, begun + MS, begun + 3 * MS), Some(Why::HostFunction));
    assert_eq!(
        why(Some(Waits::Stream), begun + MS, begun + 3 * MS),
        Some(Why::Dependency)
    );
    assert_eq!(why(None, begun + MS, begun + 3 * MS), Some(Why::Launch));
    assert_eq!(
        why(waits, begun + 2 * MS, begun + 3 * MS),
        Some(Why::Unsampled),
        "it came late"
    );
    assert_eq!(
        why(waits, begun, begun + 15_000),
        Some(Why::Launch),
        "as soon as a device begins"
    );
}

#[test]
fn what_is_called_within_a_call_says_what_that_is_whichever_comes_first() {
    for nested_first in [true, false] {
        let mut waiting = Waiting::default();
        let calls = [(Does::Else, 1_020_000, 4 * MS), (Does::Memory, 1_030_000, 3 * MS)];
        let calls = if nested_first { [calls[1], calls[0]] } else { calls };
        calls
            .iter()
            .for_each(|(does, entered, returned)| call(&mut waiting, *does, *entered, *returned));
        assert_eq!(between(&mut waiting, 4_010_000)[0].1.why, Some(Why::Memory));
    }
}

#[test]
fn a_thread_without_a_processor_is_told_by_the_kernels_account_and_once() {
    let mut waiting = Waiting::default();
    for (at, waited) in [(1, 0), (2 * MS, 0), (12 * MS, 9 * MS)] {
        waiting.account(THREAD, at, Some(0), None);
        waiting.account(THREAD, at, None, Some(waited));
    }
    assert_eq!(between(&mut waiting, 11 * MS)[0].1.why, Some(Why::NoProcessor));
    waiting.run(&ran(30 * MS, 31 * MS, None));
    waiting.settle(0, |_| u64::MAX);
    assert_eq!(waiting.take()[0].1.why, Some(Why::Other), "its call is not known");
}

#[test]
fn bounds_stay_where_no_records_tell() {
    let bound = |since, until| Idle {
        since,
        until,
        devices: Waited::Any,
        tid: 8,
        why: None,
    };
    let mut waiting = Waiting::default();
    waiting.bound(9, bound(1, 2));
    assert_eq!(waiting.take(), [(9, bound(1, 2))], "no records are expected of it");
    waiting.expect(PID);
    for (since, until) in [(5, 50_000), (1_030_000, 2 * MS), (9 * MS, 10 * MS)] {
        waiting.bound(PID, bound(since, until));
    }
    waiting.settle(0, |_| 20 * MS);
    assert_eq!(waiting.take(), [], "nothing is known yet");
    let told = between(&mut waiting, 2 * MS);
    let bounds: Vec<&Idle> = told
        .iter()
        .map(|(_, idle)| idle)
        .filter(|idle| idle.why.is_none())
        .collect();
    assert_eq!(
        bounds,
        [&bound(5, 10_000), &bound(9 * MS, 10 * MS)],
        "before the first record and behind the last"
    );
}

#[test]
fn where_records_are_missing_bounds_tell_on() {
    let mut waiting = Waiting::default();
    between(&mut waiting, 2 * MS);
    waiting.lose(PID);
    waiting.run(&ran(9 * MS, 10 * MS, None));
    waiting.bound(
        PID,
        Idle {
            since: 3 * MS,
            until: 9 * MS,
            devices: Waited::Any,
            tid: 8,
            why: None,
        },
    );
    waiting.settle(0, |_| u64::MAX);
    let told = waiting.take();
    assert_eq!((told.len(), told[0].1.why), (1, None));
    assert_eq!(
        waiting
            .causes(PID, 0, 7 * MS)
            .iter()
            .map(|one| one.total.ns)
            .sum::<u64>(),
        7 * MS,
        "sums go on"
    );
}

#[test]
fn where_not_all_is_recorded_any_more_gaps_from_then_on_prove_nothing() {
    let mut waiting = Waiting::default();
    for begin in [0, 2 * MS, 4 * MS, 6 * MS] {
        waiting.run(&ran(begin, begin + MS, None));
    }
    waiting.lose_since(PID, 3 * MS);
    waiting.settle(0, |_| u64::MAX);
    let told: Vec<u64> = waiting.take().iter().map(|(_, idle)| idle.since).collect();
    assert_eq!(told, [MS]);
}

#[test]
fn each_device_has_causes_of_its_own_and_a_process_waits_when_all_of_them_do() {
    let mut waiting = Waiting::default();
    let on = |device, begin, end| Activity {
        device,
        ..ran(begin, end, None)
    };
    for activity in [
        on(0, 0, 10),
        on(0, 50, 60),
        on(1, 20, 30),
        on(1, 90, 95),
        on(0, 100, 110),
    ] {
        waiting.run(&activity);
    }
    waiting.settle(0, |_| u64::MAX);
    let told = waiting.take();
    let of = |devices| -> Vec<(u64, u64)> {
        let own = told.iter().filter(|(_, idle)| idle.devices == devices);
        own.map(|(_, idle)| (idle.since, idle.until)).collect()
    };
    assert_eq!(of(Waited::All(2)), [(10, 20), (30, 50), (60, 90), (95, 100)]);
    assert_eq!(of(Waited::One(0)), [(10, 50), (60, 100)]);
    assert_eq!(of(Waited::One(1)), [(30, 90)]);
    let sum = |device| waiting.causes(PID, device, 0).len();
    assert_eq!((sum(0), sum(1)), (0, 0), "of no idle time there is no cause");
    let ns = |device, idle_ns| {
        waiting
            .causes(PID, device, idle_ns)
            .iter()
            .map(|one| one.total.ns)
            .sum::<u64>()
    };
    assert_eq!((ns(0, 80), ns(1, 60)), (80, 60));
}

/// Two windows, and a bound by calls across both; one activity of the first comes before it is closed, or after that.
fn in_two_windows(is_late: bool) -> Vec<(u64, u64, bool)> {
    let mut waiting = Waiting::default();
    let last = ran(30, 40, None);
    waiting.turn(PID, Turn::Opened(5));
    waiting.run(&ran(10, 20, None));
    if !is_late {
        waiting.run(&last);
    }
    waiting.turn(PID, Turn::Closed(50));
    if is_late {
        waiting.run(&last);
    }
    waiting.turn(PID, Turn::Opened(100));
    waiting.run(&ran(110, 120, None));
    let bound = Idle {
        since: 0,
        until: 115,
        devices: Waited::Any,
        tid: 8,
        why: None,
    };
    waiting.bound(PID, bound);
    waiting.settle(0, |_| 200);
    let told = waiting.take().into_iter();
    told.map(|(_, idle)| (idle.since, idle.until, idle.why.is_some()))
        .collect()
}

#[test]
fn between_windows_calls_tell_and_within_them_records() {
    let truth = [(20, 30, true), (40, 50, true), (0, 10, false), (50, 110, false)];
    assert_eq!(in_two_windows(false), truth);
    assert_eq!(in_two_windows(true), truth);
}

proptest! {
    #[test]
    fn causes_add_up_to_the_idle_time(
        runs in vec((0..2_000_000u64, 1..40_000u64, any::<bool>()), 1..60),
        calls in vec((0..2_000_000u64, 1..200_000u64, 0..4u8), 0..60),
        horizons in vec(0..2_000_000u64, 0..5),
    ) {
        let (mut waiting, mut busy) = (Waiting::default(), Busy::default());
        for (entered, ns, does) in calls {
            let does = [Does::Waits, Does::Memory, Does::Code, Does::Else][usize::from(does)];
            call(&mut waiting, does, entered, entered + ns);
        }
        let mut runs = runs;
        runs.sort_unstable();
        let mut horizons = horizons;
        horizons.sort_unstable();
        let mut rest = runs.as_slice();
        for horizon in horizons.into_iter().chain([u64::MAX]) {
            let come = rest.partition_point(|one| one.0 < horizon);
            for (begin, ns, known) in &rest[..come] {
                busy.add(*begin, begin + ns);
                waiting.run(&ran(*begin, begin + ns, known.then_some(begin.saturating_sub(9_000))));
            }
            rest = &rest[come..];
            waiting.settle(0, |_| horizon);
        }
        let idle_ns = busy.span().unwrap().idle_ns();
        let told: u64 = waiting.take().iter().map(|(_, idle)| idle.until - idle.since).sum();
        let causes: u64 = waiting.processes[&PID].sorted.values().flat_map(|sorted| sorted.sums.values()).map(|sum| sum.total.ns).sum();
        prop_assert_eq!((told, causes), (idle_ns, idle_ns));
    }
}

/// Nothing ran for a millisecond, and again from 20 ms on.
fn twice(waiting: &mut Waiting) {
    for (begin, end) in [(0, MS), (2 * MS, 20 * MS), (21 * MS, 30 * MS)] {
        waiting.run(&ran(begin, end, None));
    }
    waiting.settle(0, |_| u64::MAX);
}

#[test]
fn idle_time_of_a_part_is_that_which_passed_in_it() {
    let mut waiting = Waiting::default();
    twice(&mut waiting);
    let part = waiting.part(PID, 0, 5 * MS, 30 * MS).expect("a part");
    assert!(part.from >= 5 * MS && part.until <= 30 * MS, "{part:?}");
    assert_eq!((part.idle_ns, part.causes.len()), (MS, 1));
    assert_eq!((part.causes[0].why, part.causes[0].total.ns), (Why::Other, MS));
    assert_eq!(waiting.part(PID, 0, 5 * MS, 6 * MS), None, "too short to be known");
    assert_eq!(waiting.part(PID, 1, 5 * MS, 30 * MS), None, "no such device");
}

#[test]
fn where_records_are_missing_or_came_in_windows_no_part_is_known() {
    let mut waiting = Waiting::default();
    twice(&mut waiting);
    waiting.lose(PID);
    assert_eq!(waiting.part(PID, 0, 5 * MS, 30 * MS), None);
    let mut waiting = Waiting::default();
    waiting.turn(PID, Turn::Opened(0));
    twice(&mut waiting);
    assert_eq!(waiting.part(PID, 0, 5 * MS, 30 * MS), None);
}

#[test]
fn a_gap_is_told_once_of_a_device_that_was_the_only_one_until_another_joined() {
    let mut waiting = Waiting::default();
    let on = |device, begin, end| Activity {
        device,
        ..ran(begin, end, None)
    };
    for activity in [on(3, 0, 10), on(3, 20, 30)] {
        waiting.run(&activity);
    }
    waiting.settle(0, |_| 25);
    for activity in [on(1, 40, 50), on(3, 60, 70)] {
        waiting.run(&activity);
    }
    waiting.settle(0, |_| u64::MAX);
    let told: Vec<(Waited, u64, u64)> = waiting
        .take()
        .iter()
        .map(|(_, idle)| (idle.devices, idle.since, idle.until))
        .collect();
    let truth = [
        (Waited::Only(3), 10, 20),
        (Waited::All(2), 30, 40),
        (Waited::All(2), 50, 60),
        (Waited::One(3), 30, 60),
    ];
    assert_eq!(told, truth);
}

#[test]
fn looks_between_calls_make_an_estimate_of_where_the_host_was() {
    let stack = |line: u32| {
        Rc::from(format!(
            r#"[{{"function":"step","file":"train.py","line":{line},"language":"python"}}]"#
        ))
    };
    let mut waiting = Waiting::default();
    // 100 gaps of 90 µs, of which a third were looked at: at one line twice as often as at the other
    let each = 100_000;
    for number in 0..100 {
        let at = number * each;
        call(&mut waiting, Does::Else, at, at + 1_000);
        waiting.run(&ran(at + 2_000, at + 10_000, Some(at)));
        // while the device works it is no matter
        waiting.look(THREAD, at + 5_000, &stack(30));
        if number % 3 == 0 {
            let line = if number % 9 == 0 { 10 } else { 20 };
            waiting.look(THREAD, at + 50_000, &stack(line));
        }
    }
    waiting.settle(0, |_| u64::MAX);
    let causes = waiting.causes(PID, 0, 99 * 92_000);
    assert_eq!((causes[0].why, causes[0].total.count), (Why::HostCode, 99));
    assert_eq!(causes[0].place.as_deref(), Some("train.py:20 step"));
    let percent = causes[0].there_ns * 100 / causes[0].total.ns;
    assert!(causes[0].estimated && (63..=67).contains(&percent), "{percent}");
}
