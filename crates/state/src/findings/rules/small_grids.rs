//! The device is busy by the clock, and most of its multiprocessors have nothing to do: kernels have fewer blocks than there are.
//!
//! A block runs on one multiprocessor. How many blocks a kernel has its record says, how many multiprocessors a device has CUPTI does;
//! where it does not, nothing is said.

use crate::catalog::Class;
use crate::findings::blocks::{Blocks, Filled, Kernel};
use crate::findings::evidence::{End, Evidence};
use crate::findings::seen::Seen;
use crate::findings::table::{Bounded, Grow, hash, is_percent, percent_of};
use crate::findings::{Rule, Wants};
use crate::model::activity::What;
use crate::model::finding::Finding;
use crate::model::kernel_name::is_collective;
use crate::model::work::Certainty;
use crate::record::{Kind, Record, json};
use crate::text::quantity::{duration, plural};

/// Of the time in which kernels ran, and of the steady part.
const FEW_PERCENT: u64 = 30;
const PERCENT: u64 = 10;
/// Devices of processes.
const DEVICES: usize = 1024;
/// Kernels of a device that are told apart.
const KERNELS: usize = 4096;
/// Kernels that the sentence names.
const NAMED: usize = 3;

/// Blocks of a graph that was told of as a whole, and of a kernel that exchanges data with other devices, which leaves multiprocessors
/// to others on purpose: while such runs, nothing is said.
const UNKNOWN: u64 = u64::MAX;

/// One kernel with so many blocks.
#[derive(Debug, Default)]
struct Shape {
    name: String,
    blocks: u64,
    runs: u64,
    ns: u64,
}

#[derive(Debug)]
struct Device {
    multiprocessors: u64,
    blocks: Blocks,
    evidence: Evidence,
    shapes: Bounded<Shape>,
}

impl Default for Device {
    fn default() -> Device {
        Device {
            multiprocessors: 0,
            blocks: Blocks::default(),
            evidence: Evidence::default(),
            shapes: Bounded::new(KERNELS),
        }
    }
}

/// Kernels have fewer blocks than the device has multiprocessors.
#[derive(Debug)]
pub(crate) struct SmallGrids(Bounded<Device>);

impl Default for SmallGrids {
    fn default() -> SmallGrids {
        SmallGrids(Bounded::new(DEVICES))
    }
}

fn key(pid: u32, device: u32) -> u64 {
    u64::from(pid) << 32 | u64::from(device)
}

/// Of a kernel that ran, or a graph; `None`: it is none.
fn kernel_of(event: &Record<'_>) -> Option<(u32, u64)> {
    let (device, grid) = match event.activity {
        Some(activity) => match activity.what {
            What::Kernel { grid, .. } => (activity.device, grid),
            What::Graph => return Some((activity.device, UNKNOWN)),
            _ => return None,
        },
        None => match (
            json::device_of_activity(event.args?)?,
            json::grid_of_activity(event.args?),
        ) {
            (device, Some(grid)) => (device, grid),
            (device, None) => return (event.name == "graph").then_some((device, UNKNOWN)),
        },
    };
    let blocks = grid.into_iter().map(u64::from).fold(1, u64::saturating_mul);
    Some((device, if is_collective(event.name) { UNKNOWN } else { blocks }))
}

impl SmallGrids {
    fn ran(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        let Some((number, blocks)) = kernel_of(event) else {
            return;
        };
        let Some(device) = self.0.entry(key(event.pid, number)) else {
            return;
        };
        let kernel = Kernel {
            begin: event.at,
            end: event.end(),
            blocks,
            stretch: seen.stretch,
        };
        device.blocks.add(kernel, device.multiprocessors);
        device.note(seen, blocks);
    }

    /// How many multiprocessors a device has.
    fn learn(&mut self, event: &Record<'_>) {
        let number = json::multiprocessors_of(event.name).zip(event.bytes);
        let Some((number, multiprocessors)) = number else {
            return;
        };
        if let Some(device) = self.0.entry(key(event.pid, number)) {
            device.multiprocessors = multiprocessors;
        }
    }

    /// The device that loses most.
    fn worst(&self, end: &End<'_>) -> Option<(u64, &Device, Filled)> {
        let all = self.0.iter().map(|(key, device)| {
            let pid = (key >> 32) as u32;
            let mut sum = Filled::default();
            let filled = device.blocks.filled(device.multiprocessors);
            let steady = filled.iter().filter(|(one, _)| end.courses.is_steady(pid, *one));
            steady.for_each(|(_, filled)| sum.join(filled));
            (key, device, sum)
        });
        all.max_by_key(|(key, _, filled)| (filled.empty_ns, u64::MAX - key))
    }
}

impl Device {
    fn note(&mut self, seen: &Seen<'_>, blocks: u64) {
        let (event, ns) = (seen.event, seen.event.ns.unwrap_or(0));
        if blocks < self.multiprocessors {
            self.evidence.note(seen, ns);
        }
        if let Some(shape) = self.shapes.entry(hash(event.name) ^ blocks) {
            shape.ns.grow(ns);
            shape.runs.grow(1);
            if shape.name.is_empty() {
                event.name.clone_into(&mut shape.name);
                shape.blocks = blocks;
            }
        }
    }

    /// Kernels with fewer blocks than multiprocessors, most time first. That number may have come after the first of them.
    fn small(&self) -> Vec<&Shape> {
        let shapes = self.shapes.iter().map(|(_, shape)| shape);
        let mut all: Vec<&Shape> = shapes.filter(|shape| shape.blocks < self.multiprocessors).collect();
        all.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.name.cmp(&b.name)));
        all
    }
}

