//! Looks at the calls of one process, and for what is wrong with it: a tracer of its own, on a thread of its own, for as long as
//! somebody wants it.
//!
//! Owns that thread. Totals of all processes cost programs little; single calls cost more: only the process that was chosen
//! pays for them.

use crate::cli::{EngineChoice, Options, Stacks};
use crate::clock::clock_now;
use crate::command::prepare::{self, Subject};
use crate::command::rights;
use crate::command::running::Running;
use crate::model::cost::Hits;
use crate::model::snapshot::Snapshot;
use crate::output::Output;
use crate::record::Encoder;
use crate::record::Meta;
use crate::refusal::{self, NO_THREAD};
use crate::sink::text::{Text, local_zone};
use crate::sink::{NoLines, summary};
use crate::top::model::{Calls, Findings};
use crate::tracer::Tracer;
use anyhow::{Context, Result};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Between two summaries.
const EVERY: Duration = Duration::from_secs(1);
/// Probes are taken away one by one.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is wanted of which process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    pub pid: u32,
    /// Its calls as they come, too.
    pub calls: bool,
}

/// Lines as they are written, for who shows them.
#[derive(Clone)]
struct Tail(Arc<Mutex<Calls>>);

impl Write for Tail {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Looks at one process at a time, which nobody else of ours traces from inside meanwhile.
#[derive(Default)]
pub(super) struct Finder {
    search: Option<Search>,
    /// Those that were told to end, with their processes.
    leaving: Vec<(u32, JoinHandle<()>)>,
}

struct Search {
    wanted: Wanted,
    tail: Tail,
    ends: Arc<AtomicBool>,
    told: Receiver<Findings>,
    thread: JoinHandle<()>,
}

impl Finder {
    /// Looks at that process, or at none, from now on. `alone`: from inside, once whoever looked at one before has let go of it.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn look_at(&mut self, wanted: Option<Wanted>, alone: bool) -> Result<()> {
        if self.search.as_ref().map(|search| search.wanted) == wanted {
            return Ok(());
        }
        if let Some(search) = self.search.take() {
            search.ends.store(true, Ordering::Release);
            self.leaving.push((search.wanted.pid, search.thread));
        }
        self.leaving.retain(|(_, thread)| !thread.is_finished());
        if alone && !self.leaving.is_empty() {
            return Ok(());
        }
        self.search = wanted.map(|wanted| Search::begin(wanted, alone)).transpose()?;
        Ok(())
    }

    /// Whether it looks at that now.
    pub(super) fn looks_at(&self, wanted: Wanted) -> bool {
        self.search.as_ref().is_some_and(|search| search.wanted == wanted)
    }

    /// Whether it looks at that process, or has not let go of it yet.
    pub(super) fn has(&self, pid: u32) -> bool {
        let leaving = self
            .leaving
            .iter()
            .any(|(of, thread)| *of == pid && !thread.is_finished());
        leaving || self.search.as_ref().is_some_and(|search| search.wanted.pid == pid)
    }

    /// What was found since this was last asked.
    pub(super) fn take(&self) -> Option<Findings> {
        self.search.as_ref()?.told.try_iter().last()
    }

    /// Calls as they come, if there are more than `seen`.
    pub(super) fn calls(&self, seen: u64) -> Option<Calls> {
        let search = self.search.as_ref().filter(|search| search.wanted.calls)?;
        let calls = search.tail.0.lock().unwrap_or_else(PoisonError::into_inner);
        (calls.seen > seen || calls.why.is_some()).then(|| calls.clone())
    }
}

impl Drop for Finder {
    fn drop(&mut self) {
        // without a search no thread is started
        let _ = self.look_at(None, false);
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && self.leaving.iter().any(|(_, thread)| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Search {
    fn begin(wanted: Wanted, alone: bool) -> Result<Search> {
        let tail = Tail(Arc::new(Mutex::new(Calls::of(wanted.pid))));
        let shown = tail.clone();
        let ends = Arc::new(AtomicBool::new(false));
        let (tell, told) = channel();
        let is_over = Arc::clone(&ends);
        let look = move || {
            if let Err(error) = search(wanted, alone, &shown, &is_over, &tell) {
                let why = refusal::message(&error).replace('\n', "; ");
                // nobody is there to read it where both end
                let _ = tell.send(Findings::refused(wanted.pid, why.clone()));
                shown.0.lock().unwrap_or_else(PoisonError::into_inner).why = Some(why);
            }
        };
        let thread = Builder::new()
            .name("findings".to_owned())
            .spawn(look)
            .context(NO_THREAD)?;
        Ok(Search {
            wanted,
            tail,
            ends,
            told,
            thread,
        })
    }
}

fn search(wanted: Wanted, alone: bool, tail: &Tail, ends: &AtomicBool, tell: &Sender<Findings>) -> Result<()> {
    let pid = wanted.pid;
    let (mut tracer, prices) = attached(wanted, alone, tail)?;
    let began = Instant::now();
    let mut due = began + EVERY;
    while !ends.load(Ordering::Acquire) {
        tracer.step()?;
        if Instant::now() < due {
            continue;
        }
        due = (due + EVERY).max(Instant::now());
        let found = found(&mut tracer, &prices, pid, began.elapsed().as_secs_f64())?;
        if tell.send(found).is_err() {
            break;
        }
    }
    Ok(())
}

/// And what a hit of its probes costs. As `trace -p PID` does, with call stacks as `record` has them.
fn attached(Wanted { pid, calls }: Wanted, alone: bool, tail: &Tail) -> Result<(Tracer, Vec<Hits>)> {
    let pids = [pid];
    let running = Running {
        pids: &pids,
        all: false,
    };
    let mut options = Options {
        quiet: !calls,
        stacks: Some(Stacks::Sync),
        ..Options::defaults()
    };
    // it runs already, and is not to be held up again by what looks at it twice
    options.which.whose.no_hold = true;
    options.which.whose.engine = match alone {
        true => EngineChoice::Inside,
        false => EngineChoice::Kernel,
    };
    let subject = Subject::Running(running.scope()?);
    let output = Output::to(Box::new(tail.clone()), Path::new("the screen"));
    let mut tracer = prepare::begin(&options, &subject, None, || Ok(output))?;
    let meta = Meta::here(clock_now(), Vec::new(), tracer.tier().to_owned());
    let encoder: Box<dyn Encoder> = match calls {
        true => Box::new(Text::new(meta.clock, local_zone(), false)),
        false => Box::new(NoLines),
    };
    tracer.write_to(encoder, &meta);
    let prices = tracer.prices();
    tracer.add_process(pid)?;
    tracer.begin_counting();
    rights::after_attaching(&tracer);
    Ok((tracer, prices))
}

fn found(tracer: &mut Tracer, prices: &[Hits], pid: u32, seconds: f64) -> Result<Findings> {
    let mut so_far = tracer.summary_so_far(prices)?;
    tracer.name_waits(&mut so_far);
    let snapshot = Snapshot::read(&summary::to_json(&so_far)).context("failed to read a summary")?;
    Ok(Findings::of(&snapshot, pid, seconds))
}
