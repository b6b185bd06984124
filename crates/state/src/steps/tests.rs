//! Programs that repeat themselves, each in a way of its own.

use super::made::{BACKWARD, Calls, LAYER, MAIN, Training};
use super::{Account, Followed, Follower};
use crate::catalog::Class;
use crate::model::step::{Origin, Steps, Where};
use crate::record::{Kind, Record, Taker};

const MS: i64 = 1_000_000;

#[test]
fn warm_up_is_told_apart() {
    let steps = Training::usual().calls().steps();
    assert_eq!((steps.count, steps.warm_up.steps), (60, 3), "{}", steps.anchor.words());
    assert!(
        steps.warm_up.ns > 30_000_000 && steps.median_ns < 5_000_000,
        "{steps:?}"
    );
    assert_eq!((steps.usual, steps.unusual), (57, 0));
    assert!(steps.min_ns <= steps.median_ns && steps.median_ns <= steps.p99_ns && steps.p99_ns <= steps.max_ns);
}

#[test]
fn an_evaluation_is_no_usual_step() {
    let training = Training {
        evaluation_each: 20,
        ..Training::usual()
    };
    let steps = training.calls().steps();
    // the last one ends behind the loop, with the third evaluation
    assert_eq!((steps.count, steps.unusual), (59, 2), "{}", steps.anchor.words());
    let longest = steps.longest_unusual[0];
    assert!(longest.ns() > 2 * steps.median_ns && longest.launches > 2 * steps.anchor.launches);
}

#[test]
fn a_loss_that_is_read_each_fourth_step_does_not_make_four_steps_one_though_warming_up_takes_as_many() {
    let training = Training {
        seed: 0,
        layers: 2,
        steps: 32,
        warm_up: 4,
        item_each: 4,
        evaluation_each: 20,
        accumulation: 4,
        batch_is_copied: false,
        other_thread: false,
    };
    let steps = training.calls().steps();
    assert_eq!(steps.anchor.launches, 212, "{}", steps.anchor.words());
    // the one with the evaluation is not, and of the first one the anchor is at its end
    assert_eq!(
        (steps.usual, steps.unusual, steps.warm_up.steps),
        (27, 1, 3),
        "{steps:?}"
    );
}

#[test]
fn a_network_is_one_step_and_not_its_layers_though_nobody_pauses() {
    let mut calls = Calls::default();
    for _ in 0..40 {
        calls.launch("embedding", MAIN);
        (0..24).for_each(|_| calls.launches(&LAYER, MAIN));
        calls.launches(&["norm_f", "head", "argmax"], MAIN);
    }
    let steps = calls.steps();
    assert_eq!(
        (steps.count, steps.anchor.launches),
        (40, 220),
        "{}",
        steps.anchor.words()
    );
}

#[test]
fn graphs_that_are_replayed_with_a_wait_between_are_steps() {
    let mut calls = Calls::default();
    for _ in 0..30 {
        calls.batch();
        calls.call("cuGraphLaunch", Class::Launch, MAIN, 10);
        calls.item(3000);
    }
    let steps = calls.steps();
    assert_eq!((steps.count, steps.anchor.launches), (30, 1));
    assert_eq!(steps.anchor.words(), "each ends with cuStreamSynchronize");
}

#[test]
fn a_request_whose_input_is_waited_for_is_one_step_with_the_time_before_it() {
    let mut calls = Calls::default();
    for _ in 0..30 {
        calls.batch();
        calls.call("cuStreamSynchronize", Class::Sync, MAIN, 20);
        calls.call("cuGraphLaunch", Class::Launch, MAIN, 10);
        calls.item(100);
    }
    let steps = calls.steps();
    assert_eq!((steps.count, steps.unusual), (30, 0), "{}", steps.anchor.words());
    assert_eq!(steps.usual_ns, steps.span_ns(), "{steps:?}");
    assert!(steps.median_ns > 500_000, "{steps:?}");
}

#[test]
fn steps_of_different_length_end_with_a_wait() {
    let mut calls = Calls::seeded(3);
    for _ in 0..60 {
        let tokens = 10 + calls.below(8);
        for token in 0..tokens {
            let kernel = ["gemm", "gemv"][calls.below(2) as usize];
            calls.launch(kernel, MAIN);
            calls.launch(if token % 3 == 0 { "norm" } else { "gelu" }, MAIN);
        }
        calls.item(200);
    }
    let steps = calls.steps();
    assert!(steps.anchor.varies, "{}", steps.anchor.words());
    assert!((58..=60).contains(&steps.count), "{}", steps.count);
}

