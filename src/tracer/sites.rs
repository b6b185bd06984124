//! Where calls came from: stacks as the kernel sent them, and their names when somebody asks.
//!
//! Owns which stacks are kept, and for how long. How they are read and named is [`crate::stack`]'s business.

use crate::engine::Engine;
use crate::frame::lines::frame_place;
use crate::frame::{Frame, Shown};
use crate::model::memory::Report;
use crate::probe::attach::Name;
use crate::stack::wire::SiteEvent;
use crate::stack::{Kept, Located, Resolver};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// New call sites, of all processes, after which those of ended ones are forgotten: a quarter of the kernel's table.
const SITES_KEPT: u64 = 16384;
/// A call's line is written at most this long after it was entered, but for very long calls.
const REMEMBERED_NS: u64 = 60_000_000_000;

/// Stacks whose frames are kept for the next line.
const MOST_SHOWN: usize = 16384;
/// Stacks of a process that has ended may still come for so long.
const LEAVING: Duration = Duration::from_secs(2);

/// Where calls came from.
#[derive(Default)]
pub(super) struct SitePlane {
    resolver: Resolver,
    /// By id.
    sites: HashMap<u64, Kept>,
    /// Call sites of processes.
    owners: HashMap<u32, Vec<u64>>,
    /// Those of them that have ended, whose call sites still take room in the kernel.
    ended: HashSet<u32>,
    /// Those of these of which nobody asks for stacks any more.
    unwanted: HashSet<u32>,
    /// Processes that have ended, and when it was noticed: what they mapped is needed until their last stacks are kept.
    leaving: Vec<(u32, Instant)>,
    sites_before: u64,
    /// Sites of recent calls, by thread and entry; `None`: nobody asks for them.
    recent: Option<HashMap<(u32, u64), u64>>,
    /// Stacks that lines have shown, by site.
    shown: HashMap<u64, Rc<Shown>>,
    /// Sites that nobody has named yet.
    fresh: Vec<u64>,
}

impl SitePlane {
    /// A process has mapped something: perhaps an interpreter.
    pub(super) fn look_at(&mut self, engine: &dyn Engine, pid: u32) {
        self.resolver.learn(pid);
        self.tell_interpreters(engine);
    }

    /// Whether the files of a process have been looked at.
    pub(super) fn has_looked_at(&self, pid: u32) -> bool {
        self.resolver.knows(pid)
    }

    /// Where in which file a function of process `pid` lies.
    pub(super) fn locate(&mut self, pid: u32, address: u64) -> Located {
        self.resolver.locate(pid, address)
    }

    /// Has the kernel read the interpreters that were found.
    pub(super) fn tell_interpreters(&mut self, engine: &dyn Engine) {
        for (pid, python) in self.resolver.take_interpreters() {
            // a full table of interpreters leaves native stacks
            let _ = engine.set_python(pid, &python);
        }
    }

