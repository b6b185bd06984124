use super::super::merge::{Line, Merged, merged};
use super::{divided, gpu};
use proptest::prelude::*;

fn line(pid: u32, bytes: impl Into<Option<u64>>) -> Line {
    Line {
        pid,
        bytes: bytes.into(),
        gpu_instance: None,
        compute_instance: None,
    }
}

fn in_part(pid: u32, bytes: u64, gpu_instance: u32) -> Line {
    Line {
        gpu_instance: Some(gpu_instance),
        compute_instance: Some(0),
        ..line(pid, bytes)
    }
}

fn table(entries: &[(&str, u32, Option<u64>)]) -> Merged {
    entries
        .iter()
        .map(|(uuid, pid, bytes)| (((*uuid).to_owned(), *pid), *bytes))
        .collect()
}

#[test]
fn a_process_in_several_lists_counts_once() {
    let lists = [vec![line(1, 700), line(2, 50)], vec![line(1, 700)], vec![line(2, 0)]];
    assert_eq!(
        merged("G", &[], &lists, &[]),
        table(&[("G", 1, Some(700)), ("G", 2, Some(50))])
    );
}

#[test]
fn bytes_that_are_not_told_are_not_zero_and_give_way_to_bytes_that_are() {
    let lists = [vec![line(1, None), line(2, None)], vec![line(2, 9)]];
    assert_eq!(
        merged("G", &[], &lists, &[]),
        table(&[("G", 1, None), ("G", 2, Some(9))])
    );
}

#[test]
fn hidden_processes_are_added_up() {
    let lists = [vec![line(0, 5), line(0, 6), line(0, None)], vec![line(0, 6)]];
    assert_eq!(merged("G", &[], &lists, &[]), table(&[("G", 0, Some(11))]));
}

#[test]
fn lines_of_a_divided_gpu_belong_to_its_parts_and_are_not_repeated() {
    let device = divided(0, 2);
    let parts = device.parts();
    let (first, second) = (parts[0].uuid.as_str(), parts[1].uuid.as_str());
    let of_gpu = [vec![
        in_part(1, 100, 7),
        in_part(2, 30, 8),
        line(1, 100),
        line(3, 4),
        in_part(4, 1, 99),
    ]];
    let of_parts = [
        (first.to_owned(), vec![line(1, 100)]),
        (second.to_owned(), vec![in_part(1, 8, 8)]),
    ];
    let expected = [
        (first, 1, Some(100)),
        (second, 1, Some(8)),
        (second, 2, Some(30)),
        (device.uuid.as_str(), 3, Some(4)),
        (device.uuid.as_str(), 4, Some(1)),
    ];
    assert_eq!(merged(&device.uuid, parts, &of_gpu, &of_parts), table(&expected));
}

#[test]
fn an_instance_of_several_compute_instances_is_not_guessed() {
    let mut device = divided(0, 2);
    let parts = device.mig.as_mut().expect("in MIG mode");
    parts[1].gpu_instance = 7;
    parts[1].compute_instance = 1;
    let open = Line {
        compute_instance: None,
        ..in_part(1, 5, 7)
    };
    let told = Line {
        compute_instance: Some(1),
        ..in_part(2, 6, 7)
    };
    let expected = [
        (device.uuid.as_str(), 1, Some(5)),
        (device.parts()[1].uuid.as_str(), 2, Some(6)),
    ];
    assert_eq!(
        merged(&device.uuid, device.parts(), &[vec![open, told]], &[]),
        table(&expected)
    );
}

proptest! {
    #[test]
    fn no_process_gets_more_than_a_list_says_and_none_is_lost(
        lists in prop::collection::vec(prop::collection::vec((1_u32..5, prop::option::of(0_u64..100)), 0..8), 0..4),
    ) {
        let lists: Vec<Vec<Line>> =
            lists.into_iter().map(|list| list.into_iter().map(|(pid, bytes)| line(pid, bytes)).collect()).collect();
        let uuid = gpu(0).uuid;
        let all = merged(&uuid, &[], &lists, &[]);
        for pid in 1..5 {
            let said: Vec<Option<u64>> = lists.iter().flatten().filter(|line| line.pid == pid).map(|line| line.bytes).collect();
            prop_assert_eq!(all.get(&(uuid.clone(), pid)).copied(), said.into_iter().max());
        }
        let mut reversed = lists.clone();
        reversed.reverse();
        prop_assert_eq!(&merged(&uuid, &[], &reversed, &[]), &all);
        let doubled = [lists.clone(), lists].concat();
        prop_assert_eq!(merged(&uuid, &[], &doubled, &[]), all);
    }
}
