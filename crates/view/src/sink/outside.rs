//! Where the host was outside CUDA, as text and as JSON.

use crate::model::outside::{Outside, Placed, Whereabouts, shares};
use crate::text::quantity::{duration, plural};
use serde_json::{Value, json};

/// Above the lines.
pub(crate) const TITLE: &str = "threads that call CUDA, while outside of it (sampled)";
/// Places that are named.
const TOP: usize = 3;
/// In JSON.
const MOST: usize = 32;
/// Processes that a summary shows.
const FEW: usize = 8;

/// Each process with its samples.
pub(crate) fn to_json(outside: &Outside) -> Value {
    let one = |(pid, Whereabouts { long, between }): (u32, &Whereabouts)| {
        json!({"pid": pid, "samples": long.samples, "sampled_us": long.ns as f64 / 1e3,
            "places": places_json(&long.top(MOST)), "looks_between": between.samples,
            "places_between": places_json(&between.top(MOST))})
    };
    outside.processes().into_iter().map(one).collect()
}

/// As objects.
pub(crate) fn places_json(places: &[Placed]) -> Value {
    let one = |placed: &Placed| json!({"where": placed.place, "ns": placed.ns, "percent": placed.percent});
    places.iter().map(one).collect()
}

/// A line for each process; of many, for those with most time.
pub(crate) fn lines(outside: &Outside) -> Vec<String> {
    let processes = outside.processes();
    let mut lines: Vec<String> = processes.iter().take(FEW).flat_map(of_process).collect();
    if processes.len() > FEW {
        lines.push(plural((processes.len() - FEW) as u64, "more process") + " (JSON has all)");
    }
    lines
}

fn of_process((pid, Whereabouts { long, between }): &(u32, &Whereabouts)) -> Vec<String> {
    let for_long = (long.samples > 0).then(|| {
        let (samples, time) = (plural(long.samples, "sample"), duration(long.ns));
        format!(
            "process {pid}, for 1 ms or more: {} ({samples} of {time})",
            shares(&long.top(TOP))
        )
    });
    let for_less = (between.samples > 0).then(|| {
        let looks = plural(between.samples, "look");
        format!(
            "process {pid}, for less, between calls: {} ({looks})",
            shares(&between.top(TOP))
        )
    });
    for_long.into_iter().chain(for_less).collect()
}

/// The same below their title, for a summary.
pub(crate) fn to_text(outside: &Outside) -> String {
    let lines = lines(outside);
    let title = (!lines.is_empty()).then(|| format!("\n{TITLE}\n"));
    let lines = lines.iter().map(|line| format!("  {line}\n"));
    title.into_iter().chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_places_by_their_share() {
        assert_eq!(to_text(&Outside::default()), "");
        let mut outside = Outside::default();
        outside.add(7, Some("train.py:10 load_batch"), 97_000_000);
        outside.add(7, Some("train.py:20 log"), 3_000_000);
        let text = to_text(&outside);
        let line = "  process 7, for 1 ms or more: 97 % in train.py:10 load_batch, 3 % in train.py:20 log (2 samples of 100.0 ms)\n";
        assert!(text.ends_with(line), "{text}");
        assert_eq!(to_json(&outside)[0]["places"][0]["percent"], 97);
        (0..3).for_each(|_| outside.look(7, Some("train.py:30 step")));
        outside.look(7, None);
        let line = "  process 7, for less, between calls: 75 % in train.py:30 step, 25 % elsewhere (4 looks)\n";
        assert!(to_text(&outside).ends_with(line), "{}", to_text(&outside));
        assert_eq!(to_json(&outside)[0]["looks_between"], 4);
    }
}
