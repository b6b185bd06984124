//! Calls and activities of streams that never were.

use super::super::What;
use super::*;
use crate::catalog::CopyKind;

const PID: u32 = 7;

fn call(entered: u64) -> Cause {
    Cause {
        tid: PID,
        entered,
        site: None,
        waits: None,
    }
}

fn copy(begin: u64, stream: u32, bytes: u64) -> Activity {
    let what = What::Copy {
        direction: None,
        host: None,
        bytes,
    };
    Activity {
        pid: PID,
        begin,
        end: begin + 10,
        device: 0,
        context: 1,
        stream,
        graph: None,
        what,
        call: None,
    }
}

fn given(matcher: &mut Matcher, stream: u64, calls: &[(u64, u64)]) {
    for (entered, bytes) in calls {
        matcher.give((PID, stream), call(*entered), *entered, Given::Copy(Some(*bytes)));
    }
}

#[test]
fn a_stream_does_its_work_in_order() {
    let mut matcher = Matcher::default();
    matcher.name_stream(PID, 1, 13, 0x700);
    given(&mut matcher, 0x700, &[(1, 64), (2, 64), (3, 8), (4, 64)]);
    let causes: Vec<_> = [64, 64, 8, 64]
        .iter()
        .map(|bytes| matcher.cause(&copy(9000, 13, *bytes)))
        .collect();
    assert_eq!(causes, [Some(call(1)), Some(call(2)), Some(call(3)), Some(call(4))]);
    assert_eq!(matcher.cause(&copy(9000, 13, 64)), None);
}

#[test]
fn copies_that_are_not_told_of_are_waited_for_by_nobody() {
    let mut matcher = Matcher::default();
    given(&mut matcher, 0x700, &[(1, 64), (20, 8)]);
    matcher.leave_copies(PID, 10);
    given(&mut matcher, 0x700, &[(30, 8)]);
    matcher.give((PID, 0x700), call(40), 40, Given::Memset);
    assert_eq!(matcher.outstanding(PID), Some(1));
    assert_eq!(matcher.cause(&copy(9000, 13, 64)), Some(call(1)), "of before");
    assert_eq!(matcher.outstanding(PID), Some(40), "what is no copy");
}

#[test]
fn calls_between_windows_are_waited_for_by_nobody_and_the_first_of_a_window_are_not_guessed() {
    let mut matcher = Matcher::default();
    matcher.name_stream(PID, 1, 13, 0x700);
    matcher.turn(PID, Turn::Opened(0));
    given(&mut matcher, 0x700, &[(1, 64)]);
    assert_eq!(matcher.cause(&copy(9_000, 13, 64)), Some(call(1)));
    matcher.turn(PID, Turn::Closed(10_000));
    given(&mut matcher, 0x700, &[(11_000, 64), (12_000, 64)]);
    assert_eq!(matcher.outstanding(PID), None, "they are not told of");
    matcher.turn(PID, Turn::Opened(20_000));
    given(
        &mut matcher,
        0x700,
        &[(21_000, 64), (22_000, 64), (23_000, 8), (24_000, 64)],
    );
    // one that was under way when the window was opened may be told of, or not
    assert_eq!(matcher.cause(&copy(30_000, 13, 64)), None);
    assert_eq!(matcher.cause(&copy(30_100, 13, 8)), Some(call(23_000)));
    assert_eq!(matcher.cause(&copy(30_200, 13, 64)), Some(call(24_000)));
}

#[test]
fn what_was_lost_on_the_way_is_passed_over() {
    let mut matcher = Matcher::default();
    matcher.name_stream(PID, 1, 13, 0x700);
    given(&mut matcher, 0x700, &[(1, 64), (2, 8), (3, 16)]);
    assert_eq!(matcher.cause(&copy(9000, 13, 8)), Some(call(2)));
    assert_eq!(matcher.cause(&copy(9000, 13, 64)), None, "its turn is over");
    assert_eq!(matcher.cause(&copy(9000, 13, 16)), Some(call(3)));
}

#[test]
fn a_copy_within_the_host_passes_nothing_over_that_it_waits_for() {
    let mut matcher = Matcher::default();
    matcher.name_stream(PID, 1, 13, 0x700);
    given(&mut matcher, 0x700, &[(1, 64), (2, 32), (3, 8), (4, 16)]);
    let within_host = Activity {
        what: What::Copy {
            direction: Some(CopyKind::HtoH),
            host: None,
            bytes: 8,
        },
        ..copy(9000, 13, 8)
    };
    assert_eq!(matcher.cause(&within_host), Some(call(3)));
    assert_eq!(matcher.outstanding(PID), Some(1), "both are still to come");
    let causes: Vec<_> = [64, 32, 16]
        .iter()
        .map(|bytes| matcher.cause(&copy(9100, 13, *bytes)))
        .collect();
    assert_eq!(causes, [Some(call(1)), Some(call(2)), Some(call(4))]);
}

