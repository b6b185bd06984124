use super::{Pairing, Report, Source, Tally};
use crate::driver::xid::{Xid, words};
use proptest::collection::vec;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn of_log(at: u64, line: &str) -> Report {
    Report::new(Xid::of_record(line).expect("an Xid"), at, Source::Log)
}

fn of_tracepoint(at: u64, code: u32, message: &str) -> Report {
    Report::new(
        Xid::of_tracepoint("0000:17:00.0", code, message),
        at,
        Source::Tracepoint,
    )
}

fn told(reports: &[Report]) -> Vec<(u64, u32, Option<u32>, Source)> {
    let of = |report: &Report| (report.at, report.xid.code, report.xid.pid, report.source);
    reports.iter().map(of).collect()
}

#[test]
fn log_and_tracepoint_tell_one_fault_with_process_and_time() {
    let line = "NVRM: Xid (PCI:0000:17:00): 31, pid=7, name=a, Ch 00000008";
    for turned in [false, true] {
        let mut pairing = Pairing::default();
        let mut both = [of_tracepoint(10, 31, "Ch 00000008"), of_log(40, line)];
        if turned {
            both.reverse();
        }
        both.into_iter().for_each(|report| pairing.add(report));
        assert_eq!(told(&pairing.take(41, true)), [(10, 31, Some(7), Source::Both)]);
        assert_eq!(pairing.take(u64::MAX, true), []);
    }
}

#[test]
fn what_only_one_tells_is_told_when_the_other_is_late() {
    let mut pairing = Pairing::default();
    pairing.add(of_tracepoint(10, 31, "x"));
    assert_eq!(pairing.take(10 + 79 * MS, true), []);
    assert_eq!(
        told(&pairing.take(10 + 80 * MS, true)),
        [(10, 31, None, Source::Tracepoint)]
    );
    pairing.add(of_log(20, "NVRM: Xid (PCI:0000:17:00): 31, pid=7, name=a, x"));
    assert_eq!(told(&pairing.take(21, false)), [(20, 31, Some(7), Source::Log)]);
}

#[test]
fn a_comma_in_a_name_is_no_end_of_it_where_both_tell() {
    let mut pairing = Pairing::default();
    pairing.add(of_log(
        20,
        "NVRM: Xid (PCI:0000:17:00): 45, pid=7, name=a, Ch 9, b, Ch 1",
    ));
    pairing.add(of_tracepoint(10, 45, "Ch 1"));
    let reports = pairing.take(30, true);
    let xid = &reports[0].xid;
    assert_eq!(
        (xid.name.as_deref(), xid.message.as_str()),
        (Some("a, Ch 9, b"), "Ch 1")
    );
}

#[test]
fn two_in_other_words_are_one_once_time_is_up() {
    let mut pairing = Pairing::default();
    pairing.add(of_tracepoint(10, 45, "Ch 1"));
    pairing.add(of_log(20, "NVRM: Xid (PCI:0000:17:00): 45, pid=7, name=a, Ch 2"));
    pairing.add(of_log(20, "NVRM: Xid (PCI:0000:65:00): 45, pid=8, name=a, Ch 1"));
    assert_eq!(pairing.take(30, true), []);
    let all = told(&pairing.take(100 * MS, true));
    assert_eq!(all, [(10, 45, Some(7), Source::Both), (20, 45, Some(8), Source::Log)]);
}

#[test]
fn counts_are_by_device_code_and_process() {
    let mut tally = Tally::default();
    for (at, pid) in [(1, 7), (2, 7), (3, 8)] {
        let line = format!("NVRM: Xid (PCI:0000:17:00): 31, pid={pid}, name=a, {at}");
        tally.add(&of_log(at, &line));
    }
    tally.add(&of_log(4, "nvidia-nvswitch0: SXid (PCI:0000:17:00.0): 31, Fatal"));
    let counts = tally.faults();
    let counts: Vec<_> = counts
        .iter()
        .map(|faults| (words::title(&faults.last.xid), faults.last.xid.pid, faults.count))
        .collect();
    let expected = [("Xid 31", Some(7), 2), ("Xid 31", Some(8), 1), ("SXid 31", None, 1)];
    assert_eq!(
        counts,
        expected.map(|(title, pid, count)| (title.to_owned(), pid, count))
    );
    assert_eq!(tally.faults()[0].last.xid.message, "2");
    assert_eq!(tally.more(), 0);
}

#[test]
fn no_number_of_processes_fills_the_memory() {
    let mut tally = Tally::default();
    for pid in 0..5000 {
        tally.add(&of_log(
            1,
            &format!("NVRM: Xid (PCI:0000:17:00): 31, pid={pid}, name=a, x"),
        ));
    }
    let kept: u64 = tally.faults().iter().map(|faults| faults.count).sum();
    assert_eq!((tally.faults().len(), kept, tally.more()), (1024, 1024, 3976));
}

proptest! {
    #[test]
    fn each_fault_that_both_tell_is_told_once(codes in vec((1u32..4, 0u32..3), 0..40), late in 0u64..60) {
        let mut pairing = Pairing::default();
        let mut all = Vec::new();
        for (index, (code, message)) in codes.iter().enumerate() {
            let at = index as u64 * MS;
            pairing.add(of_tracepoint(at, *code, &message.to_string()));
            let line = format!("NVRM: Xid (PCI:0000:17:00): {code}, pid={index}, name=x, {message}");
            pairing.add(of_log(at + late * MS, &line));
            all.extend(pairing.take(at + late * MS, true));
        }
        all.extend(pairing.take(u64::MAX, true));
        prop_assert_eq!(all.len(), codes.len());
        prop_assert!(all.iter().all(|report| report.source == Source::Both));
    }
}