#[test]
fn two_threads_that_do_not_wait_for_each_other_are_looked_at_alone() {
    let mut calls = Calls::seeded(5);
    let (mut one, mut other) = (0, 0);
    const ONE: [&str; 5] = ["a", "b", "c", "d", "e"];
    const OTHER: [&str; 7] = ["p", "q", "r", "s", "t", "u", "v"];
    for _ in 0..2000 {
        if calls.below(3) == 0 {
            calls.launch(ONE[one % 5], MAIN);
            one += 1;
        } else {
            calls.launch(OTHER[other % 7], BACKWARD);
            other += 1;
        }
    }
    let steps = calls.steps();
    assert_eq!((steps.anchor.tid, steps.anchor.launches), (Some(BACKWARD), 7));
    assert!(steps.count.abs_diff(other as u64 / 7) <= 1);
}

#[test]
fn parameters_that_are_copied_one_by_one_are_no_steps() {
    let mut calls = Calls::default();
    for _ in 0..20 {
        calls.batch();
        calls.item(100);
    }
    for _ in 0..40 {
        calls.launches(&LAYER, MAIN);
        calls.item(500);
    }
    let steps = calls.steps();
    assert_eq!((steps.count, steps.usual), (40, 40), "{}", steps.anchor.words());
}

#[test]
fn one_kernel_over_and_over_has_no_steps_and_it_is_said_why() {
    let mut calls = Calls::default();
    (0..500).for_each(|_| calls.launch("saxpy", MAIN));
    let why = calls.followed().why_none.unwrap();
    assert_eq!(
        why,
        "one kernel was launched over and over, and nothing comes between at regular intervals"
    );
    let nothing = Calls::default().followed();
    assert_eq!(nothing.why_none.as_deref(), Some("no launch was seen"));
}

/// Kernels in no order.
fn at_random(calls: &mut Calls, launches: usize) {
    const KERNELS: [&str; 16] = [
        "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10", "k11", "k12", "k13", "k14", "k15",
    ];
    for _ in 0..launches {
        let kernel = KERNELS[calls.below(16) as usize];
        calls.launch(kernel, MAIN);
    }
}

#[test]
fn what_is_done_again_in_a_small_part_of_the_work_is_no_step() {
    let steps_in = |others: usize| {
        let mut calls = Calls::seeded(3);
        at_random(&mut calls, others / 2);
        (0..8).for_each(|_| calls.launches(&LAYER, MAIN));
        at_random(&mut calls, others / 2);
        calls.followed()
    };
    let why = steps_in(8000).why_none;
    assert_eq!(
        why.as_deref(),
        Some("what comes back with about the same work between is less than 5 % of all launches")
    );
    assert_eq!(steps_in(400).why_none, None);
}

/// 40 steps of 10 kernels, of which the 20th has what is said.
fn with_a_slow_step(slow: impl Fn(&mut Calls)) -> Calls {
    let mut calls = Calls::default();
    for step in 1..=40 {
        calls.batch();
        calls.launches(&LAYER, MAIN);
        if step == 20 {
            slow(&mut calls);
        }
        calls.item(100);
    }
    calls
}

#[test]
fn what_was_different_in_a_slow_step_is_said() {
    let steps = with_a_slow_step(|calls| {
        let alloc = calls.call("cuMemAlloc_v2", Class::Alloc, MAIN, 1);
        (alloc.ns, alloc.bytes) = (Some(9_000_000), Some(1 << 20));
        calls.now += 9 * MS;
    })
    .steps();
    let slow = &steps.slowest[0];
    assert_eq!((slow.step.number, slow.more_allocated_bytes), (20, 1 << 20));
    let difference = &slow.differences[0];
    assert_eq!(
        (difference.place, difference.more_calls),
        (Where::Calls(Class::Alloc), 1)
    );
    assert_eq!(difference.longest, Some(("cuMemAlloc_v2".to_owned(), 9_000_000)));
    let paused = with_a_slow_step(|calls| calls.now += 7 * MS).steps();
    let difference = &paused.slowest[0].differences[0];
    assert_eq!(difference.place, Where::Outside);
    assert!(difference.more_ns.abs_diff(7_000_000) < 1_000_000, "{difference:?}");
}

