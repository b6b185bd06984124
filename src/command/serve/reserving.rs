//! What schedulers have given away on this machine, looked at as often as NVML is, and who uses it then.

use crate::clock::monotonic_ns;
use crate::device::telemetry::Telemetry;
use crate::model::reserved::{Place, Reserved};
use crate::owner::container::Names;
use crate::owner::{Directory, Owner, Whereabouts, cgroup};
use crate::reserved::{Answer, DeviceName, Holder, KubeletSocket, Reservation, SlurmJobs};
use crate::serve::config::Config;
use crate::serve::gather::{self, Asked, Gpu};
use crate::serve::metric::Sample;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Jobs of Slurm are looked for so often at most.
const JOBS_EVERY: Duration = Duration::from_secs(10);
/// Added to two rounds of NVML: after as long without an answer, it is not known what was between.
const SLACK: Duration = Duration::from_secs(10);

/// What schedulers have given away.
pub(super) struct Reserving {
    kubelet: Option<KubeletSocket>,
    jobs: SlurmJobs,
    jobs_looked: Option<Instant>,
    /// The round of NVML that was looked at last.
    round: Option<Instant>,
    reserved: Reserved,
    most_owners: usize,
    unknown: u64,
}

impl Reserving {
    /// Asks the kubelet at that socket, and Slurm of the machine with that root.
    pub(super) fn new(socket: Option<&Path>, root: &Path, most_owners: usize) -> Reserving {
        Reserving {
            kubelet: socket.map(KubeletSocket::start),
            jobs: SlurmJobs::new(root),
            jobs_looked: None,
            round: None,
            reserved: Reserved::default(),
            most_owners,
            unknown: 0,
        }
    }

    /// Once for each round of NVML: what is reserved, and whether who has it is there.
    pub(super) fn look(&mut self, directory: &mut Directory, telemetry: &Telemetry) {
        if self.round == Some(telemetry.at) || telemetry.absent.is_some() {
            return;
        }
        self.round = Some(telemetry.at);
        if self.jobs_looked.is_none_or(|looked| looked.elapsed() >= JOBS_EVERY) {
            self.jobs.look();
            self.jobs_looked = Some(Instant::now());
        }
        let reservations = self.reservations();
        let users = match reservations.is_empty() {
            true => HashMap::new(),
            false => users(directory, telemetry),
        };
        let all = reservations.len();
        let held: Vec<(Place, bool)> = reservations
            .iter()
            .filter_map(|reservation| held(reservation, directory, telemetry, &users))
            .collect();
        self.unknown = (all - held.len()) as u64;
        let longest = longest(telemetry.every).as_nanos() as u64;
        self.reserved.look(monotonic_ns(), longest, self.most_owners, held);
    }

    fn reservations(&self) -> Vec<Reservation> {
        let of_pods = match self.kubelet.as_ref().map(KubeletSocket::answer) {
            Some(Answer::Known(reservations)) => reservations,
            Some(Answer::Absent | Answer::Unknown) | None => Vec::new(),
        };
        of_pods.into_iter().chain(self.jobs.reservations()).collect()
    }

    /// All samples; `gpus`: how labels name devices. Where NVML has not answered for long, nothing is known to be reserved.
    pub(super) fn samples(&mut self, gpus: &HashMap<String, Gpu>, config: &Config) -> Vec<Sample> {
        let now = monotonic_ns();
        if self
            .round
            .is_none_or(|round| round.elapsed() > longest(config.nvml_interval))
        {
            self.reserved.look(now, 0, self.most_owners, []);
            self.unknown = 0;
        }
        self.reserved
            .retire(now.saturating_sub(config.retain.as_nanos() as u64));
        let answer = self.kubelet.as_ref().map(KubeletSocket::answer);
        let asked = Asked {
            kubelet: answer
                .filter(|answer| *answer != Answer::Absent)
                .map(|answer| answer != Answer::Unknown),
            unknown: self.unknown,
        };
        gather::reserved(&self.reserved, asked, gpus)
    }

    /// Why it is not known what is reserved.
    pub(super) fn troubles(&self) -> Option<String> {
        self.kubelet.as_ref().and_then(KubeletSocket::trouble)
    }
}

fn longest(every: Duration) -> Duration {
    every * 2 + SLACK
}

/// Who is on each device.
type Users<'a> = HashMap<&'a str, Vec<Whereabouts>>;

fn users<'a>(directory: &mut Directory, telemetry: &'a Telemetry) -> Users<'a> {
    let mut users: Users = HashMap::new();
    for process in &telemetry.processes {
        let user = process
            .pid
            .map_or(Whereabouts::Unknown, |pid| directory.whereabouts(pid));
        users.entry(&process.device).or_default().push(user);
    }
    users
}

/// Where a reservation is counted, and whether who has it may be there; `None`: the device or its processes are not known.
fn held(of: &Reservation, directory: &Directory, telemetry: &Telemetry, users: &Users) -> Option<(Place, bool)> {
    let (uuid, related) = device_of(&of.device, telemetry)?;
    let users = related.iter().filter_map(|device| users.get(device)).flatten();
    let bound = users.into_iter().any(|user| may_be(user, &of.holder));
    let place = Place {
        owner: Arc::new(owner(directory, &of.holder)),
        device: uuid.into(),
    };
    Some((place, bound))
}

/// The UUID of a device whose processes are listed, with those of what is a part of it, or it is a part of: NVML may list
/// a process there.
fn device_of<'a>(name: &DeviceName, telemetry: &'a Telemetry) -> Option<(&'a str, Vec<&'a str>)> {
    let listed = telemetry
        .devices
        .iter()
        .filter(|gpu| telemetry.listed.contains(&gpu.uuid));
    for gpu in listed {
        let is_it = match name {
            DeviceName::Uuid(uuid) => gpu.uuid == *uuid,
            DeviceName::Minor(minor) => gpu.minor == Some(*minor),
            DeviceName::Unknown(_) => false,
        };
        let parts = gpu.parts().iter().map(|part| part.uuid.as_str());
        if is_it {
            return Some((&gpu.uuid, parts.chain([gpu.uuid.as_str()]).collect()));
        }
        let part = parts
            .into_iter()
            .find(|part| matches!(name, DeviceName::Uuid(uuid) if uuid == part));
        if let Some(part) = part {
            return Some((part, vec![part, &gpu.uuid]));
        }
    }
    None
}

fn may_be(user: &Whereabouts, holder: &Holder) -> bool {
    match holder {
        Holder::Container(names) => user.may_be_in(names),
        Holder::Job(job) => user.may_be_of(job),
    }
}

fn owner(directory: &Directory, holder: &Holder) -> Owner {
    match holder {
        Holder::Container(names) => directory.owner_of_place(cgroup::Place::default(), names),
        Holder::Job(job) => directory.owner_of_place(cgroup::Place::of_slurm(job), &Names::default()),
    }
}
