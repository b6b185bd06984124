//! Xids of a running exporter: those of the boot, and those that come.

use crate::clock::clock_now;
use crate::discover;
use crate::driver::xid::{self, Xid};
use crate::output::say;
use crate::owner::{Directory, Owner};
use crate::probe::kernel_log::{From, KernelLog, Logged};
use crate::serve::gather::Xids;
use crate::tracer::Tracer;
use anyhow::Result;
use std::sync::Arc;

/// Processes that are remembered for who asks.
const MOST_NEWS: usize = 1000;

/// Xids of a running exporter.
pub(super) struct Faults {
    xids: Xids,
    /// Where nothing is traced: else it is the tracer's.
    log: Option<KernelLog>,
    refused: Option<String>,
    past: usize,
    /// Processes that were named since somebody asked; `None`: none was.
    news: Vec<Option<u32>>,
}

impl Faults {
    /// Reads what the log has of the boot, and has it followed: by `tracer` if there is one.
    ///
    /// # Errors
    /// The kernel refuses to map a ring.
    pub(super) fn watch(tracer: Option<&mut Tracer>) -> Result<Faults> {
        let mut this = Faults {
            xids: Xids::default(),
            log: None,
            refused: None,
            past: 0,
            news: Vec::new(),
        };
        let past = match tracer {
            Some(tracer) => {
                tracer.watch_xids(true)?;
                this.xids.reads_log = tracer.reads_log();
                tracer.take_past_xids()
            }
            None => this.open(),
        };
        this.past = past.len();
        for logged in &past {
            this.xids.add(&logged.xid, wall(logged), None);
        }
        Ok(this)
    }

    fn open(&mut self) -> Vec<Logged> {
        match KernelLog::open(From::Oldest) {
            Ok(log) => self.log = Some(log),
            Err(refused) => self.refused = Some(format!("Xids of the kernel's log are not seen: {refused}")),
        }
        self.xids.reads_log = self.log.is_some();
        self.log.as_mut().map(KernelLog::read_all).unwrap_or_default()
    }

    /// How many the log had when we came.
    pub(super) fn past(&self) -> usize {
        self.past
    }

    /// Takes in what has come. Says so of the first of each kind: our own log has it beside what else happened.
    pub(super) fn take_in(&mut self, tracer: Option<&mut Tracer>, untraced: Option<&mut Directory>) {
        let mut found: Vec<Xid> = self
            .log
            .iter_mut()
            .flat_map(KernelLog::read)
            .map(|logged| logged.xid)
            .collect();
        let mut of_tracer = None;
        if let Some(tracer) = tracer {
            found.extend(tracer.take_reports().into_iter().map(|report| report.xid));
            of_tracer = tracer.directory();
        }
        let Some(directory) = of_tracer.or(untraced) else {
            return;
        };
        for xid in found {
            let owner = owner_of(&xid, directory);
            if self.news.len() < MOST_NEWS {
                self.news.push(xid.pid);
            }
            if self.xids.add(&xid, clock_now().start_unix_ns as f64 / 1e9, owner) {
                say(format_args!("gpuscope: {}", words(&xid)));
            }
        }
    }

    /// The processes that new Xids have named since this was last asked; `None`: it named none.
    pub(super) fn take_news(&mut self) -> Vec<Option<u32>> {
        std::mem::take(&mut self.news)
    }

    pub(super) fn xids(&self) -> &Xids {
        &self.xids
    }

    /// Why some are missing.
    pub(super) fn troubles(&self, tracer: Option<&Tracer>) -> Vec<String> {
        let missed = self.log.iter().flat_map(|log| log.missed().notes());
        let of_tracer = tracer.map(Tracer::unseen_xids).unwrap_or_default();
        self.refused.iter().cloned().chain(missed).chain(of_tracer).collect()
    }
}

/// Whom the process that the driver names is counted for; it may be gone already.
fn owner_of(xid: &Xid, directory: &mut Directory) -> Option<Arc<Owner>> {
    let pid = xid.pid?;
    let known = directory.knows(pid);
    if !known && discover::is_gone(pid) && xid.name.is_none() {
        return None;
    }
    directory.named(pid, xid.name.as_deref().unwrap_or_default().as_bytes());
    let owner = directory.owner_of(pid);
    if !known && discover::is_gone(pid) {
        directory.forget(pid);
    }
    Some(owner)
}

fn words(found: &Xid) -> String {
    let who = xid::words::process(found).map_or_else(String::new, |process| format!(", {process}"));
    format!(
        "{} of {}{who}: {}",
        xid::words::title(found),
        xid::words::place(found),
        xid::words::meaning(found)
    )
}

/// Seconds since 1970, as exact as the log's clock, which is not set right.
fn wall(logged: &Logged) -> f64 {
    let now = clock_now();
    let ago = (now.start_monotonic_ns / 1000).saturating_sub(logged.at_us);
    (now.start_unix_ns / 1000).saturating_sub(ago) as f64 / 1e6
}
