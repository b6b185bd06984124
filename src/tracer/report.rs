//! The end of a run: what was counted, what was not seen, what it cost.
//!
//! What is true at any time ([`Tracer::add_up`]) is apart from how a run ends: [`super::snapshots`] asks for it, too.

use super::Tracer;
use super::gpu::GpuPlane;
use crate::clock::{WallClock, monotonic_ns};
use crate::model::aggregate::{GroupName, Report as Sums};
use crate::model::memory::Report as MemoryReport;
use crate::model::open::OpenCall;
use crate::model::summary::Summary;
use crate::model::totals::{Switches, Taken, Totals};
use crate::model::work::ProcessReport;
use crate::output::say;
use crate::probe::attach::Attacher;
use crate::probe::remover::Remover;
use crate::record::Ending;
use crate::wire::RowCounter;
use anyhow::Result;
use std::time::Duration;

/// So long we wait for probes to be gone, once all else is done.
const LETTING_GO: Duration = Duration::from_millis(300);

/// See [`Tracer::standing`].
pub(super) struct Standing {
    attached: Vec<String>,
    unseen: Vec<String>,
    open: Vec<OpenCall>,
    switches: Switches,
}

impl Tracer {
    /// Detaches, writes what is left, and adds everything up.
    ///
    /// # Errors
    /// The totals cannot be read, or the output cannot be written.
    pub fn finish(mut self) -> Result<(Summary, Result<()>)> {
        let seconds = self.started.elapsed().as_secs_f64();
        // first, and for all at once: probes go one after the other. Whoever is within a call is awaited meanwhile
        let ceased = monotonic_ns();
        self.engine.count_calls(false);
        let ended = monotonic_ns();
        self.end_activities(ceased);
        self.handle_remaining();
        self.await_activities(ceased);
        self.look_for_hanging(ended);
        let calls = (self.open_calls(), self.switches());
        self.look_at_all_code();
        self.look_at_unsure();
        let standing = self.standing(calls);
        let remover = self.detach_all();
        // a call that was in flight while we detached may still have ended
        self.handle_remaining();
        self.take_samples(super::samples::Wanted::All);
        // why devices waited follows from all that has passed
        self.emit(u64::MAX);
        self.measure_all(monotonic_ns(), true);
        self.emit(u64::MAX);
        let summed = self.sum_up(standing, ended, seconds);
        if let Some(encoder) = self.encoder.as_mut() {
            let summary = summed
                .as_ref()
                .ok()
                .map(|summary| crate::sink::summary::to_json_line(summary).to_string());
            let ending = Ending {
                summary: summary.as_deref(),
                cut: None,
            };
            encoder.finish(&ending, &mut self.buffer);
        }
        let written = self.flush().and_then(|()| self.output.settled());
        if let Some(words) = remover.and_then(|remover| remover.settle(LETTING_GO)) {
            say(format_args!("gpuscope: {words}"));
        }
        Ok((summed?, written))
    }

    /// What is true of the whole run.
    fn sum_up(&mut self, standing: Standing, ended: u64, seconds: f64) -> Result<Summary> {
        let snapshot = self.engine.snapshot(self.rows.plans.len())?;
        super::tape::write(self.engine.as_ref(), &self.rows.catalog)?;
        self.add_counted(&snapshot)?;
        self.report_lost(monotonic_ns());
        self.work.tell_graphs(&mut self.launches, true);
        let mut summary = self.add_up(&snapshot, standing, seconds)?;
        summary.cost = self.cost(&summary, &snapshot.counters);
        summary.work = self.work.report(self.engine.as_ref(), ended);
        self.doubt_idleness(snapshot.waits_expired, &mut summary.work);
        self.tell_unreturned();
        let blind = summary.work.iter().any(|process| process.gpu.inferred);
        summary.findings = self.diagnose(blind, summary.cost.in_calls_ns(), &summary.functions);
        summary.steps = self.followed_steps();
        let mut sites = sites_of(&summary.work);
        sites.extend(sites_of_groups(&summary.aggregates));
        let executed = summary.gpu.iter().flat_map(|gpu| &gpu.by_site);
        sites.extend(executed.map(|sum| sum.site));
        let devices = summary.gpu.iter().flat_map(|gpu| &gpu.devices);
        sites.extend(devices.flat_map(|device| &device.causes).filter_map(|cause| cause.site));
        summary.memory = self.report_memory(true, &sites);
        // call sites of what is held are named only now
        summary.unseen.extend(self.memory.sites.take_notes());
        summary.unseen.extend(self.never_asked());
        summary.totals.device_memory = self.taken(&summary.memory);
        Ok(summary)
    }