#[test]
fn a_hole_of_lost_calls_is_not_a_slow_step_that_something_is_known_of() {
    let calls = with_a_slow_step(|calls| calls.now += 7 * MS);
    let slow = calls.steps().slowest[0].step;
    let mut follower = Follower::<Account>::default();
    calls.rows.iter().for_each(|row| follower.take(row));
    follower.take(&Record::lost("cuLaunchKernel", 40, slow.at + MS, slow.at + 3 * MS));
    let steps = follower.finish().told(true).found.remove(0);
    assert_eq!(steps.lost_ns, 2 * MS as u64);
    assert!(steps.slowest[0].lost && !steps.slowest[1].lost);
}

#[test]
fn idle_time_belongs_to_the_step_it_is_in_though_it_is_told_later() {
    let calls = with_a_slow_step(|calls| calls.now += 7 * MS);
    let slow = calls.steps().slowest[0].step;
    let mut follower = Follower::<Account>::default();
    let gap = Record {
        ns: Some(5_000_000),
        ..Record::new(Kind::Idle, slow.at + MS, MAIN)
    };
    let later = calls.rows.iter().position(|row| row.at > slow.end).unwrap() + 4;
    for (index, row) in calls.rows.iter().enumerate() {
        if index == later {
            follower.take(&gap);
        }
        follower.take(row);
    }
    let steps = follower.finish().told(true).found.remove(0);
    assert_eq!((steps.slowest[0].more_idle_ns, steps.idle_ns), (5_000_000, 5_000_000));
}

/// Steps of which devices do each launch half a microsecond after its call; `told`: they have told of all that they did.
fn executed(told: bool) -> Steps {
    let calls = with_a_slow_step(|calls| calls.now += 7 * MS);
    let mut follower = Follower::<Account>::default();
    let ran = |at: i64| Record {
        ns: Some(1_000),
        ..Record::new(Kind::Gpu, at, MAIN)
    };
    let mut later = std::collections::VecDeque::new();
    for row in &calls.rows {
        follower.take(row);
        if row.class == Class::Launch {
            later.push_back(row.at + 500);
        }
        // what devices did is told of behind later calls
        if later.len() > 30 {
            follower.take(&ran(later.pop_front().unwrap()));
        }
    }
    later.into_iter().for_each(|at| follower.take(&ran(at)));
    follower.finish().told(told).found.remove(0)
}

#[test]
fn where_devices_told_of_all_that_they_did_idle_time_is_what_is_left_however_short_its_pieces() {
    let steps = executed(true);
    assert!(steps.idle_measured);
    let calls = with_a_slow_step(|calls| calls.now += 7 * MS);
    let launches = calls.rows.iter().filter(|row| row.class == Class::Launch);
    let begins: Vec<i64> = launches.map(|row| row.at + 500).collect();
    let within = begins.iter().filter(|at| (steps.from_ns..steps.to_ns).contains(at));
    // behind the last of what they did nothing is known to follow
    let until = begins.last().unwrap() + 1_000;
    let left = steps.from_ns.abs_diff(until) - 1_000 * within.count() as u64;
    // a microsecond lies between each two steps
    assert!(
        (left - 1_000 * steps.count..=left).contains(&steps.idle_ns),
        "{} of {left}",
        steps.idle_ns
    );
    assert_eq!(steps.slowest[0].more_idle_ns / 1_000_000, 7);
}

#[test]
fn where_some_of_what_they_did_is_missing_rows_of_idle_time_say_how_much_it_is_at_least() {
    let steps = executed(false);
    assert_eq!((steps.idle_measured, steps.idle_ns), (false, 0));
}

#[test]
fn of_very_many_steps_all_are_counted() {
    let mut calls = Calls::default();
    for _ in 0..3000 {
        calls.launches(&["a", "b"], MAIN);
        calls.call("cuStreamSynchronize", Class::Sync, MAIN, 5);
    }
    let steps = calls.steps();
    assert_eq!((steps.count, steps.usual + steps.warm_up.steps), (3000, 3000));
    assert_eq!(steps.slowest.len(), 8);
    assert!(steps.slowest.is_sorted_by_key(|slow| std::cmp::Reverse(slow.step.ns())));
}

fn followed(calls: &Calls, mut follower: Follower<Account>) -> Followed<Account> {
    calls.rows.iter().for_each(|row| follower.take(row));
    follower.finish()
}

