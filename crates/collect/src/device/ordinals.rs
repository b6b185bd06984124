//! Which device a CUDA ordinal of a process means.
//!
//! Pure. Certain is only what does not rest on the environment, since a program may change its own after it was
//! started: a UUID that it was seen to read from the driver, a machine with one device, or that NVML shows its
//! memory on one device alone.
//!
//! By default CUDA puts the fastest device first, by a rule that is not documented; equal devices were seen to come
//! in the order of their buses. In MIG mode (documented up to driver 580) a process sees one MIG device only, the
//! first of those that it could see, and then no GPU beside it. `CUDA_VISIBLE_DEVICES` of an MPS server, by which it
//! numbers devices for its clients anew, is not known here.

use super::identifier::{of_bytes, of_uuid};
use super::visible::{Choice, Order, Pick, by_bus, choose};
use super::{Device, Environment, ProcessMemory};
use std::collections::{BTreeMap, BTreeSet};

/// How sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// It cannot be otherwise.
    Exact,
    /// It follows from what is known, unless the program has changed its environment or CUDA its habits.
    Inferred,
}

/// What an ordinal stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordinal {
    /// UUID of the GPU, or of the MIG device.
    pub uuid: String,
    /// How sure that is.
    pub certainty: Certainty,
    /// From what it is known.
    pub reason: String,
}

/// The devices of one process, as it numbers them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ordinals {
    known: BTreeMap<u32, Ordinal>,
    problem: Option<String>,
}

impl Ordinals {
    /// From a process's environment, the machine's devices, and the UUIDs that the process was seen to read.
    pub fn new(environment: &Environment, devices: &[Device], seen: &BTreeMap<u32, [u8; 16]>) -> Ordinals {
        let given = given(environment, devices);
        let mut ordinals = match Order::parse(environment.device_order.as_deref()) {
            Some(order) => from_list(environment, order, &given),
            None => Ordinals {
                problem: Some("CUDA_DEVICE_ORDER is of no known name: no device is visible".to_owned()),
                ..Ordinals::default()
            },
        };
        for (ordinal, bytes) in seen {
            if let Some(uuid) = uuid_of(bytes, devices) {
                ordinals.put(
                    *ordinal,
                    uuid,
                    Certainty::Exact,
                    "the program read this UUID from the driver".to_owned(),
                );
            }
        }
        ordinals
    }

    /// What is known of an ordinal.
    pub fn get(&self, ordinal: u32) -> Option<&Ordinal> {
        self.known.get(&ordinal)
    }

    /// All that is known.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Ordinal)> {
        self.known.iter().map(|(ordinal, known)| (*ordinal, known))
    }

    /// Why fewer devices are visible than the environment asks for.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// The ordinal of a device.
    pub(crate) fn of_device(&self, uuid: &str) -> Option<u32> {
        self.iter()
            .find_map(|(ordinal, known)| (known.uuid == uuid).then_some(ordinal))
    }

    /// Compared with what NVML shows of process `pid`, of which these `ordinals` were seen in use.
    ///
    /// A process with memory on one device alone settles which its only ordinal is. Memory on a device that the
    /// environment hides shows that the program has changed its environment: what rests on that is forgotten.
    #[must_use]
    pub fn settled(mut self, ordinals: &[u32], pid: u32, processes: &[ProcessMemory]) -> Ordinals {
        // Clients of MPS are listed, with no bytes, for devices that they do not use.
        let holds = |process: &&ProcessMemory| process.pid == Some(pid) && process.bytes != Some(0);
        let held: BTreeSet<&str> = processes
            .iter()
            .filter(holds)
            .map(|process| process.device.as_str())
            .collect();
        let hidden = held.iter().find(|uuid| self.of_device(uuid).is_none()).copied();
        if let Some(hidden) = hidden {
            self.known.retain(|_, known| known.certainty == Certainty::Exact);
            self.problem = Some(format!(
                "it uses {hidden}, which its environment hides: the program has changed that"
            ));
        }
        let used: BTreeSet<u32> = ordinals.iter().copied().collect();
        if let (1, 1, Some(ordinal), Some(uuid)) = (used.len(), held.len(), used.first(), held.first()) {
            self.put(
                *ordinal,
                uuid,
                Certainty::Exact,
                "NVML shows its memory on this device alone".to_owned(),
            );
        }
        self
    }

    /// A device has one ordinal.
    fn put(&mut self, ordinal: u32, uuid: &str, certainty: Certainty, reason: String) {
        self.known.retain(|_, known| known.uuid != uuid);
        let uuid = uuid.to_owned();
        self.known.insert(
            ordinal,
            Ordinal {
                uuid,
                certainty,
                reason,
            },
        );
    }
}

