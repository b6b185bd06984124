//! Loops of any shape have as many steps as they were made with, and calls in no order have none.

use super::made::{Calls, MAIN, Training};
use super::{Account, Follower};
use crate::catalog::Class;
use crate::record::{Kind, Record, Taker};
use proptest::prelude::*;
use proptest::sample::select;

const ANY: [&str; 40] = [
    "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8",
    "b9", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7",
    "d8", "d9",
];

prop_compose! {
    fn training()(
        seed in any::<u64>(),
        (layers, steps, warm_up) in (2usize..13, 30u64..90, 0u64..5),
        item_each in prop_oneof![Just(1u64), Just(4), Just(10), Just(1000)],
        evaluation_each in prop_oneof![Just(20u64), Just(1000)],
        accumulation in prop_oneof![3 => Just(1u64), 1 => Just(4)],
        (batch_is_copied, other_thread) in any::<(bool, bool)>(),
    ) -> Training {
        Training { seed, layers, steps, warm_up, item_each, evaluation_each, accumulation, batch_is_copied, other_thread }
    }
}

prop_compose! {
    fn any_row()(
        (kind, class) in (select(&[Kind::Call, Kind::Idle, Kind::Range][..]), select(Class::ALL)),
        at in prop_oneof![0i64..1000, any::<i64>()],
        ns in proptest::option::of(prop_oneof![0u64..1000, any::<u64>()]),
        (blocking, failed, depth) in (any::<bool>(), any::<bool>(), 0u8..2),
        kernel in proptest::option::of(select(&["embedding", "add", "a"][..])),
        name in select(&["step 1", "step 2", "a"][..]),
    ) -> Record<'static> {
        Record { class, name, ns, blocking, failed, depth, kernel, layer: "driver", bytes: ns, ..Record::new(kind, at, MAIN) }
    }
}

proptest! {
    // a case is thousands of calls
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_training_loop_has_as_many_steps_as_it_was_made_with(training in training()) {
        let calls = training.calls();
        let steps = calls.steps();
        // forward and backward may be told as a step, too
        let usual = steps.usual + steps.warm_up.steps;
        let each = if usual > 2 * training.steps { training.accumulation } else { 1 };
        // and may not be where the optimizer and the metrics come behind
        let unlike = if each == 1 { 20 } else { 3 };
        prop_assert!(
            usual.abs_diff(training.steps * each) <= 1 + training.steps * each / unlike,
            "{usual} of {}, {} in all: {}", training.steps, steps.count, steps.anchor.words()
        );
    }

    #[test]
    fn numbers_that_nobody_can_mean_are_taken(rows in proptest::collection::vec(any_row(), 0..300)) {
        for follower in [Follower::<Account>::default(), Follower::at(vec![Training::usual().calls().anchor()])] {
            let mut follower = follower;
            rows.iter().for_each(|row| follower.take(row));
            prop_assert!(follower.finish().told(true).found.iter().all(|steps| steps.count > 0));
        }
    }

    #[test]
    fn work_in_no_order_has_no_steps(seed in any::<u64>(), kinds in 1u64..40, skew in 1u32..4, waits in 0u64..3) {
        let mut calls = Calls::seeded(seed);
        for _ in 0..3000 {
            let kind = (0..skew).map(|_| calls.below(kinds)).min().unwrap();
            calls.launch(ANY[kind as usize], MAIN);
            if waits > 0 && calls.below(20 * waits) == 0 {
                calls.item(50);
            }
        }
        let found = calls.followed();
        prop_assert!(found.cuts.is_empty() && found.why_none.is_some(), "{:?}", found.cuts);
    }
}
