//! What devices have executed, added up from rows: of a part of a recording, and of one that has no totals. Totals, where there are
//! any, know more: why gaps are that are too short for a row, and which line it was for.

use crate::catalog::CopyKind;
use crate::model::activity::{Busy, Total, Why};
use crate::model::snapshot::executed::{Copies, Device, Executed, IdleCause, Kernel, Matched, Overhead};
use crate::model::work::Certainty;
use crate::record::{Kind, Record, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Devices of processes, and names of kernels of each, that are told apart.
const DEVICES: usize = 1024;
const NAMES: usize = 1 << 14;

/// Rows of devices.
#[derive(Debug, Clone, Default)]
pub(super) struct ExecutedTally {
    devices: BTreeMap<(u32, u32), Tally>,
    overheads: BTreeMap<(u32, String), Total>,
    matched: Matched,
}

#[derive(Debug, Clone, Default)]
struct Tally {
    busy: Busy,
    kernels: HashMap<String, Total>,
    /// With their bytes.
    copies: BTreeMap<Option<&'static str>, (Total, u64)>,
    memsets: Total,
    graphs: Total,
    in_graphs: u64,
    gaps: Gaps,
}

/// Why nothing ran.
#[derive(Debug, Clone, Default)]
struct Gaps {
    causes: BTreeMap<&'static str, Total>,
    /// The outermost two, which may lie before the first activity and behind the last.
    first: Option<Gap>,
    last: Option<Gap>,
}

#[derive(Debug, Clone, Copy)]
struct Gap {
    from: u64,
    to: u64,
    why: Why,
}

impl ExecutedTally {
    /// A row of a device.
    pub(super) fn take(&mut self, event: &Record<'_>) {
        match event.kind {
            Kind::Gpu => self.ran(event),
            Kind::Idle | Kind::DeviceIdle => self.gap(event),
            Kind::Overhead => self.overhead(event),
            _ => {}
        }
    }

    fn device(&mut self, event: &Record<'_>) -> Option<&mut Tally> {
        let key = (event.pid, event.args.and_then(json::device_of_activity)?);
        let known = self.devices.len() < DEVICES || self.devices.contains_key(&key);
        known.then(|| self.devices.entry(key).or_default())
    }

    fn ran(&mut self, event: &Record<'_>) {
        let ordered = event.args.and_then(json::call_of_activity).is_some();
        self.matched.activities += 1;
        self.matched.ordered += u64::from(ordered);
        if let Some(device) = self.device(event) {
            device.ran(event);
        }
    }

    fn gap(&mut self, event: &Record<'_>) {
        // a gap without a cause is a bound that calls prove
        let Some(why) = Why::from_name(event.name) else { return };
        if let Some(device) = self.device(event) {
            let (from, to) = (unsigned(event.at), unsigned(event.end()));
            device.gaps.take(Gap { from, to, why });
        }
    }

    fn overhead(&mut self, event: &Record<'_>) {
        let key = (event.pid, event.name.to_owned());
        self.overheads.entry(key).or_default().add(event.ns.unwrap_or(0));
    }

    /// What they add up to; `None`: no device has told anything. `whole`: what totals of the whole recording say, which is how far
    /// its rows can be relied on; of a process that was recorded in windows alone rows do not say when nothing ran.
    pub(super) fn report(&self, whole: Option<&Executed>) -> Option<Executed> {
        let in_windows = |pid: u32| whole.is_some_and(|whole| whole.windows_of(pid).is_some());
        let devices = self.devices.iter().filter(|((pid, _), _)| !in_windows(*pid));
        let mut devices: Vec<Device> = devices
            .filter_map(|((pid, device), tally)| tally.report(*pid, *device, whole))
            .collect();
        devices.sort_by_key(|device| (Reverse(device.idle_ns), device.pid, device.device));
        let overheads = self.overheads.iter().map(|((pid, kind), sum)| Overhead {
            pid: *pid,
            kind: kind.clone(),
            count: sum.count,
            total_ns: sum.ns,
            max_ns: sum.max_ns,
        });
        let mut overheads: Vec<Overhead> = overheads.collect();
        overheads.sort_by_key(|overhead| (overhead.pid, Reverse(overhead.total_ns)));
        (!devices.is_empty()).then_some(Executed {
            devices,
            overheads,
            matched: self.matched,
            ..Executed::default()
        })
    }
}

impl Tally {
    fn ran(&mut self, event: &Record<'_>) {
        let ns = event.ns.unwrap_or(0);
        let begin = unsigned(event.at);
        self.busy.add(begin, begin.saturating_add(ns));
        let args = event.args.unwrap_or("");
        match json::kind_of_activity(args) {
            Some("copy") => self.copied(event, ns),
            Some("memset") => self.memsets.add(ns),
            Some("graph") => self.graphs.add(ns),
            _ => {
                self.in_graphs += u64::from(json::graph_of_activity(args).is_some());
                self.launched(event.name, ns);
            }
        }
    }

    fn copied(&mut self, event: &Record<'_>, ns: u64) {
        let direction = event.direction.map(CopyKind::name);
        let (total, bytes) = self.copies.entry(direction).or_default();
        total.add(ns);
        *bytes = bytes.saturating_add(event.bytes.unwrap_or(0));
    }

    fn launched(&mut self, name: &str, ns: u64) {
        let name = match self.kernels.len() < NAMES || self.kernels.contains_key(name) {
            true => name,
            false => "",
        };
        match self.kernels.get_mut(name) {
            Some(total) => total.add(ns),
            None => self.kernels.entry(name.to_owned()).or_default().add(ns),
        }
    }

    fn report(&self, pid: u32, device: u32, whole: Option<&Executed>) -> Option<Device> {
        let span = self.busy.span()?;
        let mut told = whole.into_iter().flat_map(|whole| &whole.devices);
        let told = told.find(|told| (told.pid, told.device) == (pid, device));
        let named = self.kernels.iter().map(|(name, sum)| Kernel {
            name: Some(name.clone()).filter(|name| !name.is_empty()),
            runs: sum.count,
            total_ns: sum.ns,
            max_ns: sum.max_ns,
            ..Kernel::default()
        });
        let mut by_kernel: Vec<Kernel> = named.collect();
        by_kernel.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
        let copies = self.copies.iter().map(|(direction, (total, bytes))| Copies {
            direction: direction.map(str::to_owned),
            count: total.count,
            bytes: *bytes,
            total_ns: total.ns,
        });
        Some(Device {
            pid,
            device,
            kernels: by_kernel.iter().map(|kernel| kernel.runs).sum(),
            in_graphs: self.in_graphs,
            kernel_ns: super::sum(by_kernel.iter().map(|kernel| kernel.total_ns)),
            memsets: self.memsets.count,
            memset_ns: self.memsets.ns,
            graphs: self.graphs.count,
            graph_ns: self.graphs.ns,
            copies: copies.collect(),
            busy_ns: span.busy_ns,
            idle_ns: span.idle_ns(),
            idle_gaps: span.gaps,
            unmeasured_ns: span.unmeasured_ns,
            longest_idle_ns: span.longest_gap_ns,
            idle_causes: self.gaps.causes(span.first, span.last),
            steady: None,
            certainty: told.map_or_else(|| Certainty::Bound.name().to_owned(), |told| told.certainty.clone()),
            by_kernel,
        })
    }
}

impl Gaps {
    /// Gaps of a device do not overlap, and come in any order.
    fn take(&mut self, gap: Gap) {
        let Some(first) = self.first else {
            self.first = Some(gap);
            return;
        };
        let (first, gap) = if gap.from < first.from {
            (gap, first)
        } else {
            (first, gap)
        };
        self.first = Some(first);
        let Some(last) = self.last else {
            self.last = Some(gap);
            return;
        };
        let (last, between) = if gap.to > last.to { (gap, last) } else { (last, gap) };
        self.last = Some(last);
        between.count_in(&mut self.causes);
    }

    /// By cause, most time first, of gaps between the first activity and the last.
    fn causes(&self, first: u64, last: u64) -> Vec<IdleCause> {
        let mut causes = self.causes.clone();
        let outermost = self.first.iter().chain(&self.last);
        let within = outermost.filter(|gap| gap.from >= first && gap.to <= last);
        within.for_each(|gap| gap.count_in(&mut causes));
        let causes = causes.into_iter().map(|(cause, total)| IdleCause {
            cause: cause.to_owned(),
            idle_ns: total.ns,
            gaps: total.count,
            longest_ns: total.max_ns,
            place: None,
            where_percent: None,
            where_estimated: false,
        });
        let mut causes: Vec<IdleCause> = causes.collect();
        causes.sort_by_key(|cause| Reverse(cause.idle_ns));
        causes
    }
}

impl Gap {
    fn count_in(&self, causes: &mut BTreeMap<&'static str, Total>) {
        let ns = self.to.saturating_sub(self.from);
        causes.entry(self.why.name()).or_default().add(ns);
    }
}

/// In the same order, though the trace may begin later.
fn unsigned(at: i64) -> u64 {
    at.wrapping_sub(i64::MIN).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::snapshot::executed::{Coverage, Windows};

    const ARGS: &str = r#"{"activity":"kernel","device":0,"context":1,"match":"none"}"#;

    fn row(kind: Kind, name: &'static str, at: i64, ns: u64) -> Record<'static> {
        Record {
            ns: Some(ns),
            name,
            args: Some(ARGS),
            ..Record::new(kind, at, 7)
        }
    }

    fn told(rows: &[Record<'_>]) -> ExecutedTally {
        let mut tally = ExecutedTally::default();
        rows.iter().for_each(|row| tally.take(row));
        tally
    }

    fn whole(certainty: Certainty, windows: Option<Windows>) -> Executed {
        Executed {
            devices: vec![Device {
                pid: 7,
                certainty: certainty.name().to_owned(),
                ..Device::default()
            }],
            coverage: vec![Coverage {
                pid: 7,
                windows,
                ..Coverage::default()
            }],
            ..Executed::default()
        }
    }

    #[test]
    fn of_a_part_gaps_count_between_its_first_activity_and_its_last() {
        let rows = [
            row(Kind::Idle, "blocked", -500, 500), // cut where the part begins
            row(Kind::Gpu, "gemm", 0, 100),
            row(Kind::Gpu, "gemm", 50, 100), // beside it
            row(Kind::Idle, "host-code", 150, 850),
            row(Kind::Gpu, "norm", 1000, 10),
            row(Kind::Idle, "host-code", 1010, 90),
            row(Kind::Gpu, "norm", 1100, 10),
            row(Kind::Idle, "blocked", 1110, 4000),
        ];
        for order in [rows.to_vec(), rows.iter().rev().copied().collect()] {
            let tally = told(&order);
            let report = tally.report(Some(&whole(Certainty::Measured, None))).unwrap();
            let device = &report.devices[0];
            assert!(device.is_measured());
            assert_eq!((device.busy_ns, device.idle_ns, device.idle_gaps), (170, 940, 2));
            let causes: Vec<_> = device
                .idle_causes
                .iter()
                .map(|one| (one.cause.as_str(), one.idle_ns, one.gaps))
                .collect();
            assert_eq!(causes, [("host-code", 940, 2)]);
            let kernels: Vec<_> = device
                .by_kernel
                .iter()
                .map(|one| (one.name.as_deref(), one.runs, one.total_ns))
                .collect();
            assert_eq!(kernels, [(Some("gemm"), 2, 200), (Some("norm"), 2, 20)]);
        }
    }

    #[test]
    fn what_rows_cannot_be_relied_on_for_is_no_measure() {
        let tally = told(&[row(Kind::Gpu, "gemm", 0, 100), row(Kind::Gpu, "gemm", 500, 100)]);
        let certainty = |whole: Option<&Executed>| tally.report(whole).map(|told| told.devices[0].certainty.clone());
        assert_eq!(certainty(None).as_deref(), Some("bound"), "nobody says that all came");
        assert_eq!(
            certainty(Some(&whole(Certainty::Bound, None))).as_deref(),
            Some("bound")
        );
        let windows = whole(Certainty::Measured, Some(Windows::default()));
        assert_eq!(
            certainty(Some(&windows)),
            None,
            "between windows it is not known whether anything ran"
        );
        assert_eq!(told(&[]).report(None), None);
    }
}