/// The devices that a process is given at all: a container has the files of some.
fn given<'a>(environment: &Environment, devices: &'a [Device]) -> Vec<&'a Device> {
    let minors = &environment.minors;
    let is_known = !minors.is_empty() && devices.iter().all(|device| device.minor.is_some());
    let is_given = |device: &&Device| !is_known || device.minor.is_some_and(|minor| minors.contains(&minor));
    by_bus(devices).into_iter().filter(is_given).collect()
}

fn from_list(environment: &Environment, order: Order, given: &[&Device]) -> Ordinals {
    let choice = choose(environment.visible_devices.as_deref(), given);
    let picks = enumerated(&choice.picks);
    let is_divided = given.iter().any(|device| device.mig.is_some());
    let is_sole = given.len() == 1 && !is_divided;
    let reason = if is_sole {
        "it is the only device".to_owned()
    } else {
        reason(environment, order, given, &choice)
    };
    let certainty = if is_sole { Certainty::Exact } else { Certainty::Inferred };
    let ordinal = |uuid: &str| Ordinal {
        uuid: uuid.to_owned(),
        certainty,
        reason: reason.clone(),
    };
    Ordinals {
        known: (0..).zip(picks.iter().map(|pick| ordinal(pick.uuid()))).collect(),
        problem: choice.problem,
    }
}

/// Of MIG devices a process sees one, and then nothing else; a GPU in MIG mode without any is not seen.
fn enumerated<'a>(picks: &[Pick<'a>]) -> Vec<Pick<'a>> {
    let first_part = picks.iter().find_map(|pick| match *pick {
        Pick::Part(_) => Some(*pick),
        Pick::Gpu(device) => device.parts().first().map(Pick::Part),
    });
    let whole = |pick: &Pick| matches!(pick, Pick::Gpu(device) if device.mig.is_none());
    first_part.map_or_else(|| picks.iter().copied().filter(whole).collect(), |part| vec![part])
}

fn reason(environment: &Environment, order: Order, given: &[&Device], choice: &Choice) -> String {
    let mut reasons = vec![match &environment.visible_devices {
        Some(_) => "from CUDA_VISIBLE_DEVICES at its start",
        None => "no CUDA_VISIBLE_DEVICES at its start",
    }];
    let is_same_model = given.iter().all(|device| device.name == given[0].name);
    reasons.extend(match order {
        _ if !choice.by_index => None,
        Order::PciBusId => Some("in the order of buses, as CUDA_DEVICE_ORDER asks"),
        Order::FastestFirst if is_same_model => Some("in the order of buses, as equal devices come"),
        Order::FastestFirst => Some("the fastest device comes first, which may be another: models differ"),
    });
    if given.iter().any(|device| device.mig.is_some()) {
        reasons.push("of MIG devices a process sees the first");
    }
    reasons.join("; ")
}

/// The driver tells some programs the GPU's UUID in place of the MIG device's: that settles it where there is one.
fn uuid_of<'a>(bytes: &[u8; 16], devices: &'a [Device]) -> Option<&'a str> {
    let digits = of_bytes(bytes);
    let is_it = |uuid: &str| of_uuid(uuid).is_some_and(|uuid| uuid == digits);
    let part = devices.iter().flat_map(Device::parts).find(|part| is_it(&part.uuid));
    let gpu = devices.iter().find(|device| is_it(&device.uuid));
    match (part, gpu) {
        (Some(part), _) => Some(&part.uuid),
        (None, Some(gpu)) => match gpu.mig.as_deref() {
            None => Some(&gpu.uuid),
            Some([part]) => Some(&part.uuid),
            Some(_) => None,
        },
        (None, None) => None,
    }
}
