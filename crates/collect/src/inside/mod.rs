//! The engine inside of processes: an agent that a program loads at its start runs the body of a call there, without root and
//! without the kernel's help, and writes what the programs in the kernel would.
//!
//! Owns the agent's file, the memory that is shared with each process, who may join, and how the entry of a function is
//! patched. The agent itself is `crates/collect/src/agent/`; what a call means is nobody's business here.

mod alive;
mod arena;
mod attendant;
pub(crate) mod door;
pub(crate) mod folder;
#[cfg(any(test, fuzzing))]
pub mod hostile;
mod kept;
mod members;
pub(crate) mod memory;
mod met;
mod numbers;
mod patch;
mod pending;
mod plan;
mod process;
pub mod program;
mod ranges;
mod ring;
mod run;
mod sampler;
mod samples;
mod shared;
pub(crate) mod socket;
pub mod standby;
mod strangers;
mod streams;
mod switches;
mod tables;

use crate::clock::monotonic_ns;
use crate::elf::ElfFile;
use crate::engine::{Arrivals, Counters, Done, Engine, Feed, Hook, Hooks, Point, Seen, Stream, Table, Take};
use crate::probe::{Setup, told};
use crate::processor::{HAS_AGENT, HERE};
use crate::refusal::NO_THREAD;
use crate::stack::wire::SiteCounters;
use crate::wire::{self, read};
use anyhow::{Context, Result, bail};
use arena::{ArenaFile, FLOWS};
use attendant::Attendant;
use door::Door;
use folder::{AGENT, Folder};
use run::{FileName, Run};
use sampler::{Sampler, Watched};
use shared::Shared;
use socket::Listener;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use streams::{Come, Taken};

/// The engine inside of processes.
pub struct Inside {
    shared: Arc<Shared>,
    folder: Folder,
    /// Functions that were to be hooked and are not.
    unhooked: RefCell<Vec<(u32, String)>>,
    watched: Arc<Watched>,
    _attendant: Attendant,
}

impl Inside {
    /// Makes what programs that are started from now on can be traced by.
    ///
    /// # Errors
    /// There is no memory, no folder for the agent, or something is asked for that only the kernel sees.
    pub fn start(setup: &Setup) -> Result<Inside> {
        has_agent()?;
        refuse(setup)?;
        let folder = Folder::make(AGENT)?;
        let shared = Arc::new(Shared::new(Run::make(setup)?, !setup.paused, folder.socket())?);
        let listener = Listener::open(&folder.socket())?;
        Ok(Inside {
            _attendant: Attendant::start(Arc::clone(&shared), listener)?,
            shared,
            folder,
            unhooked: RefCell::default(),
            watched: Arc::default(),
        })
    }
}

