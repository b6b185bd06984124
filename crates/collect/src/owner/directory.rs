//! Who owns which process: asked for each sample, read from `/proc` once.

mod known;

pub use known::Unknown;

use super::Owner;
use super::accounts::Accounts;
use super::cgroup::{self, Place};
use super::choice::Choice;
use super::container::{Answer, Containers, Names, Pods};
use super::label::{Label, Wanted};
use super::process::{CGROUP_BYTES, Portrait, read, start_ticks};
use super::register::Register;
use super::value::clean;
use super::whereabouts::Whereabouts;
use known::{Process, State};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Processes beyond this are not remembered, thus counted for [`Owner::other`].
const MOST_PROCESSES: usize = 8192;

/// The owners of processes.
///
/// An owner is decided when it is first asked for and stays until [`Directory::executed`] or [`Directory::forget`]:
/// counters do not move between sets of labels. Whoever counts folds what a process did so far into its owner before
/// telling that it executed another program, or is forgotten, or that another process has its number now.
#[derive(Debug)]
pub struct Directory {
    proc: PathBuf,
    wanted: Wanted,
    register: Register,
    containers: Containers,
    accounts: Accounts,
    processes: HashMap<u32, Process>,
    most_processes: usize,
    /// How many were refused since room was last made.
    refused: usize,
    unknown: Unknown,
}

impl Directory {
    /// Processes have the labels `wanted`; `root` is `/`, or a folder with another `proc`, `run` and `var`.
    #[must_use]
    pub fn new(wanted: Wanted, root: &Path) -> Directory {
        let mut containers = Containers::new(root);
        containers.wants_controllers = wanted.asks_for_controllers();
        Directory {
            proc: root.join("proc"),
            register: Register::new(wanted.max_owners),
            wanted,
            containers,
            accounts: Accounts::new(root),
            processes: HashMap::new(),
            most_processes: MOST_PROCESSES,
            refused: 0,
            unknown: Unknown::default(),
        }
    }

    /// Processes that are first seen from now on have these labels.
    pub fn want(&mut self, wanted: Wanted) {
        self.register.limit = wanted.max_owners;
        self.containers.wants_controllers = wanted.asks_for_controllers();
        self.wanted = wanted;
    }

    /// Names of pods are also asked of this one, from now on; [`None`]: of files alone.
    pub fn ask_also(&mut self, pods: Option<Box<dyn Pods>>) {
        self.containers.ask_also(pods);
    }

    /// The owner of a process, decided now; equal owners are the same [`Arc`].
    pub fn owner_of(&mut self, pid: u32) -> Arc<Owner> {
        if let Some(owner) = self.owned(pid) {
            return owner;
        }
        self.read(pid);
        let names = self.names(pid, Instant::now());
        self.decide(pid, &names.unwrap_or_default())
    }

    /// The same, but `None` as long as the names of its container may become known in the next seconds: what the
    /// process did is not shown until then. A process that has ended waits no longer.
    pub fn settled(&mut self, pid: u32) -> Option<Arc<Owner>> {
        self.owned(pid).or_else(|| self.settled_at(pid, Instant::now()))
    }

    /// Whether a process is among those that any of these choose. Decides nothing that is not settled: until then no label matches.
    pub fn is_chosen(&mut self, pid: u32, choices: &[Choice]) -> bool {
        if choices.is_empty() {
            return false;
        }
        let owner = self.settled(pid);
        let file = self.proc.join(pid.to_string()).join("cgroup");
        let cgroups = || cgroup::paths(&read(&file, CGROUP_BYTES).unwrap_or_default());
        choices.iter().any(|choice| choice.is_of(owner.as_deref(), cgroups))
    }

    /// Reads what a process is, if that was not done yet and it is still there. Nothing is decided.
    pub fn look_at(&mut self, pid: u32) {
        self.read(pid);
    }

    /// Where a process runs, whatever its labels are. Nothing is decided.
    pub fn whereabouts(&mut self, pid: u32) -> Whereabouts {
        self.read(pid);
        let Some(process) = self.processes.get(&pid).filter(|process| process.placed) else {
            return Whereabouts::Unknown;
        };
        let place = process.portrait.place.clone();
        match self.containers.names(&place, Instant::now()) {
            Answer::Names(names) => Whereabouts::of(place, names),
            Answer::Later => Whereabouts::Unknown,
        }
    }

