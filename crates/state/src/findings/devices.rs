//! How busy NVML says that the devices of the program were: what findings have to explain.

use super::table::{Bounded, Grow};
use crate::model::finding::Busy;
use crate::record::Record;

/// Devices of one host.
const DEVICES: usize = 64;
/// Samples of a device; of more, every second one is forgotten.
const SAMPLES: usize = 4096;
/// A sample is of the time before it, at most.
const REACH_NS: i64 = 1_000_000_000;
/// Fewer tell nothing.
const AT_LEAST: u64 = 2;

#[derive(Debug, Default)]
struct Device {
    /// A process that was traced holds memory of it.
    used: bool,
    /// When, and per cent of the time before.
    samples: Vec<(i64, u64)>,
}

/// How busy NVML says that the devices of the program were.
#[derive(Debug)]
pub(crate) struct Devices(Bounded<Device>);

impl Default for Devices {
    fn default() -> Devices {
        Devices(Bounded::new(DEVICES))
    }
}

impl Devices {
    /// A measure; those of NVML are called `nvml.DEVICE.WHAT`.
    pub(crate) fn take(&mut self, event: &Record<'_>) {
        let Some((index, what)) = event.name.strip_prefix("nvml.").and_then(|name| name.split_once('.')) else {
            return;
        };
        let device = index.parse().ok().and_then(|index: u32| self.0.entry(u64::from(index)));
        match (device, what) {
            (Some(device), "utilization_percent") => device.sample(event.at, event.bytes.unwrap_or(0)),
            (Some(device), "process_memory_bytes") => device.used = true,
            _ => {}
        }
    }

    /// Those that the program uses, over that time. Where NVML does not tell who uses which, the only one there is.
    #[must_use]
    pub(crate) fn busy(&self, from: i64, until: i64) -> Vec<Busy> {
        let told = self.0.iter().any(|(_, device)| device.used);
        let sole = self.0.iter().count() == 1;
        let used = self.0.iter().filter(|(_, device)| device.used || !told && sole);
        let mut busy: Vec<Busy> = used
            .filter_map(|(index, device)| device.busy(index as u32, from, until))
            .collect();
        busy.sort_by_key(|one| one.device);
        busy
    }
}

impl Device {
    fn sample(&mut self, at: i64, percent: u64) {
        if self.samples.len() >= SAMPLES {
            let mut keep = false;
            self.samples.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.samples.push((at, percent.min(100)));
    }

    fn busy(&self, device: u32, from: i64, until: i64) -> Option<Busy> {
        let within = self
            .samples
            .iter()
            .filter(|(at, _)| at.saturating_sub(REACH_NS) >= from && *at <= until);
        let (mut samples, mut sum) = (0, 0u64);
        for (_, percent) in within {
            samples += 1;
            sum.grow(*percent);
        }
        (samples >= AT_LEAST).then(|| Busy {
            device,
            percent: sum / samples,
            samples,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Kind;

    const SECOND: i64 = 1_000_000_000;

    fn take(devices: &mut Devices, second: i64, name: &str, value: u64, pid: u32) {
        devices.take(&Record {
            name,
            bytes: Some(value),
            ..Record::new(Kind::Sample, second * SECOND, pid)
        });
    }

    #[test]
    fn a_device_is_as_busy_as_its_samples_of_that_time_say() {
        let mut devices = Devices::default();
        for (second, percent) in [0, 0, 90, 30, 36, 100].into_iter().enumerate() {
            take(&mut devices, second as i64, "nvml.0.utilization_percent", percent, 0);
        }
        // the sample at 2 s is of what was before, too
        let busy = devices.busy(2 * SECOND, 4 * SECOND);
        assert_eq!(
            busy,
            [Busy {
                device: 0,
                percent: 33,
                samples: 2
            }]
        );
        assert_eq!(devices.busy(4 * SECOND, 5 * SECOND), [], "one sample is none");
    }

    #[test]
    fn of_several_devices_those_count_that_the_program_uses() {
        let mut devices = Devices::default();
        for device in ["nvml.0.utilization_percent", "nvml.1.utilization_percent"] {
            (0..9).for_each(|second| take(&mut devices, second, device, 50, 0));
        }
        assert_eq!(devices.busy(0, 9 * SECOND), [], "nobody knows whose they are");
        take(&mut devices, 3, "nvml.1.process_memory_bytes", 1 << 30, 7);
        let busy = devices.busy(0, 9 * SECOND);
        assert_eq!(busy.iter().map(|one| one.device).collect::<Vec<u32>>(), [1]);
    }

    #[test]
    fn a_long_run_is_kept_in_as_many_samples() {
        let mut devices = Devices::default();
        let all = 3 * SAMPLES as i64;
        (0..all).for_each(|second| take(&mut devices, second, "nvml.0.utilization_percent", 40, 0));
        let busy = devices.busy(0, all * SECOND);
        assert_eq!(busy[0].percent, 40);
        assert!(busy[0].samples <= SAMPLES as u64);
    }
}
