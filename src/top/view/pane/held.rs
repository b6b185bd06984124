//! What the selected process holds: by call site, and one by one.

use super::Section;
use crate::text::quantity::{duration, escaped, plural};
use crate::top::cells::bytes;
use crate::top::model::{Allocations, Closeup, Single};
use std::time::Duration;

pub(super) fn by_site(closeup: &Closeup) -> Section {
    let held = closeup.allocations.iter().filter(|held| held.bytes > 0);
    let one = |held: &Allocations| {
        let device = held.device.map_or(String::new(), |device| format!(", device {device}"));
        let age = |seconds: f64| duration((seconds * 1e9) as u64);
        let (oldest, newest) = (age(held.oldest_seconds), age(held.newest_seconds));
        let words = format!(
            "{:>7} in {}  {} ({}{device}), oldest {oldest}, newest {newest}",
            bytes(held.bytes as f64),
            plural(held.count, "allocation"),
            place_of(&held.function, held.place.as_deref()),
            held.family
        );
        (false, words)
    };
    Section {
        title: "holds, by call site".to_owned(),
        lines: held.map(one).collect(),
    }
}

/// `older`: what is shown is as old.
pub(super) fn one_by_one(closeup: &Closeup, older: Duration) -> Option<Section> {
    let single = closeup.single.as_ref()?;
    let one = |single: &Single| {
        let device = single
            .device
            .map_or(String::new(), |device| format!(", device {device}"));
        let words = format!(
            "{:<14} {:>7} {:>8}  {} ({}{device})",
            single.address.as_deref().unwrap_or("not mapped"),
            bytes(single.bytes as f64),
            duration((single.age_seconds * 1e9) as u64),
            place_of(&single.function, single.place.as_deref()),
            single.family
        );
        (false, words)
    };
    let mut lines: Vec<(bool, String)> = single.iter().map(one).collect();
    match (lines.is_empty(), closeup.single_left_out) {
        (true, _) if older.is_zero() => lines.push((false, "none that was seen made".to_owned())),
        (true, _) => lines.push((false, "none so old that was seen made".to_owned())),
        (false, 0) => {}
        (false, more) => lines.push((false, format!("and {}", plural(more, "smaller allocation")))),
    }
    let which = match older.is_zero() {
        true => String::new(),
        false => format!(" for {} and more", duration(older.as_nanos() as u64)),
    };
    Some(Section {
        title: format!("address           bytes      age  held{which} (a: older ones)"),
        lines,
    })
}

/// The line before the function: it says more, where there is not room for both.
fn place_of(function: &str, place: Option<&str>) -> String {
    let function = escaped(function);
    place.map_or_else(|| function.clone(), |place| format!("{}: {function}", escaped(place)))
}
