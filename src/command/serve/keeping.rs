//! The black box of a running exporter: whose last moments are written, when, and what is told of it.
//!
//! Owns the order of these. Which processes belong together is [`owners`]' business; what is kept that of
//! [`BlackBox`], when it is due that of [`Alarms`], and files are the writer's.

mod owners;

use super::sources;
use crate::clock::clock_now;
use crate::device::telemetry::Telemetry;
use crate::output::say;
use crate::owner::{Label, Owner};
use crate::record::Meta;
use crate::refusal::message;
use crate::serve::config::Config;
use crate::serve::gather::Kept;
use crate::serve::keep::{Alarms, Ask, Cause, Job, Whom, Writer};
use crate::serve::metric::Sample;
use crate::trace::blackbox::{BlackBox, Bounds, Failure};
use crate::tracer::Tracer;
use anyhow::Result;
use owners::Owners;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often it is looked whose the processes are.
const NAME_EVERY: Duration = Duration::from_millis(250);

/// The black box of a running exporter.
pub(super) struct Keeping {
    black_box: BlackBox,
    writer: Writer,
    alarms: Alarms<Arc<Owner>>,
    owners: Owners,
    named: Option<Instant>,
    /// Xids that NVML had told of.
    events: Option<u64>,
    /// Whom the recording is about that is being written.
    writing: Option<(Cause, Option<Arc<Owner>>)>,
    kept: Kept,
}

impl Keeping {
    /// Has `tracer` tell of every call. `None`: nobody wants that.
    ///
    /// # Errors
    /// There is no folder for recordings.
    pub(super) fn start(config: &Config, tracer: &mut Tracer) -> Result<Option<Keeping>> {
        let Some(time) = config.keep.time else { return Ok(None) };
        let bounds = Bounds {
            time,
            bytes: usize::try_from(config.keep.memory).unwrap_or(usize::MAX),
        };
        let writer = Writer::start(&sources::keep_folder(config)?, config.keep.disk)?;
        let meta = Meta::here(clock_now(), Vec::new(), tracer.tier().to_owned());
        let black_box = BlackBox::new(&meta, bounds);
        tracer.write_to(Box::new(black_box.clone()), &meta);
        Ok(Some(Keeping {
            black_box,
            writer,
            alarms: Alarms::new(time),
            owners: Owners::labelled(sources::wanted(config)?.labels().iter().map(Label::name).collect()),
            named: None,
            events: None,
            writing: None,
            kept: Kept::default(),
        }))
    }

    /// Takes in what has happened: Xids with the processes that they name, requests. Writes what is due.
    pub(super) fn step(
        &mut self,
        tracer: &mut Tracer,
        xids: Vec<Option<u32>>,
        asks: Vec<Ask>,
        telemetry: Option<&Telemetry>,
    ) {
        let now = Instant::now();
        self.name(tracer, now);
        let has_new_event = self.has_new_event(telemetry) && !tracer.sees_xids();
        let failed = self.black_box.take_failures().into_iter();
        let failed = failed.map(|(failure, pid)| (cause_of(failure), Whom::Process(pid)));
        let named = |pid: Option<u32>| pid.map_or(Whom::Everybody, Whom::Process);
        let xids = xids.into_iter().map(named);
        let xids = xids.chain(has_new_event.then_some(Whom::Everybody));
        let asked = asks.into_iter().map(|ask| (Cause::Webhook, Whom::Asked(ask)));
        for (cause, whom) in failed.chain(xids.map(|whom| (Cause::Xid, whom))).chain(asked) {
            self.alarms.raise(cause, whom, now);
        }
        self.take_outcome();
        self.write_due(tracer, now, telemetry);
    }

    /// Processes of which rows are kept, and those that may be in a call: whoever hangs may have said nothing for longer.
    fn known(&self, tracer: &Tracer) -> BTreeSet<u32> {
        let mut known = tracer.calling();
        known.extend(self.black_box.processes());
        known
    }

    /// All samples.
    pub(super) fn samples(&self) -> Vec<Sample> {
        self.kept.samples(self.writer.files())
    }

    /// Remembers whose the processes are: after their end nobody can tell.
    fn name(&mut self, tracer: &mut Tracer, now: Instant) {
        if self.named.is_some_and(|at| now.duration_since(at) < NAME_EVERY) {
            return;
        }
        self.named = Some(now);
        self.kept.memory_bytes = self.black_box.bytes() as u64;
        self.kept.dropped_rows = self.black_box.dropped().rows;
        let processes = self.known(tracer);
        self.alarms.keep_only(|pid| processes.contains(&pid));
        self.owners.follow(tracer, &processes, now);
    }

    /// Whether NVML tells of more Xids than before.
    fn has_new_event(&mut self, telemetry: Option<&Telemetry>) -> bool {
        let Some(telemetry) = telemetry else { return false };
        let events = telemetry.xids.iter().map(|xid| xid.count).sum();
        let before = self.events.replace(events);
        before.is_some_and(|before| events > before)
    }

    fn write_due(&mut self, tracer: &mut Tracer, now: Instant, telemetry: Option<&Telemetry>) {
        if self.writer.is_busy() {
            return;
        }
        let owners = &self.owners;
        let owner_of = |whom: &Whom| whom.process().and_then(|pid| owners.of(pid));
        let Some(alarm) = self.alarms.take_due(now, owner_of) else {
            return;
        };
        let meant = self.owners.meant(&alarm.whom, &self.known(tracer), telemetry);
        tracer.tell_under_way(&meant);
        match self.black_box.moments(&meant) {
            Ok(Some(moments)) => {
                self.writing = Some((alarm.cause, owner_of(&alarm.whom)));
                self.writer.write(Job {
                    cause: alarm.cause,
                    pid: alarm.whom.process(),
                    bytes: moments.bytes,
                });
            }
            // who is meant has not called
            Ok(None) => {}
            Err(error) => say(format_args!("gpuscope: failed to make a recording: {error}")),
        }
    }

    fn take_outcome(&mut self) {
        let Some(outcome) = self.writer.outcome() else { return };
        let Some((cause, owner)) = self.writing.take() else {
            return;
        };
        let counts = self.kept.recordings.entry(cause).or_default();
        match outcome {
            Ok(file) => {
                counts.0 += 1;
                say(format_args!(
                    "gpuscope: kept the last moments ({}): gpuscope report {}",
                    cause.name(),
                    file.path.display()
                ));
                self.kept.owners.extend(owner.map(|owner| (file.path, owner)));
            }
            Err(error) => {
                counts.1 += 1;
                say(format_args!(
                    "gpuscope: the last moments ({}) are lost: {}",
                    cause.name(),
                    message(&error)
                ));
            }
        }
        let files = self.writer.files();
        self.kept
            .owners
            .retain(|path, _| files.iter().any(|file| file.path == *path));
    }
}

fn cause_of(failure: Failure) -> Cause {
    match failure {
        Failure::Fatal => Cause::FatalError,
        Failure::OutOfMemory => Cause::OutOfMemory,
    }
}
