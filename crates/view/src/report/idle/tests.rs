//! Gaps, and calls around them in whatever order they come.

use super::*;
use crate::record::Kind;

fn call(at: i64, ns: u64) -> Record<'static> {
    Record {
        ns: Some(ns),
        layer: "runtime",
        name: "cudaMalloc",
        ..Record::new(Kind::Call, at, 7)
    }
}

fn gap(at: i64, ns: u64) -> Record<'static> {
    Record {
        ns: Some(ns),
        ..Record::new(Kind::Idle, at, 7)
    }
}

fn reported(events: &[Record<'_>]) -> Idle {
    let (mut functions, mut idle) = (Functions::default(), IdleTally::default());
    for event in events {
        match event.kind {
            Kind::Idle => idle.gap(event, 0),
            _ => {
                let function = functions.take(event);
                idle.call(event, function);
            }
        }
    }
    {
        let covered = Covered {
            from_ns: 0,
            to_ns: 10_000,
            whole: false,
        };
        idle.list(&functions, &covered, None).remove(0)
    }
}

#[test]
fn a_gap_says_what_the_host_did_whichever_row_comes_first() {
    for events in [[call(1500, 700), gap(1000, 1000)], [gap(1000, 1000), call(1500, 700)]] {
        let idle = reported(&events);
        let said = |name: &str| idle.meanwhile.iter().find(|one| one.name == name).unwrap().ns;
        assert_eq!((said("cudaMalloc"), said("")), (500, 500));
        assert_eq!((idle.gaps, idle.total_ns, idle.longest_ns), (1, 1000, 1000));
    }
}

#[test]
fn a_long_call_is_seen_behind_those_that_were_entered_after_it_whenever_its_row_comes() {
    let long = call(0, 1_000_000);
    let short: Vec<Record<'_>> = (1..50).map(|number| call(number * 1000, 10)).collect();
    let gap = gap(60_000, 1000);
    for place in [0, 20, short.len()] {
        let mut events = short.clone();
        events.insert(place, long);
        events.push(gap);
        let outside = reported(&events).meanwhile.into_iter().find(|one| one.name.is_empty());
        assert_eq!(outside.unwrap().ns, 0, "{place}");
    }
}

#[test]
fn time_of_two_threads_is_not_outside_twice() {
    let idle = reported(&[call(1000, 600), call(1400, 600), gap(1000, 1000)]);
    let outside = idle.meanwhile.iter().find(|one| one.name.is_empty()).unwrap();
    assert_eq!(outside.ns, 0);
    assert_eq!(idle.longest[0].mostly_in.as_deref(), Some("cudaMalloc"));
}

#[test]
fn a_gap_that_is_told_of_late_is_not_said_to_have_passed_outside_calls() {
    let mut events = vec![call(1000, 900)];
    events.extend((0..REMEMBERED as i64).map(|number| call(10_000 + number, 1)));
    events.extend([gap(1000, 1000), gap(10_100, 100)]);
    let idle = reported(&events);
    let known: Vec<bool> = idle.longest.iter().map(|gap| gap.host_known).collect();
    assert_eq!(known, [false, true]);
    assert_eq!((idle.meanwhile_of_ns, idle.meanwhile_known_ns), (1100, 100));
    assert!(idle.longest[0].mostly_in.is_none());
}
