//! How long the text of a scrape takes, made anew and out of the last one, by turns:
//! `cargo bench --bench exposition -- [OWNERS [CHANGED [SCRAPES]]]`.
//!
//! Of so many owners (default 350, 115,500 lines) so many of a hundred (default 10) have made calls since the last scrape.

use anyhow::Result;
use gpuscope::owner::Owner;
use gpuscope::serve::exposition::{Format, Kept, render};
use gpuscope::serve::metric::{Histogram, Sample, Value};
use gpuscope::serve::metrics::api;
use std::sync::Arc;
use std::time::Instant;

/// Series of one owner: histograms with so many edges, and counters.
const HISTOGRAMS: usize = 16;
const EDGES: usize = 12;
const COUNTERS: usize = 90;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let number = |index: usize, usual: usize| words.get(index).map_or(Ok(usual), |word| word.parse::<usize>());
    let (owners, changed, scrapes) = (number(0, 350)?, number(1, 10)?, number(2, 20)?);
    let owners: Vec<Arc<Owner>> = (0..owners).map(owner).collect();
    let mut kept = Kept::default();
    let (mut anew, mut renewed, mut lines) = (Vec::new(), Vec::new(), 0);
    for scrape in 0..=scrapes {
        let samples = samples(&owners, changed, scrape);
        let (whole, took) = timed(|| render(&samples, Format::OpenMetrics));
        let (text, again) = timed(|| kept.render(&samples, Format::OpenMetrics));
        assert_eq!(whole, *text, "both say the same");
        lines = text.lines().count();
        if scrape > 0 {
            anew.push(took);
            renewed.push(again);
        }
    }
    println!("{lines} lines, {changed} % of {} owners changed", owners.len());
    println!(
        "made anew: {:.1} ms, out of the last one: {:.1} ms (medians of {scrapes})",
        median(anew),
        median(renewed)
    );
    Ok(())
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begun = Instant::now();
    let done = work();
    (done, begun.elapsed().as_secs_f64() * 1e3)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn owner(number: usize) -> Arc<Owner> {
    let label = |name: &str, value: String| (name.to_owned(), value);
    Arc::new(Owner {
        labels: vec![
            label("comm", format!("train-{number}")),
            label("container", format!("{number:064x}")),
            label("namespace", "research".to_owned()),
            label("pod", format!("job-{number}-worker-0")),
        ],
    })
}

/// In the order of the table of metrics, as a scrape has them.
fn samples(owners: &[Arc<Owner>], changed: usize, scrape: usize) -> Vec<Sample> {
    let calls = |owner: usize| {
        if owner % 100 < changed {
            1000 + scrape as u64
        } else {
            1000
        }
    };
    let mut samples = Vec::new();
    for (number, owner) in owners.iter().enumerate() {
        for class in 0..COUNTERS {
            let values = vec!["driver".into(), format!("class-{class}").into()];
            samples.push(Sample::new(&api::API_CALLS, values, Value::Integer(calls(number))).of(owner));
        }
    }
    for (number, owner) in owners.iter().enumerate() {
        for class in 0..HISTOGRAMS {
            let values = vec!["driver".into(), format!("class-{class}").into()];
            let value = Value::Histogram(histogram(calls(number)));
            samples.push(Sample::new(&api::API_DURATION_SECONDS, values, value).of(owner));
        }
    }
    samples
}

fn histogram(calls: u64) -> Histogram {
    let edge = |number: usize| 1e-6 * 4f64.powi(number as i32);
    Histogram {
        sum: calls as f64 * 1.5e-5,
        count: calls * EDGES as u64,
        buckets: (0..EDGES).map(|number| (edge(number), calls)).collect(),
    }
}