    /// Where each probe takes long, they are left to a process that may outlive us: nobody waits for that.
    fn detach_all(&mut self) -> Option<Remover> {
        drop(std::mem::take(&mut self.lifecycle));
        let mut remover = None;
        match self.engine.makes_single_events() {
            true => remover = self.attacher.leave_all(),
            false => self.attacher.detach_all(),
        }
        if let Some(driver) = self.driver.as_mut() {
            driver.detach();
        }
        if let Some(remover) = remover.as_mut() {
            remover.begin();
        }
        remover
    }

    /// What is there only as long as probes are. `calls`: those that have not returned, and context switches.
    pub(super) fn standing(&self, (open, switches): (Vec<OpenCall>, Switches)) -> Standing {
        let mut unseen: Vec<String> = self.attacher.gaps().map(|gap| gap.0.clone()).collect();
        unseen.extend(self.family.gaps());
        unseen.extend(nameless_functions(&self.attacher));
        unseen.extend(self.attacher.unguarded());
        unseen.extend(self.wall.as_ref().and_then(WallClock::words));
        unseen.extend(self.gpu.iter().flat_map(GpuPlane::gaps));
        Standing {
            open,
            switches,
            attached: self.attacher.attached().map(describe).collect(),
            unseen,
        }
    }

    /// Adds what the kernel has counted of processes that live.
    pub(super) fn add_counted(&mut self, snapshot: &crate::engine::totals::Snapshot) -> Result<()> {
        self.add_to_tally(snapshot);
        for (key, share) in self.engine.driver_shares()? {
            self.tally.add_share(&key, share);
        }
        Ok(())
    }

    /// What is true once everything that was counted has been added, but for memory and work. Ends nothing.
    pub(super) fn add_up(
        &mut self,
        snapshot: &crate::engine::totals::Snapshot,
        standing: Standing,
        seconds: f64,
    ) -> Result<Summary> {
        let mut summary = self.summarise(&snapshot.counters, seconds);
        summary.attached = standing.attached;
        summary.open = standing.open;
        summary.under_way = self
            .tally
            .under_way(&self.rows.catalog, &snapshot.counters, &summary.functions);
        summary.unseen = standing.unseen;
        self.note_gaps(snapshot, &mut summary);
        self.sum_xids(&mut summary);
        summary.outside = self.report_samples(&mut summary.unseen);
        summary.aggregates = self.report_sums(snapshot, &mut summary.unseen)?;
        summary.driver = self.driver.as_ref().map(super::driver::DriverPlane::report);
        summary.totals = Totals {
            ioctls: self.tally.ioctls(&self.rows.catalog),
            device_memory: None,
            switches: Some(standing.switches).filter(|switches| switches.threads > 0),
        };
        Ok(summary)
    }

    /// What was taken on devices, if that is followed.
    pub(super) fn taken(&self, memory: &MemoryReport) -> Option<Taken> {
        self.rows.follows_memory().then(|| Taken::of(memory))
    }

    /// What rows of users' files have summed up, with what is missing there added to `unseen`.
    fn report_sums(&self, snapshot: &crate::engine::totals::Snapshot, unseen: &mut Vec<String>) -> Result<Vec<Sums>> {
        let missing = self.engine.counters();
        for (count, why) in [
            (
                missing.sums_full,
                "calls are missing in sums: the table of groups was full",
            ),
            (
                missing.sums_raced,
                "calls may be missing among the smallest and largest: too many came at once",
            ),
        ] {
            if count > 0 {
                unseen.push(format!("{count} {why}"));
            }
        }
        let texts = self.engine.aggregate_texts()?;
        Ok(self.aggregates.reports(&self.rows.catalog, &snapshot.counters, &texts))
    }

    /// Who holds memory now. `last`: nothing comes after it.
    pub(crate) fn memory_report(&mut self, last: bool) -> MemoryReport {
        self.report_memory(last, &[])
    }

    fn report_memory(&mut self, last: bool, sites: &[u64]) -> MemoryReport {
        let now = monotonic_ns();
        MemoryReport {
            last,
            ..self.memory.report(self.engine.as_ref(), &self.rows.catalog, now, sites)
        }
    }

    fn handle_remaining(&mut self) {
        self.take_activities();
        self.take_ranges();
        self.events.drain();
        self.handle_notices();
        self.take_xids(monotonic_ns(), true);
        self.follow(u64::MAX);
        self.memory.stubs.finish(&mut self.launches);
        self.declare_callers_unseen();
        self.hold();
        self.memory.late.finish(&mut self.launches);
        self.settle_activities(u64::MAX);
        self.emit(u64::MAX);
    }