impl Inside {
    /// This process is to be traced: it joins, or it stands by, and we stand at its door.
    fn expect(&self, pid: u32) -> Result<()> {
        let mut members = self.shared.members();
        // one without a door may have one later
        if members.stands_at(pid) || members.living().iter().any(|process| process.tgid == pid) {
            return Ok(());
        }
        if let Some(door) = Door::of(pid)? {
            let owner = std::fs::metadata(format!("/proc/{pid}"))?.uid();
            self.shared.admit(owner);
            if owner != crate::user::effective() {
                self.folder.open_to_others()?;
            }
            self.shared.stand_at(&mut members, door)?;
        }
        members.targets.insert(pid);
        Ok(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.shared.members().doors.iter().for_each(Door::leave);
    }
}

/// Whether there is a place for the agent, which programs of other users reach if `for_others`, and memory that can be shared
/// with it.
///
/// # Errors
/// There is none; why.
pub fn is_possible(for_others: bool) -> Result<()> {
    has_agent()?;
    let folder = Folder::make(AGENT)?;
    let reached = match for_others {
        true => folder.may_be_opened(),
        false => Ok(()),
    };
    folder.discard();
    reached?;
    memory::SharedMemory::make(arena::RUN_BYTES)?;
    Ok(())
}

fn has_agent() -> Result<()> {
    anyhow::ensure!(
        HAS_AGENT,
        "no program for {} can be traced from inside: this gpuscope carries no agent for it\nhint: trace it with programs in the kernel (--engine kernel), as root",
        HERE.name
    );
    Ok(())
}

/// What has NVTX call a library.
pub const NVTX: &str = folder::INJECTION;

/// Leaves NVTX to another tool where `given` names one, which a program's environment has already: its path.
pub fn leave_nvtx(all: &mut Vec<(OsString, OsString)>, given: Option<OsString>) -> Option<PathBuf> {
    folder::leave_injection(all, given)
}

/// What cannot be told from inside.
fn refuse(setup: &Setup) -> Result<()> {
    let what = if setup.driver.is_some() && !setup.driver_counted {
        "--layer kernel asks for system calls"
    } else if setup.kernel.functions.is_some() || setup.kernel.tracepoints {
        "functions of the kernel were asked for"
    } else if !setup.only_targets {
        "every process of the machine was asked for"
    } else if setup.uid.is_some() || setup.cgroup.is_some() || !setup.comms.is_empty() {
        "--uid, --cgroup and --comm select whom the kernel lets through"
    } else {
        return Ok(());
    };
    bail!("{what}: only the kernel sees that\nhint: --engine kernel, as root");
}

fn name_of(path: &Path) -> Result<(FileName, ArenaFile)> {
    let facts = std::fs::metadata(path).with_context(|| format!("failed to look at {}", path.display()))?;
    let changed = facts.ctime() * 1_000_000_000 + facts.ctime_nsec();
    let file = ArenaFile {
        device: facts.dev(),
        inode: facts.ino(),
        changed: changed.cast_unsigned(),
    };
    Ok(((file.device, file.inode), file))
}

impl Engine for Inside {
    fn inner(&self) -> &dyn Any {
        self
    }

    fn way(&self) -> &'static str {
        "inside"
    }

    fn rows(&self) -> usize {
        self.shared.run.rows()
    }

    fn open(&self, stream: Stream, take: Take) -> Result<Box<dyn Feed>> {
        if stream == Stream::Ranges {
            self.shared.run.want_ranges();
        }
        Ok(Box::new(Taken::new(Arc::clone(&self.shared), stream, take)))
    }

    fn arrivals(&self) -> Result<Box<dyn Arrivals>> {
        Ok(Box::new(Come::of(Arc::clone(&self.shared))))
    }

    fn attach(&self, path: &Path, points: &[Point]) -> Result<Hooks> {
        let (name, file) = name_of(path)?;
        let planned = plan::of_file(&ElfFile::open(path)?, points);
        let mut unhooked = self.unhooked.borrow_mut();
        let mut members = self.shared.members();
        for (point, why) in planned.refused {
            unhooked.push((point.row, why));
        }
        points.iter().for_each(|point| members.uses_row(point.row));
        self.shared.run.plan(name, &planned.patches, &[])?;
        self.shared.run.know(&file);
        // it stays patched in who has it: there is nothing to take away
        Ok(vec![Box::new(())])
    }

    fn unhooked(&self) -> Vec<(u32, String)> {
        self.unhooked.take()
    }

    fn attach_linker(&self, path: &Path, offset: u64) -> Result<Hooks> {
        let (name, file) = name_of(path)?;
        let calls = plan::of_linker(&ElfFile::open(path)?, offset)?;
        self.shared.run.plan(name, &[], &calls)?;
        self.shared.run.know(&file);
        Ok(vec![Box::new(())])
    }

    /// Agents tell it themselves.
    fn attach_lifecycle(&self) -> Result<Hooks> {
        Ok(Vec::new())
    }

    fn attach_samples(&self) -> Result<Hooks> {
        let started = Sampler::start(Arc::clone(&self.shared), Arc::clone(&self.watched));
        Ok(vec![Box::new(started.context(NO_THREAD)?)])
    }

    fn attach_clock(&self, tid: u32) -> Result<Box<dyn Hook>> {
        Ok(Box::new(self.watched.begin(tid)))
    }

    fn last_stack(&self, tid: u32) -> Option<Seen> {
        self.watched.last_stack(tid)
    }

    fn unsampled(&self) -> Vec<String> {
        self.watched.take_notes()
    }

