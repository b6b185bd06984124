//! One line for each owner, the busiest first.

use super::columns::Table;
use super::pace::Rates;
use super::reading::{label, number};
use super::units::{bytes, count, percent};
use super::waited::Waited;
use super::{Line, Look};
use crate::owner::Owner;
use crate::serve::metric::Sample;
use crate::text::quantity::{count as whole, escaped};
use std::collections::HashMap;

/// Of the number of a container.
const SHORT_ID: usize = 12;

/// What one owner does and holds; `None` is not measured.
#[derive(Debug, Default, Clone)]
struct Work {
    calls: Option<f64>,
    launches: Option<f64>,
    to_device: Option<f64>,
    from_device: Option<f64>,
    other_copies: Option<f64>,
    waited: Waited,
    held: Option<f64>,
    unattributed: Option<f64>,
}

/// Nothing where no owner is known.
pub(super) fn lines(scrape: &[Sample], rates: &Rates, top: usize) -> Vec<Line> {
    let mut all = owners(scrape, rates);
    if all.is_empty() {
        return Vec::new();
    }
    let busy = |work: &Work| [work.held, work.calls].map(|value| value.unwrap_or(0.0));
    all.sort_by(|(left_name, left), (right_name, right)| {
        let [held, calls] = busy(left);
        let [other_held, other_calls] = busy(right);
        let first = other_held.total_cmp(&held).then(other_calls.total_cmp(&calls));
        first.then_with(|| left_name.cmp(right_name))
    });
    let mut table = Table::new(&[
        "calls/s", "launch/s", "HtoD/s", "DtoH/s", "copy/s", "wait", "held", "unattr", "who",
    ]);
    for (name, work) in all.iter().take(top) {
        table.add(row(name, work));
    }
    let mut lines: Vec<Line> = table.lines().into_iter().map(|text| (Look::Plain, text)).collect();
    if let Some(heading) = lines.first_mut() {
        heading.0 = Look::Heading;
    }
    if all.len() > top {
        lines.push((Look::Plain, more(&all[top..])));
    }
    lines
}

/// What is not shown, in sum.
fn more(rest: &[(String, Work)]) -> String {
    let sum = |of: fn(&Work) -> Option<f64>| rest.iter().filter_map(|(_, work)| of(work)).sum::<f64>();
    let (calls, held) = (count(sum(|work| work.calls)), bytes(sum(|work| work.held)));
    format!("… and {} more: {calls} calls/s, {held} held", whole(rest.len() as u64))
}

fn owners(scrape: &[Sample], rates: &Rates) -> Vec<(String, Work)> {
    let mut by_owner: HashMap<&Owner, Work> = HashMap::new();
    for sample in scrape {
        let Some(owner) = &sample.owner else { continue };
        let is_wait = [
            "gpuscope_sync_blocked_seconds_total",
            "gpuscope_hidden_wait_seconds_total",
        ];
        if is_wait.contains(&sample.metric.name) {
            let waited = &mut by_owner.entry(owner).or_default().waited;
            waited.add(sample, rates.per_second(sample));
        }
        let Some((place, value)) = part(sample, rates) else {
            continue;
        };
        let work = by_owner.entry(owner).or_default();
        let sum = place(work);
        *sum = match (*sum, value) {
            (Some(sum), Some(value)) => Some(sum + value),
            (sum, value) => sum.or(value),
        };
    }
    by_owner.into_iter().map(|(owner, work)| (who(owner), work)).collect()
}

type Place = fn(&mut Work) -> &mut Option<f64>;

/// Where a sample belongs, and what it adds there.
fn part(sample: &Sample, rates: &Rates) -> Option<(Place, Option<f64>)> {
    let place: Place = match sample.metric.name {
        "gpuscope_api_calls_total" => |work| &mut work.calls,
        "gpuscope_launches_total" => |work| &mut work.launches,
        "gpuscope_copy_bytes_total" => match label(sample, "direction") {
            "HtoD" => |work| &mut work.to_device,
            "DtoH" => |work| &mut work.from_device,
            _ => |work| &mut work.other_copies,
        },
        "gpuscope_memory_held_bytes" => return Some((|work| &mut work.held, Some(number(sample)))),
        "gpuscope_memory_unattributed_bytes" | "gpuscope_memory_earlier_bytes" => {
            return Some((|work| &mut work.unattributed, Some(number(sample))));
        }
        _ => return None,
    };
    Some((place, rates.per_second(sample)))
}

fn row(name: &str, work: &Work) -> Vec<Option<String>> {
    vec![
        work.calls.map(count),
        work.launches.map(count),
        work.to_device.map(bytes),
        work.from_device.map(bytes),
        work.other_copies.map(bytes),
        work.waited.at_least().map(percent),
        work.held.map(bytes),
        work.unattributed.map(bytes),
        Some(name.to_owned()),
    ]
}

/// `python ns/pod/container`, or what else is known.
pub(super) fn who(owner: &Owner) -> String {
    let get = |name| owner.get(name).filter(|value| !value.is_empty());
    let pod: Vec<&str> = ["namespace", "pod", "container"].into_iter().filter_map(get).collect();
    let mut parts: Vec<String> = get("comm").map(str::to_owned).into_iter().collect();
    match (pod.is_empty(), get("container_id"), get("unit")) {
        (false, _, _) => parts.push(pod.join("/")),
        (true, Some(id), _) => parts.push(id.chars().take(SHORT_ID).collect()),
        (true, None, unit) => parts.extend(unit.map(str::to_owned)),
    }
    const SAID: [&str; 6] = ["comm", "namespace", "pod", "container", "container_id", "unit"];
    let others = owner.labels.iter().filter(|(name, _)| !SAID.contains(&name.as_str()));
    parts.extend(others.map(|(name, value)| format!("{name}={value}")));
    match parts.is_empty() {
        true => "all processes".to_owned(),
        false => escaped(&parts.join(" ")),
    }
}