    /// Whom a container or a job is counted for without regard to its processes: the labels of the place alone.
    #[must_use]
    pub fn owner_of_place(&self, place: Place, names: &Names) -> Owner {
        let mut owner = owner(&self.wanted, 0, &Portrait::default().at(place), names, "");
        owner.labels.retain(|(name, _)| *name != Label::Pid.name());
        owner
    }

    /// A process was forked. Until it is read, it is what its parent was then.
    pub fn born(&mut self, pid: u32, parent: u32) {
        self.forget(pid);
        let parent = self.processes.get(&parent);
        if let Some((portrait, placed)) = parent.map(|parent| (Arc::clone(&parent.portrait), parent.placed)) {
            self.remember(pid, portrait);
            if let Some(process) = self.processes.get_mut(&pid) {
                process.placed = placed;
            }
        }
    }

    /// A process executed a program: it is read anew when it is next asked for.
    pub fn executed(&mut self, pid: u32) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        process.portrait = Arc::new(process.portrait.without_program());
        if let State::Owned(owner) = std::mem::replace(&mut process.state, State::Unread) {
            self.register.leave(&owner);
        }
    }

    /// The kernel says what the process is called: used if it is gone before it is read.
    pub fn named(&mut self, pid: u32, comm: &[u8]) {
        if let Some(process) = self.unread(pid) {
            process.portrait = Arc::new(process.portrait.named(clean(comm)));
        }
    }

    /// The kernel says where it runs: used likewise, and where it was read when hierarchies had begun to let go of it.
    pub fn placed(&mut self, pid: u32, place: Place) {
        if let Some(process) = self.unread(pid) {
            process.portrait = Arc::new(process.portrait.at(place.clone()));
            process.placed = true;
            process.told = Some(place);
        } else if let Some(process) = self.processes.get_mut(&pid)
            && matches!(process.state, State::Read)
        {
            let place = process.portrait.place.or(&place);
            process.portrait = Arc::new(process.portrait.at(place));
        }
    }

    /// A process that was not looked at yet.
    fn unread(&mut self, pid: u32) -> Option<&mut Process> {
        if !self.processes.contains_key(&pid) {
            self.remember(pid, Arc::default());
        }
        let process = self.processes.get_mut(&pid)?;
        matches!(process.state, State::Unread).then_some(process)
    }

    /// A process is no more, and `/proc/PID` may soon be another's. It keeps its owner until it is forgotten.
    pub fn ended(&mut self, pid: u32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.ended = true;
        }
    }

    /// Nobody will ask for this process again.
    pub fn forget(&mut self, pid: u32) {
        if let Some(Process {
            state: State::Owned(owner),
            ..
        }) = self.processes.remove(&pid)
        {
            self.register.leave(&owner);
        }
    }

    /// Forgets processes that are no more, also where the end was not told. Reads a file for each of the others.
    pub fn sweep(&mut self) {
        let is_gone = |(pid, process): (&u32, &Process)| {
            if process.ended {
                return Some(*pid);
            }
            let start = start_ticks(&self.proc, *pid);
            let another = process.start_ticks.is_some() && process.start_ticks != start;
            (start.is_none() || another).then_some(*pid)
        };
        let gone: Vec<u32> = self.processes.iter().filter_map(is_gone).collect();
        gone.into_iter().for_each(|pid| self.forget(pid));
    }

    /// The series of an owner have ended: its place is free. `false`: it has processes, which keep it.
    pub fn retire(&mut self, owner: &Owner) -> bool {
        self.register.retire(owner)
    }

    /// Whether a further owner would be counted for [`Owner::other`], until another retires.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.register.is_full()
    }

    /// Whether the process is remembered.
    #[must_use]
    pub fn knows(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid)
    }

    /// How many owners there are.
    #[must_use]
    pub fn owners(&self) -> usize {
        self.register.len()
    }

    /// How many processes were counted for [`Owner::other`] because there were too many owners.
    #[must_use]
    pub fn merged(&self) -> u64 {
        self.register.merged()
    }

    /// How many processes lack labels that they may have had.
    #[must_use]
    pub fn unknown(&self) -> Unknown {
        self.unknown
    }

    /// How many processes are remembered.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Why names of containers are missing.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.containers.trouble(Instant::now())
    }

    fn owned(&self, pid: u32) -> Option<Arc<Owner>> {
        match &self.processes.get(&pid)?.state {
            State::Owned(owner) => Some(Arc::clone(owner)),
            State::Unread | State::Read => None,
        }
    }

    fn settled_at(&mut self, pid: u32, now: Instant) -> Option<Arc<Owner>> {
        self.read(pid);
        let has_ended = self.processes.get(&pid).is_none_or(|process| process.ended);
        let names = self.names(pid, now);
        let names = if has_ended {
            names.or_else(|| Some(Names::default()))
        } else {
            names
        };
        Some(self.decide(pid, &names?))
    }

    /// `None`: they may become known.
    fn names(&mut self, pid: u32, now: Instant) -> Option<Names> {
        let is_wanted = self.wanted.labels().iter().any(Label::is_name_of_container);
        let process = self.processes.get(&pid).filter(|_| is_wanted);
        let nowhere = Place::default();
        let place = process.map_or(&nowhere, |process| &process.portrait.place);
        match self.containers.names(place, now) {
            Answer::Names(names) => Some(names),
            Answer::Later => None,
        }
    }

    /// Looks at a process that was not looked at yet, if it is still there.
    fn read(&mut self, pid: u32) {
        let known = self.processes.get(&pid);
        // the number of a process that has ended may be another's already
        let unread = known.is_none_or(|process| matches!(process.state, State::Unread) && !process.ended);
        if !unread {
            return;
        }
        let portrait = Portrait::read(&self.proc, pid, &self.wanted);
        if known.is_none() {
            self.remember(pid, Arc::default());
        }
        if let (Some(process), Some(mut portrait)) = (self.processes.get_mut(&pid), portrait) {
            // hierarchies of cgroup v1 let go of a process as soon as it exits
            if let Some(told) = process.told.take() {
                portrait.place = portrait.place.or(&told);
            } else if process.placed && portrait.place == Place::default() {
                portrait.place.clone_from(&process.portrait.place);
            }
            process.start_ticks = Some(portrait.start_ticks);
            process.portrait = Arc::new(portrait);
            process.placed = true;
            process.state = State::Read;
        }
    }

    fn decide(&mut self, pid: u32, names: &Names) -> Arc<Owner> {
        let Some(process) = self.processes.get_mut(&pid) else {
            return self.register.merge();
        };
        self.unknown.note(&self.wanted, process);
        let user = self.accounts.name(process.portrait.value(&Label::User));
        let owner = owner(&self.wanted, pid, &process.portrait, names, &user);
        let owner = self.register.enter(owner);
        process.state = State::Owned(Arc::clone(&owner));
        owner
    }

    fn remember(&mut self, pid: u32, portrait: Arc<Portrait>) {
        if self.processes.len() >= self.most_processes && !self.make_room() {
            return;
        }
        let new = Process {
            start_ticks: None,
            ended: false,
            portrait,
            placed: false,
            told: None,
            state: State::Unread,
        };
        self.processes.insert(pid, new);
    }

    /// Looking at all is dear, thus it is done once for many that are refused.
    fn make_room(&mut self) -> bool {
        if self.refused.is_multiple_of(self.most_processes.div_ceil(8)) {
            // nobody ever asked for these
            let is_useless = |process: &Process| process.ended && matches!(process.state, State::Unread);
            self.processes.retain(|_, process| !is_useless(process));
            if self.processes.len() > self.most_processes / 2 {
                self.sweep();
            }
        }
        let room = self.processes.len() < self.most_processes;
        self.refused = if room { 0 } else { self.refused + 1 };
        room
    }
}

fn owner(wanted: &Wanted, pid: u32, portrait: &Portrait, names: &Names, user: &str) -> Owner {
    let value = |label: &Label| match label {
        Label::Pid => pid.to_string(),
        Label::Namespace => names.namespace.clone(),
        Label::Pod => names.pod.clone(),
        Label::Container => names.container.clone(),
        Label::User => user.to_owned(),
        Label::Job if portrait.value(label).is_empty() => names.controller.clone(),
        label => portrait.value(label).to_owned(),
    };
    let labels = wanted.labels().iter().map(|label| (label.name(), value(label)));
    Owner {
        labels: labels.filter(|(_, value)| !value.is_empty()).collect(),
    }
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
