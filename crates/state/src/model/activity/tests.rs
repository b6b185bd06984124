use super::busy::Busy;
use super::busy::Span;
use proptest::collection::vec;
use proptest::prelude::*;

fn span(intervals: &[(u64, u64)]) -> Span {
    let mut busy = Busy::default();
    intervals.iter().for_each(|(begin, end)| busy.add(*begin, *end));
    busy.span().expect("something ran")
}

#[test]
fn what_runs_at_the_same_time_counts_once() {
    let span = span(&[(10, 20), (15, 30), (40, 50), (12, 13)]);
    assert_eq!((span.first, span.last, span.busy_ns), (10, 50, 30));
    assert_eq!((span.idle_ns(), span.gaps, span.longest_gap_ns), (10, 1, 10));
}

#[test]
fn what_touches_leaves_no_gap() {
    let span = span(&[(10, 20), (20, 30)]);
    assert_eq!((span.busy_ns, span.gaps), (20, 0));
}

#[test]
fn what_took_less_than_the_clock_shows_ends_what_was_idle() {
    let span = span(&[(10, 20), (50, 50), (90, 90)]);
    assert_eq!((span.last, span.busy_ns, span.idle_ns()), (90, 10, 70));
    assert_eq!((span.gaps, span.longest_gap_ns), (2, 40));
}

#[test]
fn nothing_is_busy_where_nothing_ran() {
    assert_eq!(Busy::default().span(), None);
    let span = span(&[(7, 7)]);
    assert_eq!((span.busy_ns, span.idle_ns(), span.gaps), (0, 0, 0));
}

#[test]
fn what_lies_between_windows_is_neither_busy_nor_idle() {
    let mut busy = Busy::default();
    [(10, 20), (30, 40)]
        .iter()
        .for_each(|(begin, end)| busy.add(*begin, *end));
    busy.close(50);
    [(100, 110), (115, 130)]
        .iter()
        .for_each(|(begin, end)| busy.add(*begin, *end));
    busy.close(130);
    busy.add(200, 210);
    let span = busy.span().expect("something ran");
    assert_eq!((span.busy_ns, span.unmeasured_ns), (10 + 10 + 10 + 15 + 10, 50 + 70));
    // behind the last of a window nothing ran until its end
    assert_eq!((span.idle_ns(), span.gaps, span.longest_gap_ns), (10 + 10 + 5, 3, 10));
    assert_eq!(span.measured_ns(), span.busy_ns + span.idle_ns());
}

proptest! {
    #[test]
    fn busy_time_is_that_of_the_union_in_whatever_order(intervals in vec((0..400u64, 0..40u64), 1..60)) {
        let intervals: Vec<(u64, u64)> = intervals.into_iter().map(|(begin, ns)| (begin, begin + ns)).collect();
        let is_busy = |at: u64| intervals.iter().any(|(begin, end)| *begin <= at && at < *end);
        let span = span(&intervals);
        let (first, last) = (intervals.iter().map(|i| i.0).min(), intervals.iter().map(|i| i.1).max());
        prop_assert_eq!((Some(span.first), Some(span.last)), (first, last));
        let busy = (span.first..span.last).filter(|at| is_busy(*at)).count() as u64;
        prop_assert_eq!(span.busy_ns, busy);
        let ends = |at: u64| intervals.iter().any(|(_, end)| *end == at);
        let gaps = (span.first..span.last).filter(|at| !is_busy(*at) && ends(*at)).count() as u64;
        prop_assert_eq!((span.gaps, span.late_ns), (gaps, 0));
    }
}
