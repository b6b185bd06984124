//! Why devices waited, in the summary: as text and as JSON.

use super::micros;
use super::work::Stacks;
use crate::frame::lines::frame_place;
use crate::model::activity::{CauseTotal, DeviceReport, Why};
use crate::section::text::Ink;
use crate::section::{self, Cell, Column, Part, Table};
use crate::text::quantity::{duration, share_down};
use serde_json::{Value, json};
use std::fmt::Write;

/// Causes of a device that are shown where there is little room.
const FEW: usize = 5;

/// Where most of it came from.
fn place(cause: &CauseTotal, stacks: &Stacks) -> Option<String> {
    let site = || frame_place(stacks.get(&cause.site?)?);
    cause.place.clone().or_else(site)
}

/// So many per cent of it came from there: at least, or by an estimate.
fn percent(cause: &CauseTotal) -> u64 {
    u128::from(cause.there_ns)
        .saturating_mul(100)
        .checked_div(u128::from(cause.total.ns))
        .map_or(0, |percent| percent.min(100) as u64)
}

/// Of one device, or of a part of its time.
pub(super) fn to_json(causes: &[CauseTotal], stacks: &Stacks) -> Value {
    let causes = causes.iter().map(|cause| {
        let place = place(cause, stacks);
        json!({
            "cause": cause.why.name(),
            "idle_us": micros(cause.total.ns),
            "gaps": cause.total.count,
            "longest_us": micros(cause.total.max_ns),
            "where": place,
            "where_percent": place.as_ref().map(|_| percent(cause)),
            "where_estimated": place.is_some() && cause.estimated,
        })
    });
    causes.collect()
}

/// Between start-up and end; null where that is nearly all, or not known.
pub(super) fn steady_json(device: &DeviceReport, stacks: &Stacks) -> Value {
    let steady = device.steady.as_ref().map(|part| {
        json!({
            "from_ns": part.from,
            "until_ns": part.until,
            "idle_us": micros(part.idle_ns),
            "idle_causes": to_json(&part.causes, stacks),
        })
    });
    json!(steady)
}

/// Of a device, of the part between start-up and end where that is told apart; nothing where causes were not looked for.
/// `most`: what is said before its idle time.
pub(super) fn to_text(device: &DeviceReport, most: &str, stacks: &Stacks, out: &mut String) {
    let Some(part) = &device.steady else {
        return causes_text(&device.causes, device.span.idle_ns(), "", stacks, out);
    };
    let of_ns = part.until - part.from;
    let share = part.idle_ns as f64 * 100.0 / of_ns.max(1) as f64;
    let idle = duration(part.idle_ns);
    let _ = writeln!(
        out,
        "    between start-up and end: idle{most} {idle} of {} ({share:.1} %)",
        duration(of_ns)
    );
    causes_text(&part.causes, part.idle_ns, " there", stacks, out);
}

fn causes_text(causes: &[CauseTotal], idle_ns: u64, place_words: &str, stacks: &Stacks, out: &mut String) {
    let known = causes.iter().filter(|cause| cause.why != Why::Other);
    let known_ns = known.fold(0u64, |sum, cause| sum.saturating_add(cause.total.ns));
    let Some(share) = share_down(known_ns, idle_ns).filter(|_| !causes.is_empty()) else {
        return;
    };
    let idle = duration(idle_ns);
    let _ = writeln!(out, "    why it waited{place_words}: known of {share} of {idle}");
    let columns = vec![
        Column::text("because"),
        Column::text("from").after(" at "),
        Column::number("time"),
        Column::number("share"),
        Column::number("gaps"),
        Column::number("longest"),
    ];
    let rows = causes.iter().map(|cause| {
        vec![
            Cell::Text(format!("{} ({})", cause.why.words(), cause.why.name())),
            Cell::site_of(place(cause, stacks), Part::of(Some(percent(cause)), cause.estimated)),
            Cell::Duration(cause.total.ns),
            Cell::Share(cause.total.ns as f64 / idle_ns.max(1) as f64),
            Cell::Count(cause.total.count),
            Cell::Duration(cause.total.max_ns),
        ]
    });
    let table = Table {
        few: FEW,
        all_in: super::ALL_IN,
        ..Table::flat(columns, rows).of("cause").wide(&[10, 7, 10, 10])
    };
    section::text::table(&table, Ink(false), out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Frame, Language};
    use crate::model::activity::{PartIdle, Span, Total};

    fn cause(why: Why, ns: u64, site: Option<u64>, place: Option<&str>) -> CauseTotal {
        CauseTotal {
            why,
            total: Total {
                count: 9,
                ns,
                max_ns: ns / 2,
            },
            site,
            place: place.map(str::to_owned),
            there_ns: ns / 3,
            estimated: false,
        }
    }

    fn device() -> (DeviceReport, Stacks) {
        let device = DeviceReport {
            pid: 7,
            device: 0,
            kernels: Total::default(),
            in_graphs: 0,
            graphs: Total::default(),
            memsets: Total::default(),
            copies: Vec::new(),
            by_kernel: Vec::new(),
            other_kernels: Total::default(),
            span: Span {
                first: 0,
                last: 1_000_000_000,
                busy_ns: 200_000_000,
                ..Span::default()
            },
            steady: None,
            causes: vec![
                cause(Why::Blocked, 700_000_000, Some(30), Some("train.py:10 load\u{1b}")),
                cause(Why::SyncReturn, 90_000_000, Some(31), None),
                cause(Why::Other, 10_000_000, None, None),
            ],
        };
        let frame = Frame {
            function: "step".to_owned(),
            module: None,
            offset: None,
            file: Some("train.py".to_owned()),
            line: Some(3),
            language: Language::Python,
            inlined: false,
        };
        (device, [(31, vec![frame])].into_iter().collect())
    }

    #[test]
    fn causes_are_said_with_their_share_and_place_and_how_much_is_known() {
        let (device, stacks) = device();
        let mut text = String::new();
        to_text(&device, "", &stacks, &mut text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn where_start_up_is_told_apart_causes_are_those_of_what_follows() {
        let (mut device, stacks) = device();
        device.steady = Some(PartIdle {
            from: 600_000_000,
            until: 990_000_000,
            idle_ns: 100_000_000,
            causes: vec![cause(Why::SyncReturn, 100_000_000, Some(31), None)],
        });
        let mut text = String::new();
        to_text(&device, "", &stacks, &mut text);
        insta::assert_snapshot!(text);
        let told = steady_json(&device, &stacks);
        assert_eq!((&told["idle_us"], &told["from_ns"]), (&json!(1e5), &json!(600_000_000)));
        assert_eq!(told["idle_causes"][0]["where"], "train.py:3 step");
    }

    #[test]
    fn of_a_device_whose_causes_were_not_looked_for_nothing_is_said() {
        let (mut device, stacks) = device();
        device.causes.clear();
        let mut text = String::new();
        to_text(&device, "", &stacks, &mut text);
        assert_eq!((text.as_str(), to_json(&device.causes, &stacks)), ("", json!([])));
    }
}