    /// What of call sites cannot be seen, said once each.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        self.resolver.take_notes()
    }

    /// Whether files are kept open to be named.
    pub(super) fn keeps_files(&self) -> bool {
        self.resolver.keeps_files()
    }

    /// Lets go of files that no process maps: they name nothing any more.
    pub(super) fn keep_only(&mut self, mapped: &HashSet<Name>) {
        self.resolver.keep_only(mapped);
    }

    /// A process has become another program.
    pub(super) fn executed(&mut self, pid: u32) {
        self.resolver.forget(pid);
    }

    /// A process has ended.
    pub(super) fn ended(&mut self, pid: u32) {
        self.leaving.push((pid, Instant::now()));
        // most processes of a machine have none
        if self.owners.contains_key(&pid) {
            self.ended.insert(pid);
        }
    }

    /// Keeps a stack; false: `record` is none.
    pub(super) fn keep(&mut self, record: &[u8]) -> bool {
        let Some(site) = SiteEvent::parse(record) else {
            return false;
        };
        self.owners.entry(site.tgid).or_default().push(site.id);
        self.sites.insert(site.id, self.resolver.keep(&site));
        self.shown.remove(&site.id);
        if self.recent.is_some() {
            self.fresh.push(site.id);
        }
        true
    }

    /// Keeps the stack of a sample; its number.
    pub(super) fn keep_sampled(&mut self, seen: &SiteEvent) -> u64 {
        if !self.sites.contains_key(&seen.id) {
            self.sites.insert(seen.id, self.resolver.keep(seen));
        }
        seen.id
    }

    /// Whether anything is known of where a stack is.
    pub(super) fn says_where(&self, id: u64) -> bool {
        self.sites.get(&id).is_some_and(|kept| !kept.is_empty())
    }

    /// The frames of sampled stacks, each with its number.
    pub(super) fn name_sampled(&mut self, mut ids: Vec<u64>) -> Vec<(u64, Vec<Frame>)> {
        ids.sort_unstable();
        ids.dedup();
        let kept = ids.iter().filter_map(|id| Some((*id, self.sites.get(id)?)));
        let (ids, kept): (Vec<u64>, Vec<&Kept>) = kept.unzip();
        let stacks = self.resolver.name_sampled(kept).into_iter();
        ids.into_iter().zip(stacks.map(|stack| stack.frames)).collect()
    }

    /// Names what came since the last time, all at once: lines will ask for each.
    pub(super) fn name_fresh(&mut self) {
        let fresh = std::mem::take(&mut self.fresh);
        let kept = fresh.iter().filter_map(|id| self.sites.get(id));
        drop(self.resolver.name_all(kept));
    }

    /// Remembers for a moment where calls came from.
    pub(super) fn keep_recent(&mut self) {
        self.recent.get_or_insert_default();
    }

    /// A call of thread `tid` that was entered at `entered` has ended; `site` 0: its stack was not taken.
    pub(super) fn note(&mut self, tid: u32, entered: u64, site: u64) {
        if let (Some(recent), true) = (self.recent.as_mut(), site != 0) {
            recent.insert((tid, entered), site);
        }
    }

    /// Where the call that thread `tid` entered at `entered` came from, if it is remembered.
    pub(super) fn recent(&mut self, tid: u32, entered: u64) -> Option<u64> {
        self.recent.as_mut()?.remove(&(tid, entered))
    }

    /// The named stack of a site, if it was kept.
    pub(super) fn frames(&mut self, site: u64) -> Option<Rc<Shown>> {
        if let Some(shown) = self.shown.get(&site) {
            return Some(Rc::clone(shown));
        }
        let shown = Rc::new(Shown::new(self.resolver.name(self.sites.get(&site)?).frames));
        if self.shown.len() >= MOST_SHOWN {
            self.shown.clear();
        }
        self.shown.insert(site, Rc::clone(&shown));
        Some(shown)
    }

    /// The line of Python that a call came from, of other programs the file and where in it; `None`: its stack is not known yet,
    /// or tells of none. Looks into no file: that may take seconds.
    pub(super) fn place(&self, site: u64) -> Option<String> {
        frame_place(&self.resolver.bare(self.sites.get(&site)?))
    }

    /// Nobody asks any more for stacks of a process that has ended.
    pub(super) fn forget_sites(&mut self, pid: u32) {
        // a stack that the kernel still knows is not sent again: another process with that number may have it, too
        match self.ended.contains(&pid) {
            true => drop(self.unwanted.insert(pid)),
            false => self.drop_sites(pid),
        }
    }

    fn drop_sites(&mut self, pid: u32) {
        for site in self.owners.remove(&pid).into_iter().flatten() {
            self.sites.remove(&site);
            self.shown.remove(&site);
        }
    }

    /// Gives `report` the named stacks of all its sites, and of `more`.
    pub(super) fn name(&mut self, report: &mut Report, more: &[u64]) {
        let shown = report.processes.iter().flat_map(|process| &process.sites);
        let ids = shown.map(|site| site.site).chain(more.iter().copied());
        let kept = ids.filter_map(|id| Some((id, self.sites.get(&id)?)));
        let (ids, kept): (Vec<u64>, Vec<&Kept>) = kept.collect::<BTreeMap<u64, &Kept>>().into_iter().unzip();
        for (id, stack) in ids.into_iter().zip(self.resolver.name_all(kept)) {
            if stack.truncated {
                report.truncated.insert(id);
            }
            report.stacks.insert(id, stack.frames);
        }
    }

    /// To be called each second. Makes room for call sites once many have come since the last time.
    pub(super) fn settle(&mut self, engine: &dyn Engine, now: u64) {
        if let Some(recent) = self.recent.as_mut() {
            recent.retain(|(_, entered), _| *entered + REMEMBERED_NS > now);
        }
        for (pid, _) in self.leaving.extract_if(.., |(_, noticed)| noticed.elapsed() >= LEAVING) {
            self.resolver.forget(pid);
        }
        let sent = engine.site_counters().sent;
        if self.ended.is_empty() || sent < self.sites_before + SITES_KEPT {
            return;
        }
        self.sites_before = sent;
        let ended = std::mem::take(&mut self.ended);
        engine.forget_sites(&|pid| ended.contains(&pid));
        for pid in std::mem::take(&mut self.unwanted) {
            self.drop_sites(pid);
        }
    }
}

/// How many call sites are missing, and why.
pub(super) fn notes(engine: &dyn Engine) -> Vec<String> {
    let counters = engine.site_counters();
    let missing = [
        (counters.unsampled, "beyond the budget of stacks per second"),
        (counters.full, "beyond the table of call sites"),
        (counters.lost, "did not fit into their ring"),
        (counters.no_memory, "found no memory in the kernel"),
    ];
    let missing = missing.iter().filter(|(count, _)| *count > 0);
    missing
        .map(|(count, why)| format!("the call sites of {count} calls are not known: {why}"))
        .collect()
}
