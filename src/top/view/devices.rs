//! One line for each device, and for each of its parts.

use super::spark;
use crate::serve::display::Look;
use crate::text::quantity::{escaped, form};
use crate::top::cells::{bound, bytes, part, percent};
use crate::top::columns::{ALWAYS, Column, Key, fitting, line, number};
use crate::top::model::Device;
use crate::top::model::history::{DevicePoint, History};
use unicode_width::UnicodeWidthStr;

const fn column(title: &'static str, width: usize, rank: u8, text: fn(&Device) -> Option<String>) -> Column<Device> {
    number((title, ""), width, rank, text, |_| Key::Unknown)
}

/// From left to right; the name takes what room there is.
static COLUMNS: [Column<Device>; 19] = [
    column("gpu", 3, 0, |one| Some(escaped(&one.gpu))),
    column("util", 4, 1, |one| one.utilization.map(percent)),
    column("busy", 5, 2, busy),
    column("sm", 4, 8, |one| one.sm_activity.map(percent)),
    column("tensor", 6, 9, |one| one.tensor_activity.map(percent)),
    column("memory", 11, 1, |one| {
        one.used_bytes
            .zip(one.total_bytes)
            .map(|(used, total)| part(used, total))
    }),
    column("tracked", 7, 3, |one| one.tracked_bytes.map(bytes)),
    column("unattr", 6, 7, |one| one.unattributed_bytes.map(bytes)),
    column("power", 9, 4, power),
    column("temp", 5, 4, |one| one.celsius.map(|celsius| format!("{celsius:.0}°C"))),
    column("MHz", 4, 6, |one| one.sm_hertz.map(megahertz)),
    column("memMHz", 6, 15, |one| one.memory_hertz.map(megahertz)),
    column("rx/s", 6, 10, |one| one.pcie_received_per_second.map(bytes)),
    column("tx/s", 6, 10, |one| one.pcie_sent_per_second.map(bytes)),
    column("nvl rx/s", 8, 12, |one| one.nvlink_received_per_second.map(bytes)),
    column("nvl tx/s", 8, 12, |one| one.nvlink_sent_per_second.map(bytes)),
    column("xid", 7, 5, xids),
    column("held down", 14, 11, held_down),
    Column {
        left: true,
        ..column("name", 12, 0, |one| Some(escaped(&one.name)))
    },
];

fn busy(device: &Device) -> Option<String> {
    let sign = if device.busy_is_inferred { "≲" } else { "≤" };
    device.busy_at_most.map(|share| bound(sign, share))
}

fn power(device: &Device) -> Option<String> {
    Some(match (device.power_watts?, device.power_limit_watts) {
        (now, Some(limit)) => format!("{now:.0}/{limit:.0}W"),
        (now, None) => format!("{now:.0}W"),
    })
}

fn megahertz(hertz: f64) -> String {
    format!("{:.0}", hertz / 1e6)
}

/// Codes, the more often the first.
fn xids(device: &Device) -> Option<String> {
    let all = device.xids.iter().filter(|(_, count)| **count > 0);
    let all: Vec<String> = all.map(|(code, count)| format!("{}x{count}", escaped(code))).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

fn held_down(device: &Device) -> Option<String> {
    let reasons: Vec<String> = device.held_down_by.iter().map(|reason| escaped(reason)).collect();
    (!reasons.is_empty()).then(|| reasons.join(","))
}

/// The heading and a line for each device, with its parts below it; none without a device. With `history` its last minutes,
/// where there is room, and columns stand where they are; without, those that say nothing are left out.
pub(crate) fn lines(devices: &[Device], history: Option<&History>, width: usize) -> Vec<(Look, String)> {
    if devices.is_empty() {
        return Vec::new();
    }
    let stands = |column: &Column<Device>| history.is_some() && column.rank <= ALWAYS;
    let is_known = |column: &Column<Device>| stands(column) || devices.iter().any(|one| (column.text)(one).is_some());
    let chosen = fitting(&COLUMNS, width, is_known);
    let names = devices
        .iter()
        .map(|device| escaped(&device.name).width())
        .max()
        .unwrap_or(0);
    let room = history.map_or(0, |_| spark_room(&chosen, names, width));
    let text_width = width.saturating_sub(room);
    let heading = line(&COLUMNS, &chosen, text_width, |column| column.title.to_owned());
    let heading = if room > 0 {
        format!("{heading} util, 2 min")
    } else {
        heading
    };
    let mut lines = vec![(Look::Heading, heading)];
    for device in devices {
        let text = line(&COLUMNS, &chosen, text_width, |column| said(device, column));
        let drawn = utilization(history, &device.gpu, room.saturating_sub(1));
        let look = if device.up && device.xids.is_empty() {
            Look::Plain
        } else {
            Look::Wrong
        };
        lines.push((look, format!("{text} {drawn}").trim_end().to_owned()));
        lines.extend(device.parts.iter().map(|part| (Look::Plain, mig(part))));
    }
    lines
}

fn said(device: &Device, column: &Column<Device>) -> String {
    match (column.text)(device) {
        _ if column.title == "name" && !device.up => format!("(no answer) {}", escaped(&device.name)),
        Some(text) => text,
        None => "-".to_owned(),
    }
}

/// For the picture beside the table: what its name does not need.
fn spark_room(chosen: &[usize], names: usize, width: usize) -> usize {
    const LEAST: usize = 14;
    let columns = chosen.iter().filter_map(|place| COLUMNS.get(*place));
    let fixed: usize = columns.map(|column| column.width + 1).sum::<usize>();
    let name = COLUMNS.last().map_or(0, |column| column.width);
    let rest = width.saturating_sub(fixed + names.max(name) - name);
    if rest < LEAST { 0 } else { rest.min(61) }
}

fn utilization(history: Option<&History>, gpu: &str, width: usize) -> String {
    let points: Vec<(f64, f64)> = history
        .into_iter()
        .flat_map(|history| history.device(gpu))
        .map(|point: &DevicePoint| (point.at, point.utilization))
        .collect();
    spark::line(&points, width, Some(1.0))
}

fn mig(part: &crate::top::model::Part) -> String {
    let memory = part.used_bytes.zip(part.total_bytes);
    let memory = memory.map(|(used, total)| crate::top::cells::part(used, total));
    let share = |name: &str, share: Option<f64>| share.map(|share| format!("{name} {}", percent(share)));
    let words = [
        Some(format!(
            "MIG {} {}",
            escaped(&part.gpu_instance),
            escaped(&part.profile)
        )),
        memory,
        share("sm", part.sm_activity),
        share("tensor", part.tensor_activity),
        (part.processes > 0).then(|| format!("{} {}", part.processes, form(part.processes, "process", "processes"))),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    format!("      {}", words.join("  "))
}