#[test]
fn nothing_is_done_before_it_was_asked_for() {
    let mut matcher = Matcher::default();
    matcher.name_stream(PID, 1, 13, 0x700);
    matcher.give((PID, 0x700), call(1), 50_000, Given::Memset);
    let memset = |begin| Activity {
        what: What::Memset { bytes: 1 },
        ..copy(begin, 13, 0)
    };
    assert_eq!(matcher.cause(&memset(44_000)), None);
    assert_eq!(
        matcher.cause(&memset(46_000)),
        Some(call(1)),
        "clocks are not as even as that"
    );
}

#[test]
fn what_begins_before_its_call_is_counted_and_named_by_none() {
    let mut matcher = Matcher::default();
    matcher.name_stream(PID, 1, 13, 0x700);
    given(&mut matcher, 0x700, &[(20_000, 64)]);
    assert_eq!((matcher.cause(&copy(9000, 13, 64)), matcher.early(PID)), (None, 1));
    assert_eq!(
        (matcher.cause(&copy(9000, 13, 8)), matcher.early(PID)),
        (None, 1),
        "no such call"
    );
    given(&mut matcher, 0x700, &[(21_000, 64), (22_000, 8), (23_000, 64)]);
    assert_eq!(matcher.cause(&copy(30_000, 13, 64)), None, "either of two");
    assert_eq!(
        matcher.cause(&copy(31_000, 13, 8)),
        Some(call(22_000)),
        "the order is known again"
    );
    assert_eq!(matcher.cause(&copy(32_000, 13, 64)), Some(call(23_000)));
    assert_eq!(matcher.early(PID), 1);
}

#[test]
fn a_call_that_was_not_seen_takes_no_other_ones_place() {
    let mut matcher = Matcher::default();
    matcher.name_stream(PID, 1, 13, 0x700);
    given(&mut matcher, 0x700, &[(20_000, 64)]);
    assert_eq!(matcher.cause(&copy(9000, 13, 64)), None);
    assert_eq!(
        matcher.cause(&copy(20_500, 13, 64)),
        Some(call(20_000)),
        "no other can be meant"
    );
}

#[test]
fn what_begins_early_moves_no_later_work_of_the_default_stream_to_earlier_calls() {
    let mut matcher = Matcher::default();
    given(&mut matcher, 0, &[(20_000, 64)]);
    assert_eq!(
        matcher.cause(&copy(20_500, 7, 64)),
        Some(call(20_000)),
        "it names the stream"
    );
    given(&mut matcher, 0, &[(30_000, 64)]);
    assert_eq!((matcher.cause(&copy(24_000, 7, 64)), matcher.early(PID)), (None, 1));
    for step in (40_000..90_000).step_by(10_000) {
        given(&mut matcher, 0, &[(step, 8), (step + 1_000, 64)]);
        assert_eq!(matcher.cause(&copy(step + 5_000, 7, 8)), Some(call(step)));
        assert_eq!(matcher.cause(&copy(step + 6_000, 7, 64)), Some(call(step + 1_000)));
    }
}

#[test]
fn default_streams_of_two_contexts_take_no_calls_of_each_other() {
    let mut matcher = Matcher::default();
    let on = |context, begin, bytes| Activity {
        context,
        ..copy(begin, 7, bytes)
    };
    given(&mut matcher, 0, &[(1, 64), (2, 8)]);
    assert_eq!(matcher.cause(&on(1, 9_000, 64)), Some(call(1)));
    assert_eq!(matcher.cause(&on(2, 9_100, 8)), Some(call(2)));
    given(
        &mut matcher,
        0,
        &[(10_000, 64), (11_000, 8), (12_000, 64), (60_000, 16)],
    );
    assert_eq!(matcher.cause(&on(2, 20_000, 8)), Some(call(11_000)));
    assert_eq!(
        matcher.cause(&on(1, 21_000, 64)),
        Some(call(10_000)),
        "it was not passed over"
    );
    assert_eq!((matcher.cause(&on(1, 50_000, 16)), matcher.early(PID)), (None, 1));
    given(&mut matcher, 0, &[(70_000, 16)]);
    assert_eq!(
        matcher.cause(&on(1, 80_000, 16)),
        Some(call(70_000)),
        "the one before is not left"
    );
}

