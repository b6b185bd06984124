//! Where the host was outside CUDA, as text and as JSON.

use crate::model::outside::{Outside, Placed, Places, shares};
use crate::text::quantity::{duration, plural};
use serde_json::{Value, json};

/// Above the lines.
pub(crate) const TITLE: &str = "threads that call CUDA, while outside of it for 1 ms or more (sampled)";
/// Places that are named.
const TOP: usize = 3;
/// In JSON.
const MOST: usize = 32;
/// Processes that a summary shows.
const FEW: usize = 8;

/// Each process with its samples.
pub(crate) fn to_json(outside: &Outside) -> Value {
    let one = |(pid, places): (u32, &Places)| {
        json!({"pid": pid, "samples": places.samples, "sampled_us": places.ns as f64 / 1e3,
            "places": places_json(&places.top(MOST))})
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
    let one = |(pid, places): &(u32, &Places)| {
        let (samples, time) = (plural(places.samples, "sample"), duration(places.ns));
        format!("process {pid}: {} ({samples} of {time})", shares(&places.top(TOP)))
    };
    let mut lines: Vec<String> = processes.iter().take(FEW).map(one).collect();
    if processes.len() > FEW {
        lines.push(plural((processes.len() - FEW) as u64, "more process") + " (JSON has all)");
    }
    lines
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
        let line = "  process 7: 97 % in train.py:10 load_batch, 3 % in train.py:20 log (2 samples of 100.0 ms)\n";
        assert!(text.ends_with(line), "{text}");
        assert_eq!(to_json(&outside)[0]["places"][0]["percent"], 97);
    }
}
