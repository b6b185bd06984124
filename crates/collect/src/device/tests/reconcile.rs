use super::super::{Device, Environment, Ordinals, ProcessMemory, Reconciled, Tracked, reconcile};
use super::{gpus, holds};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn tracked(pid: u32, ordinal: i32, bytes: u64) -> Tracked {
    Tracked { pid, ordinal, bytes }
}

/// As if the processes were started without settings.
fn plain(pids: &[u32], devices: &[Device]) -> BTreeMap<u32, Ordinals> {
    let of_any = Ordinals::new(&Environment::default(), devices, &BTreeMap::new());
    pids.iter().map(|pid| (*pid, of_any.clone())).collect()
}

/// Process, ordinal, bytes tracked, by the driver, unattributed.
type Figures = (u32, i32, u64, Option<u64>, Option<u64>);

fn figures(rows: &[Reconciled]) -> Vec<Figures> {
    rows.iter()
        .map(|row| {
            (
                row.pid,
                row.ordinal,
                row.tracked_bytes,
                row.driver_bytes,
                row.unattributed_bytes,
            )
        })
        .collect()
}

fn has_note(row: &Reconciled, words: &str) -> bool {
    row.notes.iter().any(|note| note.contains(words))
}

#[test]
fn what_no_allocation_explains_is_named() {
    let one = gpus(1);
    let rows = reconcile(
        &[tracked(7, 0, 1000)],
        &[holds(&one[0].uuid, 7, 1500)],
        &plain(&[7], &one),
    );
    assert_eq!(figures(&rows), [(7, 0, 1000, Some(1500), Some(500))]);
    assert_eq!(
        (rows[0].uuid.as_deref(), rows[0].notes.len()),
        (Some(one[0].uuid.as_str()), 0)
    );
}

#[test]
fn more_tracked_than_the_driver_counts_is_no_negative_figure() {
    let one = gpus(1);
    let rows = reconcile(
        &[tracked(7, 0, 1000)],
        &[holds(&one[0].uuid, 7, 400)],
        &plain(&[7], &one),
    );
    assert_eq!(figures(&rows), [(7, 0, 1000, Some(400), Some(0))]);
    assert!(
        rows[0].notes[0].starts_with("600 bytes more are tracked"),
        "{:?}",
        rows[0].notes
    );
}

#[test]
fn bytes_that_nvml_does_not_tell_stay_unknown() {
    let one = gpus(1);
    let rows = reconcile(&[tracked(7, 0, 1)], &[holds(&one[0].uuid, 7, None)], &plain(&[7], &one));
    assert_eq!(figures(&rows), [(7, 0, 1, None, None)]);
    assert!(has_note(&rows[0], "does not tell"));
    let rows = reconcile(&[tracked(7, 0, 1)], &[], &plain(&[7], &one));
    assert!(figures(&rows) == [(7, 0, 1, None, None)] && has_note(&rows[0], "does not list"));
}

#[test]
fn a_device_on_which_nothing_was_tracked_has_its_row() {
    let two = gpus(2);
    let listed = [
        holds(&two[0].uuid, 7, 10),
        holds(&two[1].uuid, 7, 30),
        holds(&two[1].uuid, 8, 99),
    ];
    let rows = reconcile(&[tracked(7, 0, 4)], &listed, &plain(&[7], &two));
    assert_eq!(
        figures(&rows),
        [(7, 0, 4, Some(10), Some(6)), (7, 1, 0, Some(30), Some(30))]
    );
    assert!(has_note(&rows[0], "device inferred"));
}

#[test]
fn memory_of_unknown_place_is_where_the_process_holds_all() {
    let two = gpus(2);
    let listed = [holds(&two[1].uuid, 7, 30)];
    let rows = reconcile(&[tracked(7, -1, 4), tracked(7, 1, 6)], &listed, &plain(&[7], &two));
    assert_eq!(figures(&rows), [(7, 1, 10, Some(30), Some(20))]);

    let unnumbered = BTreeMap::from([(7, Ordinals::default())]);
    let rows = reconcile(&[tracked(7, -1, 4)], &listed, &unnumbered);
    assert_eq!(figures(&rows), [(7, -1, 4, Some(30), Some(26))]);
    assert_eq!(rows[0].uuid.as_deref(), Some(two[1].uuid.as_str()));
}

#[test]
fn memory_of_unknown_place_is_named_where_it_may_be() {
    let two = gpus(2);
    let listed = [holds(&two[0].uuid, 7, 10), holds(&two[1].uuid, 7, 30)];
    let rows = reconcile(&[tracked(7, -1, 4), tracked(7, 0, 10)], &listed, &plain(&[7], &two));
    assert_eq!(
        figures(&rows),
        [
            (7, -1, 4, None, None),
            (7, 0, 10, Some(10), Some(0)),
            (7, 1, 0, Some(30), Some(30))
        ]
    );
    assert!(has_note(&rows[0], "not known which device"));
    assert!(!has_note(&rows[1], "up to") && has_note(&rows[2], "up to 4 of these"));
}

#[test]
fn processes_whose_number_is_not_known_are_left_out() {
    let one = gpus(1);
    let foreign = ProcessMemory {
        pid: None,
        ..holds(&one[0].uuid, 7, 5)
    };
    assert_eq!(reconcile(&[], &[foreign], &plain(&[7], &one)), []);
}

proptest! {
    #[test]
    fn no_figure_of_the_driver_is_lost_or_counted_twice(
        tracked in prop::collection::vec((1_u32..4, -2_i32..5, 0_u64..1000), 0..12),
        listed in prop::collection::btree_map((1_u32..4, 0_usize..3), prop::option::of(1_u64..1000), 0..9),
    ) {
        let devices = gpus(3);
        let tracked: Vec<Tracked> =
            tracked.into_iter().map(|(pid, ordinal, bytes)| Tracked { pid, ordinal, bytes }).collect();
        let listed: Vec<ProcessMemory> =
            listed.into_iter().map(|((pid, device), bytes)| holds(&devices[device].uuid, pid, bytes)).collect();
        let rows = reconcile(&tracked, &listed, &plain(&[1, 2, 3], &devices));

        for pid in 1..4 {
            let told: u64 = listed.iter().filter(|process| process.pid == Some(pid)).filter_map(|process| process.bytes).sum();
            let held: u64 = tracked.iter().filter(|one| one.pid == pid).map(|one| one.bytes).sum();
            let of_pid = || rows.iter().filter(|row| row.pid == pid);
            prop_assert_eq!(of_pid().filter_map(|row| row.driver_bytes).sum::<u64>(), told);
            prop_assert_eq!(of_pid().map(|row| row.tracked_bytes).sum::<u64>(), held);
        }
        for row in &rows {
            let expected = row.driver_bytes.map(|driver| driver.saturating_sub(row.tracked_bytes));
            prop_assert_eq!(row.unattributed_bytes, expected);
            prop_assert!(row.driver_bytes.is_some() || !row.notes.is_empty(), "a missing figure is explained");
        }
    }
}
