//! Idle time of processes by device and reason, so that it never falls nor moves: counted as it becomes known, for the
//! devices that the process is known to use then.
//!
//! A process whose devices all have nothing to do keeps each of them idle. What a bound has told too much of, until it
//! became tighter, stays told: the next idle time goes into it first.

use super::Device;
use crate::model::reason::{Reason, Reasons};
use std::collections::{BTreeMap, HashMap};

/// Idle time of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WasteKey {
    /// `None`: it was not known then.
    pub device: Device,
    pub reason: Reason,
    /// No bound: the process was watched late, and what it had submitted before may still have been running.
    pub inferred: bool,
}

/// Idle time, ns.
pub type Waste = BTreeMap<WasteKey, u64>;

/// As much idle time of a process waits for its devices to become known: NVML is asked now and then.
const PATIENCE_NS: u64 = 60_000_000_000;

/// What was counted of processes so far.
#[derive(Debug, Default)]
pub struct Wasted {
    processes: HashMap<u32, Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    by_reason: Reasons,
    /// Of these, of devices that are not known yet.
    waiting: Reasons,
    /// Those that it was last shown on: of one that has ended nobody tells any more. Until then, what follows else.
    uses: Uses,
    waste: Waste,
}

/// The devices that a process is known to use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Uses {
    pub devices: Vec<Device>,
    /// The driver shows it there; else that follows from its environment.
    pub shown: bool,
}

impl Wasted {
    /// The idle time of a living process since its beginning; what was counted of it in all.
    pub fn count_living(&mut self, pid: u32, idle: &Reasons, inferred: bool, uses: &Uses) -> &Waste {
        let counted = self.processes.entry(pid).or_default();
        counted.note(idle);
        counted.learn(uses);
        if counted.uses.shown || counted.waiting.total_ns() >= PATIENCE_NS {
            counted.place(inferred);
        }
        &counted.waste
    }

    /// The same of one that has ended: nothing waits any longer. What was counted of it is its owner's.
    pub fn count_last(&mut self, pid: u32, idle: &Reasons, inferred: bool, uses: &Uses) -> Waste {
        let mut counted = self.processes.remove(&pid).unwrap_or_default();
        counted.note(idle);
        counted.learn(uses);
        counted.place(inferred);
        counted.waste
    }
}

impl Counted {
    /// Takes in what is new, by reason; it adds up to how much the total has grown.
    fn note(&mut self, idle: &Reasons) {
        let mut room = idle.total_ns().saturating_sub(self.by_reason.total_ns());
        for reason in Reason::ALL {
            let grown = idle.get(*reason).saturating_sub(self.by_reason.get(*reason));
            let more = grown.min(room);
            room -= more;
            self.by_reason.add(*reason, more);
            self.waiting.add(*reason, more);
        }
    }

    /// Of one that is about to end, or has ended, the driver does not know any more what it showed before.
    fn learn(&mut self, uses: &Uses) {
        let is_better = uses.shown || !self.uses.shown;
        if is_better && !uses.devices.is_empty() && self.uses != *uses {
            self.uses.clone_from(uses);
        }
    }

