use super::Busy;
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
fn nothing_is_busy_where_nothing_ran() {
    assert_eq!(Busy::default().span(), None);
    let span = span(&[(7, 7)]);
    assert_eq!((span.busy_ns, span.idle_ns(), span.gaps), (0, 0, 0));
}

proptest! {
    #[test]
    fn busy_time_is_that_of_the_union_in_whatever_order(intervals in vec((0..400u64, 1..40u64), 1..60)) {
        let intervals: Vec<(u64, u64)> = intervals.into_iter().map(|(begin, ns)| (begin, begin + ns)).collect();
        let is_busy = |at: u64| intervals.iter().any(|(begin, end)| *begin <= at && at < *end);
        let span = span(&intervals);
        let (first, last) = (intervals.iter().map(|i| i.0).min(), intervals.iter().map(|i| i.1).max());
        prop_assert_eq!((Some(span.first), Some(span.last)), (first, last));
        let busy = (span.first..span.last).filter(|at| is_busy(*at)).count() as u64;
        prop_assert_eq!(span.busy_ns, busy);
        let begins = (span.first + 1..span.last).filter(|at| !is_busy(*at) && is_busy(at - 1)).count() as u64;
        prop_assert_eq!((span.gaps, span.late_ns), (begins, 0));
    }
}
