use super::*;
use crate::owner::Owner;
use crate::serve::fixture::{any_samples, of_every_metric, owner};
use crate::serve::metric::{Histogram, Value};
use crate::serve::metrics::{api, memory};
use proptest::prelude::*;
use std::sync::Arc;

fn calls(of: &[(Arc<Owner>, u64)]) -> Vec<Sample> {
    let sample = |(owner, number): &(Arc<Owner>, u64)| {
        let values = vec!["driver".into(), "copy".into()];
        Sample::new(&api::API_CALLS, values, Value::Integer(*number)).of(owner)
    };
    of.iter().map(sample).collect()
}

fn durations(count: u64) -> Vec<Sample> {
    let histogram = Histogram {
        sum: 2.5,
        count,
        buckets: vec![(0.001, 2), (0.5, 3)],
    };
    let values = vec!["driver".into(), "copy".into()];
    vec![Sample::new(
        &api::API_DURATION_SECONDS,
        values,
        Value::Histogram(histogram),
    )]
}

/// Each scrape after the others, against a text that is made anew.
fn assert_same_as_new(scrapes: &[Vec<Sample>]) {
    for format in [Format::OpenMetrics, Format::Plain] {
        let mut kept = Kept::default();
        for samples in scrapes {
            assert_eq!(*kept.render(samples, format), *render(samples, format));
        }
    }
}

#[test]
fn a_text_out_of_the_last_one_is_as_one_made_anew() {
    let [one, other, third] = ["one", "other", "th\"ird"].map(|name| owner(&[("comm", name)]));
    let all = calls(&[(one.clone(), 1), (other.clone(), 2), (third.clone(), 3)]);
    let scrapes = [
        all.clone(),
        all.clone(),
        calls(&[(one.clone(), 1), (other.clone(), 1_000_000), (third.clone(), 3)]),
        calls(&[(one.clone(), 1), (third.clone(), 3)]),
        calls(&[(third.clone(), 3), (other.clone(), 2), (one.clone(), 7)]),
        Vec::new(),
        all,
    ];
    assert_same_as_new(&scrapes);
}

#[test]
fn buckets_that_change_and_metrics_that_come_and_go_are_told() {
    let owner = owner(&[("comm", "train")]);
    let held = Sample::new(&memory::MEMORY_UNRETURNED_BYTES, vec![], Value::Integer(7)).of(&owner);
    let with = |mut samples: Vec<Sample>| {
        samples.push(held.clone());
        samples
    };
    assert_same_as_new(&[
        durations(5),
        with(durations(5)),
        with(durations(8)),
        durations(8),
        Vec::new(),
    ]);
    assert_same_as_new(&[of_every_metric(), of_every_metric(), durations(5), of_every_metric()]);
}

#[test]
fn an_owner_with_the_same_labels_has_the_same_lines() {
    let scrape = |number| calls(&[(owner(&[("comm", "train")]), number)]);
    assert_same_as_new(&[scrape(1), scrape(1), scrape(2)]);
}

#[test]
fn doubles_are_merged_in_a_later_scrape_too() {
    let [one, same] = [0, 1].map(|_| owner(&[("comm", "train")]));
    let single = calls(&[(one.clone(), 1)]);
    let double = calls(&[(one, 1), (same, 2)]);
    assert_same_as_new(&[single.clone(), double.clone(), double, single]);
}

#[test]
fn a_series_that_does_not_change_is_copied() {
    let owners: Vec<_> = ["a", "b"].map(|name| owner(&[("comm", name)])).into();
    let mut kept = Kept::default();
    let numbers = |number| calls(&[(owners[0].clone(), 1), (owners[1].clone(), number)]);
    assert_eq!(kept.render(&numbers(2), Format::Plain).lines().count(), 4);
    assert_eq!(kept.copied(), 0);
    drop(kept.render(&numbers(3), Format::Plain));
    assert_eq!(kept.copied(), 1);
    drop(kept.render(&numbers(3), Format::Plain));
    assert_eq!(kept.copied(), 3);
}

proptest! {
    /// Whatever is scraped, one after the other.
    #[test]
    fn any_scrapes_are_as_if_made_anew(scrapes in prop::collection::vec(any_samples(), 1..5), again in any::<bool>()) {
        let mut scrapes = scrapes;
        for samples in &mut scrapes {
            samples.sort_by_key(|sample| sample.metric.name);
        }
        if again {
            scrapes = scrapes.into_iter().flat_map(|samples| [samples.clone(), samples]).collect();
        }
        assert_same_as_new(&scrapes);
    }

    #[test]
    fn also_where_series_of_one_metric_do_not_stand_together(scrapes in prop::collection::vec(any_samples(), 1..4)) {
        assert_same_as_new(&scrapes);
    }
}