    /// What waited is of the devices that it uses.
    fn place(&mut self, inferred: bool) {
        let waiting = std::mem::take(&mut self.waiting);
        let unknown = [None];
        let devices: &[Device] = if self.uses.devices.is_empty() {
            &unknown
        } else {
            &self.uses.devices
        };
        for reason in Reason::ALL.iter().filter(|reason| waiting.get(**reason) > 0) {
            for device in devices {
                let key = WasteKey {
                    device: device.clone(),
                    reason: *reason,
                    inferred,
                };
                *self.waste.entry(key).or_default() += waiting.get(*reason);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn reasons(host: u64, unknown: u64) -> Reasons {
        let mut reasons = Reasons::default();
        reasons.add(Reason::HostBound, host);
        reasons.add(Reason::Unknown, unknown);
        reasons
    }

    fn shown(devices: &[Device]) -> Uses {
        Uses {
            devices: devices.to_vec(),
            shown: true,
        }
    }

    fn of(waste: &Waste, device: Option<&str>) -> Vec<(Reason, u64)> {
        let of_it = waste.iter().filter(|(key, _)| key.device.as_deref() == device);
        of_it.map(|(key, ns)| (key.reason, *ns)).collect()
    }

    #[test]
    fn idle_time_is_counted_for_the_devices_that_are_known_then() {
        let (mut wasted, gpu) = (Wasted::default(), Some(Arc::from("GPU-0")));
        let waste = wasted.count_living(7, &reasons(15, 0), false, &shown(std::slice::from_ref(&gpu)));
        assert_eq!(of(waste, Some("GPU-0")), [(Reason::HostBound, 15)]);
        let waste = wasted.count_last(7, &reasons(16, 0), false, &shown(&[gpu, Some(Arc::from("GPU-1"))]));
        assert_eq!(of(&waste, Some("GPU-0")), [(Reason::HostBound, 16)]);
        assert_eq!(of(&waste, Some("GPU-1")), [(Reason::HostBound, 1)]);
    }

    #[test]
    fn the_last_idle_time_of_a_process_is_of_the_devices_that_it_had() {
        let mut wasted = Wasted::default();
        wasted.count_living(7, &reasons(10, 0), false, &shown(&[Some(Arc::from("GPU-0"))]));
        let guess = Uses {
            devices: vec![Some(Arc::from("GPU-1"))],
            shown: false,
        };
        let waste = wasted.count_living(7, &reasons(12, 0), false, &guess);
        assert_eq!(
            of(waste, Some("GPU-0")),
            [(Reason::HostBound, 12)],
            "where it was shown"
        );
        let waste = wasted.count_last(7, &reasons(15, 0), false, &shown(&[]));
        assert_eq!(of(&waste, Some("GPU-0")), [(Reason::HostBound, 15)]);
    }

    #[test]
    fn idle_time_of_a_living_process_waits_for_its_devices_for_a_minute_of_it() {
        let mut wasted = Wasted::default();
        assert!(wasted.count_living(7, &reasons(11, 0), false, &shown(&[])).is_empty());
        let gpu = Some(Arc::from("GPU-0"));
        let waste = wasted.count_living(7, &reasons(10, 0), false, &shown(&[gpu]));
        assert_eq!(
            of(waste, Some("GPU-0")),
            [(Reason::HostBound, 11)],
            "as it was told then"
        );
        let waste = wasted.count_living(8, &reasons(PATIENCE_NS, 0), false, &shown(&[]));
        assert_eq!(of(waste, None), [(Reason::HostBound, PATIENCE_NS)]);
        wasted.count_living(9, &reasons(3, 0), false, &shown(&[]));
        let waste = wasted.count_last(9, &reasons(3, 0), false, &shown(&[]));
        assert_eq!(of(&waste, None), [(Reason::HostBound, 3)], "it has ended");
    }

    #[test]
    fn what_was_counted_for_one_reason_does_not_move_to_another() {
        let (mut wasted, gpu) = (Wasted::default(), [Some(Arc::from("GPU-0"))]);
        wasted.count_living(7, &reasons(10, 0), false, &shown(&gpu));
        let waste = wasted.count_last(7, &reasons(0, 12), false, &shown(&gpu));
        let expected = [(Reason::HostBound, 10), (Reason::Unknown, 2)];
        assert_eq!(of(&waste, Some("GPU-0")), expected);
    }

    proptest! {
        #[test]
        fn reasons_of_each_device_add_up_to_the_most_idle_time_that_was_told(
            steps in prop::collection::vec((0u64..100, 0u64..100, any::<bool>()), 1..20)
        ) {
            let (mut wasted, mut most, mut before) = (Wasted::default(), 0, Waste::default());
            let gpus = ["GPU-0", "GPU-1"].map(|uuid| Some(Arc::from(uuid)));
            for (host, unknown, known) in steps {
                let devices: &[Device] = if known { &gpus } else { &[] };
                let waste = wasted.count_living(7, &reasons(host, unknown), false, &shown(devices));
                most = most.max(host + unknown);
                prop_assert!(before.iter().all(|(key, ns)| waste[key] >= *ns), "it never falls");
                before.clone_from(waste);
            }
            let waste = wasted.count_last(7, &Reasons::default(), false, &shown(&gpus));
            for gpu in &gpus {
                let of_it: u64 = of(&waste, gpu.as_deref()).iter().map(|(_, ns)| ns).sum();
                prop_assert_eq!(of_it, most);
            }
        }
    }
}