/// The kernels that took most of the time, by share.
fn mostly(small: &[&Shape]) -> String {
    let sum = small.iter().fold(0u64, |sum, shape| sum.saturating_add(shape.ns));
    let named = small.iter().take(NAMED);
    let words: Vec<String> = named
        .map(|shape| {
            format!(
                "{} of {} ({} %)",
                shape.name,
                plural(shape.blocks, "block"),
                percent_of(shape.ns, sum)
            )
        })
        .collect();
    words.join(", ")
}

impl Rule for SmallGrids {
    fn name(&self) -> &'static str {
        "small-grids"
    }

    fn wants(&self, kind: Kind, _: Class) -> Wants {
        match kind {
            Kind::Gpu | Kind::Sample => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        match seen.event.kind {
            Kind::Sample => self.learn(seen.event),
            _ => self.ran(seen),
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (key, device, filled) = self.worst(end)?;
        let is_often = is_percent(filled.few_ns, filled.busy_ns.max(1), FEW_PERCENT);
        if device.multiprocessors == 0 || !is_often || !end.is_share(filled.empty_ns, PERCENT) {
            return None;
        }
        let busy = percent_of(filled.busy_ns, end.run.steady_ns).min(100);
        let few = percent_of(filled.few_ns, filled.busy_ns);
        let small = device.small();
        let count = small.iter().fold(0u64, |sum, shape| sum.saturating_add(shape.runs));
        Some(Finding {
            count,
            cost_ns: filled.empty_ns,
            certainty: match end.run.records_missing {
                true => Certainty::Inferred,
                false => Certainty::Measured,
            },
            title: "Kernels leave most multiprocessors of the device without work".to_owned(),
            what: format!(
                "GPU busy {busy} %, but {few} % of that with fewer blocks than multiprocessors ({}), {} of process {}, device {}: so \
                 many of them had none that it is as much as {} of the whole device; mostly {}",
                device.multiprocessors,
                plural(count, "kernel"),
                key >> 32,
                key & u64::from(u32::MAX),
                duration(filled.empty_ns),
                mostly(&small)
            ),
            cure: "give kernels more blocks: larger batches, smaller tiles, split-K; run independent ones side by side on streams or in a \
                   graph's branches, or fuse them; else share the device (MPS, MIG)"
                .to_owned(),
            thresholds: format!(
                "kernels that run at the same time have fewer blocks together than there are multiprocessors, for {FEW_PERCENT} % of the \
                 time in which any run; what that leaves empty, {PERCENT} % of the time"
            ),
            weakened: None,
            ..device.evidence.finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, MS};

    const PID: u32 = 7;

    /// Steps of a kernel of 9 ms with so many blocks and 1 ms of nothing.
    fn steps(fixture: &mut Fixture, name: &'static str, args: &'static str) {
        for _ in 0..100 {
            fixture.launch();
            fixture.row(&Record {
                ns: Some(9 * MS),
                name,
                args: Some(args),
                ..Record::new(Kind::Gpu, fixture.at, PID)
            });
            fixture.sync(9 * MS);
            fixture.pass(MS);
        }
    }

    fn of(multiprocessors: Option<u64>, args: &'static str) -> Fixture {
        let mut fixture = Fixture::of(SmallGrids::default());
        if let Some(number) = multiprocessors {
            fixture.sample("cupti.0.multiprocessors", number);
        }
        steps(&mut fixture, "gemv", args);
        fixture
    }

    const SIXTEEN: &str = r#"{"activity":"kernel","device":0,"context":1,"grid":[4,2,2],"block":[256,1,1]}"#;
    const MANY: &str = r#"{"activity":"kernel","device":0,"context":1,"grid":[128,2,1],"block":[256,1,1]}"#;
    const NEARLY: &str = r#"{"activity":"kernel","device":0,"context":1,"grid":[128,1,1],"block":[256,1,1]}"#;

    #[test]
    fn a_device_that_is_busy_with_few_blocks_is_named() {
        let finding = of(Some(132), SIXTEEN).finding();
        let start = "GPU busy 90 %, but 100 % of that with fewer blocks than multiprocessors (132), 100 kernels of process 7, device 0";
        assert!(finding.what.starts_with(start), "{}", finding.what);
        assert!(
            finding.what.ends_with("mostly gemv of 16 blocks (100 %)"),
            "{}",
            finding.what
        );
        // of 132 multiprocessors 116 had none
        assert_eq!(finding.cost_ns, 9 * MS * 116 / 132 * 100);
        assert_eq!((finding.certainty, finding.count), (Certainty::Measured, 100));
    }

    #[test]
    fn grids_that_fill_the_device_or_nearly_so_are_none() {
        assert_eq!(of(Some(132), MANY).findings(), []);
        assert_eq!(of(Some(132), NEARLY).findings(), [], "3 % of it are empty");
    }

    #[test]
    fn what_exchanges_data_with_other_devices_is_small_on_purpose() {
        let mut fixture = of(Some(132), MANY);
        steps(&mut fixture, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", SIXTEEN);
        assert_eq!(fixture.findings(), []);
    }

    #[test]
    fn where_the_number_of_multiprocessors_is_not_known_nothing_is_found() {
        assert_eq!(of(None, SIXTEEN).findings(), []);
    }

    #[test]
    fn where_records_are_missing_it_is_inferred() {
        let mut fixture = of(Some(132), SIXTEEN);
        fixture.doubt_records();
        assert_eq!(fixture.finding().certainty, Certainty::Inferred);
    }
}