    fn summarise(&self, counters: &[RowCounter], seconds: f64) -> Summary {
        let functions = self
            .tally
            .functions(&self.rows.catalog, counters, &|row| self.rows.timed(row), &|row| {
                self.burden.of_row(row)
            });
        let quiet = |name: &str| {
            let row = self.rows.catalog.rows.iter().position(|row| row.symbol == name);
            row.is_some_and(|row| !self.rows.streams(row as u32) && self.rows.catalog.rows[row].hook.streams())
        };
        let counted_only = match &self.encoder {
            Some(encoder) if encoder.shows() => functions
                .iter()
                .filter(|function| quiet(&function.name))
                .map(|function| function.name.clone())
                .collect(),
            _ => Vec::new(),
        };
        Summary {
            seconds,
            failures: self.tally.failures(&self.rows.catalog),
            copies: self.tally.copies(&self.rows.catalog),
            lost_events: counters.iter().map(|counter| counter.lost).sum(),
            malformed: self.malformed_in_all(),
            processes: self.tally.processes(),
            counted_only,
            tier: self.tier().to_owned(),
            engine: self.chosen.clone(),
            kernels: self.launches.report(),
            full_names: self.full_names,
            gpu: self.report_activities(),
            functions,
            ..Summary::default()
        }
    }

    fn sum_xids(&self, summary: &mut Summary) {
        if let Some(xids) = &self.xids {
            (summary.xids, summary.more_xids) = xids.faults();
            summary.unseen.extend(xids.notes(self.engine.as_ref()));
        }
    }

    /// Records of all kinds that made no sense.
    pub(super) fn malformed_in_all(&self) -> u64 {
        let driver = self.driver.as_ref().map_or(0, |driver| driver.malformed);
        let samples = self.samples.as_ref().map_or(0, |samples| samples.malformed);
        self.malformed + self.memory.malformed + self.work.malformed + driver + samples
    }

    /// That nothing was running follows only where every way of giving work is seen.
    pub(super) fn doubt_idleness(&self, waits_expired: u64, work: &mut [ProcessReport]) {
        let early = self.early_loads(waits_expired) > 0;
        let reasons = [
            (
                self.attacher.is_blind(),
                "a function that gives work could not be hooked",
            ),
            (early, "a library was used before it was hooked"),
        ];
        for (_, why) in reasons.into_iter().filter(|(holds, _)| *holds) {
            for process in work.iter_mut() {
                process.gpu.inferred = true;
                process.gpu.notes.push(why.to_owned());
            }
        }
    }
}

/// Where calls of groups came from.
fn sites_of_groups(reports: &[Sums]) -> Vec<u64> {
    let groups = reports.iter().flat_map(|report| &report.groups);
    let sites = groups.filter_map(|group| match group.name {
        GroupName::Stack(site) => Some(site),
        _ => None,
    });
    sites.collect()
}

/// Where calls that waited came from.
fn sites_of(work: &[ProcessReport]) -> Vec<u64> {
    let waits = work.iter().flat_map(|process| &process.waits).map(|wait| wait.site);
    let hidden = work.iter().flat_map(|process| &process.hidden).map(|wait| wait.site);
    waits.chain(hidden).filter(|site| *site != 0).collect()
}

/// What cannot be found in runtimes without symbols, said once for all of them.
fn nameless_functions(attacher: &Attacher) -> Option<String> {
    let stripped = |file: &&crate::probe::attach::Attached| file.embedded == Some(crate::elf::Method::NameStrings);
    let files = attacher.attached().filter(stripped).count();
    (files > 0).then(|| {
        let of = if files == 1 { "file has" } else { "files have" };
        format!(
            "{files} {of} a runtime linked in and stripped: internal functions that never mention their name \
             (__cudaPushCallConfiguration …) are not seen there"
        )
    })
}

fn describe(file: &crate::probe::attach::Attached) -> String {
    let how = match file.embedded {
        None => "",
        Some(crate::elf::Method::SymbolTable) => ", runtime linked in statically",
        Some(crate::elf::Method::NameStrings) => ", runtime linked in statically and stripped",
    };
    let slow = if file.single_stepped > 0 {
        format!(", {} single-stepped", file.single_stepped)
    } else {
        String::new()
    };
    format!("{} ({} functions{how}{slow})", file.path.display(), file.functions())
}

/// CPU seconds used so far and resident bytes of this process, and of those that read for it.
pub(crate) fn own_usage() -> (f64, u64) {
    // SAFETY: the call only fills the structure that it is given
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = rss
        .and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .unwrap_or(0);
    let (others_seconds, others_bytes) = crate::foreign::usage();
    (
        seconds(usage.ru_utime) + seconds(usage.ru_stime) + others_seconds,
        kib * 1024 + others_bytes,
    )
}