    fn store(&self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        match table {
            Table::Specs => self.shared.run.set_spec(wire::u32_at(key, 0).into(), value),
            Table::Targets => self.expect(wire::u32_at(key, 0))?,
            Table::Pythons => {
                let mut members = self.shared.members();
                members.pythons.insert(key.to_vec(), value.to_vec());
                let is_meant = |tgid: u32| key == tgid.to_ne_bytes();
                let of_pid = members.living().iter().filter(|process| is_meant(process.tgid));
                of_pid.for_each(|process| process.set_python(key, value));
            }
            Table::KnownFiles => {
                let file = read::<ArenaFile>(key).context("a file is named otherwise")?;
                self.shared.run.know(&file);
            }
            Table::ProbeSites => {
                self.shared.run.set_probe_site(wire::u32_at(key, 0).into(), value);
            }
            _ => bail!("an agent has no table {table:?} to write to"),
        }
        Ok(())
    }

    fn look_up(&self, table: Table, key: &[u8]) -> Option<Vec<u8>> {
        let members = self.shared.members();
        match table {
            Table::Targets => members
                .targets
                .contains(&wire::u32_at(key, 0))
                .then(|| 1u32.to_ne_bytes().to_vec()),
            Table::Flows => Some(members.flow(wire::u32_at(key, 0))),
            _ => members.entries(table).remove(key),
        }
    }

    fn read(&self, table: Table, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let members = self.shared.members();
        if table == Table::FreshFiles {
            for fresh in &members.fresh {
                let value: Vec<u8> = [fresh.sequence, fresh.address]
                    .into_iter()
                    .flat_map(u64::to_ne_bytes)
                    .collect();
                each(wire::bytes_of(&fresh.file), &value);
            }
            return Ok(());
        }
        members.entries(table).iter().for_each(|(key, value)| each(key, value));
        Ok(())
    }

    fn delete(&self, table: Table, key: &[u8]) -> Result<()> {
        let mut members = self.shared.members();
        match table {
            Table::FreshFiles => members.fresh.retain(|fresh| wire::bytes_of(&fresh.file) != key),
            _ if !members.delete(table, key) => bail!("there is no such key in the table {table:?}"),
            _ => {}
        }
        Ok(())
    }

    fn slots(&self, table: Table) -> u32 {
        match table {
            Table::Flows => FLOWS,
            _ => 0,
        }
    }

    fn counter(&self, row: u32) -> Result<wire::RowCounter> {
        Ok(self.shared.members().row(row))
    }

    fn counters(&self) -> Counters {
        self.shared.members().counters()
    }

    fn site_counters(&self) -> SiteCounters {
        self.shared.members().site_counters()
    }

    fn count_calls(&self, on: bool) {
        if !on {
            self.shared.see_ended();
        }
        self.shared.count(on);
        let mut members = self.shared.members();
        if !on {
            members.tell_open_ranges(monotonic_ns());
        }
        for door in &mut members.doors {
            // who cannot be reached is awaited for ever, and that is said
            let _ = if on { door.knock(&self.shared.socket) } else { Ok(()) };
        }
    }

    fn awaited(&self) -> Vec<u32> {
        self.shared.members().awaited()
    }

    fn let_go(&self, tgid: u32) {
        self.shared.see_end(tgid);
    }

    fn alive(&self, _now: u64) {}

    fn free_kernel_totals(&self, count: u64) {
        let members = self.shared.members();
        members
            .living()
            .iter()
            .for_each(|process| process.free_kernel_totals(count));
    }

    fn forget_files(&self) {}

    fn environment(&self, preloaded: Option<OsString>, user: Option<u32>) -> Result<Vec<(OsString, OsString)>> {
        if let Some(user) = user {
            self.shared.admit(user);
            self.folder.open_to_others()?;
        }
        Ok(self.folder.environment(preloaded))
    }

    fn thread(&self, tid: u32) -> Option<Vec<u8>> {
        self.shared.members().thread(tid, told::THREAD_BYTES)
    }

    fn carriers(&self) -> Vec<u32> {
        self.folder.carriers()
    }

    fn strangers(&self) -> Vec<String> {
        self.shared.strangers()
    }

    fn is_inside(&self) -> Option<Done> {
        Some(self.shared.members().done())
    }
}
