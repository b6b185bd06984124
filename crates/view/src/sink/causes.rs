//! Why devices waited, in the summary: as text and as JSON.

use super::work::Stacks;
use crate::frame::lines::frame_place;
use crate::model::activity::{CauseTotal, DeviceReport, Why};
use crate::section::text::Ink;
use crate::section::{self, Cell, Column, Table};
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

/// The causes of one device.
pub(super) fn to_json(device: &DeviceReport, stacks: &Stacks) -> Value {
    let micros = |ns: u64| json!(ns as f64 / 1e3);
    let causes = device.causes.iter().map(|cause| {
        json!({
            "cause": cause.why.name(),
            "idle_us": micros(cause.total.ns),
            "gaps": cause.total.count,
            "longest_us": micros(cause.total.max_ns),
            "where": place(cause, stacks),
        })
    });
    causes.collect()
}

/// Of a device; nothing where causes were not looked for.
pub(super) fn to_text(device: &DeviceReport, stacks: &Stacks, out: &mut String) {
    let idle_ns = device.span.idle_ns();
    let known = device.causes.iter().filter(|cause| cause.why != Why::Other);
    let known_ns = known.fold(0u64, |sum, cause| sum.saturating_add(cause.total.ns));
    let Some(share) = share_down(known_ns, idle_ns).filter(|_| !device.causes.is_empty()) else {
        return;
    };
    let _ = writeln!(out, "    why it waited: known of {share} of {}", duration(idle_ns));
    let columns = vec![
        Column::text("because"),
        Column::text("from").after(" at "),
        Column::number("time"),
        Column::number("share"),
        Column::number("gaps"),
        Column::number("longest"),
    ];
    let rows = device.causes.iter().map(|cause| {
        vec![
            Cell::Text(format!("{} ({})", cause.why.words(), cause.why.name())),
            Cell::of(place(cause, stacks), Cell::site),
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
    use crate::model::activity::{Span, Total};

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
        to_text(&device, &stacks, &mut text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn of_a_device_whose_causes_were_not_looked_for_nothing_is_said() {
        let (mut device, stacks) = device();
        device.causes.clear();
        let mut text = String::new();
        to_text(&device, &stacks, &mut text);
        assert_eq!((text.as_str(), to_json(&device, &stacks)), ("", json!([])));
    }
}