#[test]
fn what_is_found_late_is_told_from_then_on_and_read_again_as_if_it_had_been_known() {
    let calls = Training {
        steps: 200,
        ..Training::usual()
    }
    .calls();
    let late = followed(&calls, Follower::keeping(100));
    let again = late.again.clone().expect("rows that were not kept");
    let steps = late.told(true).found.remove(0);
    assert!(steps.since_ns.is_some() && (1..200).contains(&steps.count), "{steps:?}");
    let whole = followed(&calls, Follower::at(again)).told(true).found.remove(0);
    let at_once = calls.steps();
    assert_eq!(format!("{whole:?}"), format!("{at_once:?}"));
    assert_eq!((whole.count, whole.since_ns), (200, None));
}

/// Steps that the program calls by `name`, in each of which there are two passes and a pause behind; `early`: ranges are told of
/// before the calls in them, as short ones are.
fn said(name: impl Fn(u64) -> &'static str, early: bool) -> Calls {
    let mut calls = Calls::default();
    for step in 1..=30 {
        let (at, row) = (calls.now, calls.rows.len());
        calls.batch();
        (0..2).for_each(|_| calls.launches(&LAYER, BACKWARD));
        if step == 20 {
            let alloc = calls.call("cuMemAlloc_v2", Class::Alloc, MAIN, 1);
            alloc.ns = Some(9_000_000);
            calls.now += 9 * MS;
        }
        calls.item(100);
        let range = Record {
            ns: Some(at.abs_diff(calls.now)),
            name: name(step),
            ..Record::new(Kind::Range, at, MAIN)
        };
        let place = if early { row } else { calls.rows.len() };
        calls.rows.insert(place, range);
        calls.pause(300);
        calls.launch("metric", MAIN);
    }
    calls
}

#[test]
fn ranges_that_are_called_steps_are_the_steps_whenever_they_are_told_of() {
    let numbered = |step: u64| &*Box::leak(format!("ProfilerStep#{step}").into_boxed_str());
    for early in [false, true] {
        let steps = said(numbered, early).steps();
        assert_eq!(steps.anchor.words(), "by NVTX range 'ProfilerStep#*'");
        assert_eq!(
            (steps.count, steps.usual, steps.anchor.launches),
            (30, 30, 18),
            "{early}"
        );
        assert_eq!((steps.anchor.explained, steps.anchor.of), (540, 570));
        let slow = &steps.slowest[0];
        assert_eq!(
            (slow.step.number, slow.differences[0].place),
            (20, Where::Calls(Class::Alloc))
        );
    }
}

#[test]
fn a_range_around_most_of_the_time_is_a_step_whatever_it_is_called() {
    let steps = said(|_| "minibatch", false).steps();
    assert_eq!(
        (steps.count, steps.anchor.words()),
        (30, "by NVTX range 'minibatch'".to_owned())
    );
}

#[test]
fn ranges_around_little_are_parts_of_steps() {
    let mut calls = Training::usual().calls();
    let marks: Vec<i64> = calls
        .rows
        .iter()
        .filter(|row| row.kernel == Some("embedding"))
        .map(|row| row.at)
        .collect();
    calls.rows.extend(marks.into_iter().map(|at| Record {
        ns: Some(20_000),
        name: "embed",
        ..Record::new(Kind::Range, at, MAIN)
    }));
    let steps = calls.steps();
    assert!(
        matches!(steps.anchor.origin, Origin::Call { .. }),
        "{}",
        steps.anchor.words()
    );
}

#[test]
fn a_program_that_copies_alone_has_the_steps_that_it_marks() {
    let mut calls = Calls::default();
    for _ in 0..10 {
        let at = calls.now;
        calls.batch();
        calls.rows.push(Record {
            ns: Some(at.abs_diff(calls.now)),
            name: "step",
            ..Record::new(Kind::Range, at, MAIN)
        });
    }
    let steps = calls.steps();
    assert_eq!((steps.count, steps.anchor.of), (10, 0));
}

#[test]
fn what_is_typical_is_so_of_all_steps_and_not_of_the_first() {
    let mut calls = Calls::default();
    for step in 0..700 {
        calls.batch();
        calls.launches(&LAYER, MAIN);
        calls.pause(if step < 250 { 40_000 } else { 2_000 });
    }
    let steps = calls.steps();
    assert!(steps.median_ns < 5_000_000, "{steps:?}");
    assert!(steps.outside_ns.unwrap() < 5_000_000, "{steps:?}");
}