#[test]
fn a_part_of_a_graph_may_begin_early_as_well() {
    let mut matcher = Matcher::default();
    matcher.launch((PID, 0), call(1), 1, 0xabc);
    let part = |begin| Activity {
        graph: Some((5, 1)),
        ..copy(begin, 13, 1)
    };
    assert_eq!(matcher.cause(&part(9000)), Some(call(1)));
    matcher.launch((PID, 0), call(20_000), 20_000, 0xabc);
    assert_eq!((matcher.cause(&part(9500)), matcher.early(PID)), (None, 1));
    assert_eq!(matcher.cause(&part(21_000)), Some(call(20_000)));
}

#[test]
fn a_stream_without_a_name_is_the_only_one_that_has_such_work() {
    let mut matcher = Matcher::default();
    given(&mut matcher, 0x700, &[(1, 64), (3, 64)]);
    given(&mut matcher, 0x800, &[(2, 8)]);
    assert_eq!(matcher.cause(&copy(9000, 13, 64)), Some(call(1)));
    given(&mut matcher, 0x900, &[(4, 64)]);
    assert_eq!(
        matcher.cause(&copy(9000, 13, 64)),
        Some(call(3)),
        "it has kept its number"
    );
}

#[test]
fn parts_of_a_graph_belong_to_its_launches_in_turn() {
    let mut matcher = Matcher::default();
    for entered in [1, 2] {
        matcher.launch((PID, 0), call(entered), entered, 0xabc);
    }
    let part = |node| Activity {
        graph: Some((5, node)),
        ..copy(9000, 13, 1)
    };
    let causes: Vec<_> = [1, 2, 1, 2, 1].map(|node| matcher.cause(&part(node))).to_vec();
    assert_eq!(
        causes,
        [Some(call(1)), Some(call(1)), Some(call(2)), Some(call(2)), None]
    );
}

#[test]
fn of_graphs_that_could_each_be_meant_none_is() {
    let mut matcher = Matcher::default();
    matcher.launch((PID, 0), call(1), 1, 0xabc);
    matcher.launch((PID, 0), call(2), 2, 0xdef);
    let part = |number, begin| Activity {
        graph: Some((number, 1)),
        ..copy(begin, 13, 1)
    };
    assert_eq!(matcher.cause(&part(5, 9000)), None);
    matcher.launch((PID, 0), call(3), 10_000, 0xabc);
    assert_eq!(
        matcher.cause(&part(5, 20_000)),
        Some(call(3)),
        "only one was launched twice"
    );
    assert_eq!(
        matcher.cause(&part(6, 20_000)),
        Some(call(2)),
        "and only the other one is left"
    );
}

#[test]
fn what_is_captured_is_not_done() {
    let mut matcher = Matcher::default();
    matcher.name_stream(PID, 1, 13, 0x700);
    matcher.capture(PID, 0x700, true);
    given(&mut matcher, 0x700, &[(1, 64)]);
    matcher.capture(PID, 0x700, false);
    given(&mut matcher, 0x700, &[(2, 64)]);
    assert_eq!(matcher.cause(&copy(9000, 13, 64)), Some(call(2)));
}

#[test]
fn of_very_many_streams_those_that_came_first_are_followed_and_no_other_one_is_guessed() {
    let mut matcher = Matcher::default();
    matcher.name_stream(PID, 1, 13, 0x700);
    matcher.name_stream(PID, 1, 14, 0xffff_0000);
    given(&mut matcher, 0x700, &[(1, 64)]);
    given(&mut matcher, 0x800, &[(1, 128)]);
    for stream in 0..2 * MOST_STREAMS as u64 {
        given(&mut matcher, 0x10_0000 + stream, &[(2, 64)]);
    }
    given(&mut matcher, 0xffff_0000, &[(3, 8)]);
    given(&mut matcher, 0x700, &[(4, 64)]);
    assert_eq!(matcher.waiting.len(), MOST_STREAMS);
    assert_eq!(matcher.cause(&copy(9000, 13, 64)), Some(call(1)));
    assert_eq!(
        matcher.cause(&copy(9000, 13, 64)),
        Some(call(4)),
        "its calls still wait"
    );
    assert_eq!(matcher.cause(&copy(9000, 14, 8)), None, "it came too late");
    assert_eq!(matcher.cause(&copy(9000, 15, 128)), None, "it may be one of the others");
}
