use super::super::quantile::bucket_end_ns;
use super::*;
use crate::wire::BUCKETS;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::builtin().unwrap());

#[test]
fn time_in_ioctls_is_that_of_ioctls_alone() {
    let mut catalog = Catalog::builtin().unwrap();
    catalog.add_driver(crate::driver::Dialect::unknown()).unwrap();
    let driver = catalog.driver.unwrap();
    let total = |total_ns| {
        let mut total = Total {
            total_ns,
            ..Total::NONE
        };
        total.bucket[6] = 3;
        total
    };
    let mut tally = Tally::default();
    assert_eq!(tally.ioctls(&CATALOG), None, "they were not followed");
    let known = driver.calls().next().unwrap().0;
    for (row, variant, ns) in [
        (driver.unknown(false), 0, 100),
        (driver.unknown(true), 0, 20),
        (known, 7, 3),
        (known, 8, 4),
        (driver.of_step(crate::wire::STEP_OPEN), 0, 1_000),
        (driver.of_step(crate::wire::STEP_POLL), 0, 10_000),
    ] {
        tally.add(&catalog, &TotalKey { tgid: 1, row, variant }, &total(ns));
    }
    assert_eq!(tally.ioctls(&catalog), Some(Spent { calls: 12, ns: 127 }));
}

fn any_total() -> impl Strategy<Value = Total> {
    let numbers = (0..1u64 << 40, 0..1u64 << 50, 0..1u64 << 40, any::<u64>());
    let buckets = vec((0..BUCKETS, 1..1000u64), 0..6);
    (numbers, buckets).prop_map(|((max_ns, total_ns, errors, bytes), buckets)| {
        let mut bucket = [0; BUCKETS];
        for (index, count) in buckets {
            bucket[index] += count;
        }
        let calls: u64 = bucket.iter().sum();
        Total {
            untimed: calls % 3,
            errors: errors.min(calls),
            total_ns,
            max_ns,
            bytes,
            bucket,
        }
    })
}

fn any_entry() -> impl Strategy<Value = (TotalKey, Total)> {
    // few processes and rows, so that entries meet; one row that does not exist
    let row = prop_oneof![6 => 0..8u32, 1 => Just(u32::MAX)];
    (0..4u32, row, 0..50u64, any_total())
        .prop_map(|(tgid, row, variant, total)| (TotalKey { tgid, row, variant }, total))
}

fn functions(entries: &[(TotalKey, Total)]) -> Vec<Function> {
    let mut tally = Tally::default();
    for (key, total) in entries {
        tally.add(&CATALOG, key, total);
    }
    let entered = RowCounter {
        entered: 1,
        ..RowCounter::default()
    };
    tally.functions(&CATALOG, &vec![entered; CATALOG.rows.len()], &|_| true, &|_| 0)
}

proptest! {
    #[test]
    fn a_functions_totals_are_the_sum_over_processes_and_variants(entries in vec(any_entry(), 0..30)) {
        let functions = functions(&entries);
        for (index, row) in CATALOG.rows.iter().enumerate().take(8) {
            let of_row = || entries.iter().filter(|(key, _)| key.row == index as u32).map(|(_, total)| total);
            let label = &CATALOG.library_with(row.library).unwrap().name;
            let same = |function: &&Function| function.name == row.symbol && function.label == *label;
            let found = functions.iter().find(same).unwrap();
            prop_assert_eq!(found.calls, of_row().map(Total::calls).sum::<u64>());
            prop_assert_eq!(found.errors, of_row().map(|total| total.errors).sum::<u64>());
            prop_assert_eq!(found.total_ns, of_row().map(|total| total.total_ns).sum::<u64>());
            prop_assert_eq!(found.max_ns, of_row().map(|total| total.max_ns).max().unwrap_or(0));
            let bytes = of_row().fold(0u64, |sum, total| sum.wrapping_add(total.bytes));
            // of a launch they are threads
            prop_assert_eq!(found.bytes, if row.launch.as_ref().is_some_and(|launch| launch.role == Role::Launch) { 0 } else { bytes });
        }
    }

    #[test]
    fn percentiles_are_ordered_and_bounded_by_the_maximum(entries in vec(any_entry(), 1..10)) {
        for function in functions(&entries) {
            prop_assert!(function.p50_ns <= function.p99_ns && function.p99_ns <= function.max_ns);
        }
    }

    #[test]
    fn a_percentile_is_the_upper_edge_of_a_bucket_that_is_not_empty(mut total in any_total()) {
        total.max_ns = u64::MAX;
        let edges: Vec<u64> = (0..BUCKETS).filter(|index| total.bucket[*index] > 0).map(bucket_end_ns).collect();
        let p50 = quantile_ns(&total, 0.5);
        prop_assert!(edges.contains(&p50) || edges.is_empty());
        let at_most = |edge: u64| -> u64 {
            (0..BUCKETS).filter(|index| bucket_end_ns(*index) <= edge).map(|index| total.bucket[index]).sum()
        };
        prop_assert!(edges.is_empty() || 2 * at_most(p50) >= total.bucket.iter().sum::<u64>());
    }

    #[test]
    fn processes_are_counted_once(entries in vec(any_entry(), 0..30)) {
        let mut tally = Tally::default();
        for (key, total) in &entries {
            tally.add(&CATALOG, key, total);
        }
        let known = entries.iter().filter(|(key, _)| (key.row as usize) < CATALOG.rows.len());
        let distinct: std::collections::HashSet<u32> = known.map(|(key, _)| key.tgid).collect();
        prop_assert_eq!(tally.processes(), distinct.len());
    }
}

#[test]
fn a_process_that_only_called_elsewhere_made_no_call_of_cuda() {
    let mut catalog = Catalog::builtin().unwrap();
    let text = "[[function]]\ntracepoint = \"sched:sched_wakeup\"\n";
    catalog.add_hooks("test.toml", text).unwrap();
    let key = |tgid, row: usize| TotalKey {
        tgid,
        row: row as u32,
        variant: 0,
    };
    let mut tally = Tally::default();
    tally.add(&catalog, &key(7, catalog.rows.len() - 1), &Total::NONE);
    assert_eq!((tally.processes(), tally.knows(7)), (0, true));
    tally.add(&catalog, &key(8, 0), &Total::NONE);
    assert_eq!(tally.processes(), 1);
}
