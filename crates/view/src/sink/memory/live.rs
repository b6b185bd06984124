//! The live table: one line for each device of each process, and the largest call sites.

use super::text::by_size;
use super::words::{name, place};
use super::{Rates, sites};
use crate::frame::lines::frame_place;
use crate::model::memory::{Account, HOST, ProcessReport, Report, SiteReport};
use crate::text::quantity::{bytes, count};

const SITES: usize = 5;

/// Lines without any control character, to be cut where the terminal ends. At most `height` of them.
pub fn table(report: &Report, rates: &Rates, height: usize) -> Vec<String> {
    let mut processes = by_size(report);
    processes.sort_by_key(|process| process.ended_at.is_some());
    let devices = processes.iter().flat_map(|process| &process.devices);
    let with_driver = devices.into_iter().any(|device| device.driver_bytes.is_some());
    let mut lines = vec![
        format!(
            "memory at {:.0} s; Ctrl-C ends it with the full report",
            report.seconds()
        ),
        format!(
            "{:>10}{} {:>10} {:>9} {:>9} {:>7}  process",
            "held",
            column(with_driver, "driver"),
            "peak",
            "alloc/s",
            "free/s",
            "failed"
        ),
    ];
    for process in &processes {
        lines.extend(rows(process, rates, with_driver));
    }
    let largest = largest(report, &processes);
    let room = height.saturating_sub(largest.len()).max(3);
    if lines.len() > room {
        let hidden = lines.len() - (room - 1);
        lines.truncate(room - 1);
        lines.push(format!("… {hidden} more lines"));
    }
    lines.extend(largest);
    lines.truncate(height);
    lines
}

/// What the driver says, where it says anything.
fn column(with_driver: bool, text: &str) -> String {
    match with_driver {
        true => format!(" {text:>10}"),
        false => String::new(),
    }
}

fn rows(process: &ProcessReport, rates: &Rates, with_driver: bool) -> Vec<String> {
    let devices = process
        .devices
        .iter()
        .map(|device| (device.device, &device.account, device.driver_bytes));
    let all = devices.chain([(HOST, &process.host, None)]);
    all.filter(|(_, account, driver)| account.is_used() || driver.is_some())
        .map(|(device, account, driver)| row(process, (device, account), driver, with_driver, rates))
        .collect()
}

fn row(
    process: &ProcessReport,
    (device, account): (i16, &Account),
    driver: Option<u64>,
    with_driver: bool,
    rates: &Rates,
) -> String {
    let rate = rates.of(process, device);
    let ended = match process.ended_at {
        Some(_) => ", ended",
        None => "",
    };
    format!(
        "{:>10}{} {:>10} {:>9.1} {:>9.1} {:>7}  {}, {}{ended}",
        bytes(account.held_bytes),
        column(with_driver, &driver.map_or_else(|| "-".to_owned(), bytes)),
        bytes(account.peak_bytes),
        rate.allocations,
        rate.frees,
        count(account.failed_allocations),
        name(process),
        place(device),
    )
}

/// The largest call sites of all processes, as far as they are known.
fn largest(report: &Report, processes: &[&ProcessReport]) -> Vec<String> {
    let mut known: Vec<(&SiteReport, String)> = processes
        .iter()
        .flat_map(|process| sites::held(process))
        .filter_map(|site| Some((site, frame_place(report.stacks.get(&site.site)?)?)))
        .collect();
    known.sort_by_key(|(site, _)| std::cmp::Reverse(site.account.held_bytes));
    let line = |(site, place): &(&SiteReport, String)| {
        let number = count(site.account.outstanding);
        format!(
            "{:>10} {number:>10} allocated by {place}",
            bytes(site.account.held_bytes)
        )
    };
    known.iter().take(SITES).map(line).collect()
}
