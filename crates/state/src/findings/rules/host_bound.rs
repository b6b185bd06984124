//! The device has been given work, and is done with it long before the host comes back from what it does outside CUDA.
//!
//! How long the device worked is not seen; that it was done is, when the host asks for it: by a short wait, or as launches
//! without end have never filled the queue. So the host sets the pace, and what it did outside CUDA is lost at most. Where the
//! device has told what it did, it is seen, and what is lost is the time in which it did nothing.

use crate::catalog::Class;
use crate::findings::cases::{Longest, Phased, Sum};
use crate::findings::evidence::{End, Evidence};
use crate::findings::pace::Verdict;
use crate::findings::past::{Fault, Gap};
use crate::findings::places::Samples;
use crate::findings::seen::{OUTSIDE_NS, Seen, Stretch};
use crate::findings::table::{Bounded, Grow, is_percent};
use crate::findings::{Rule, Wants};
use crate::model::activity::Why;
use crate::model::finding::Finding;
use crate::model::outside::SAMPLE;
use crate::model::work::Certainty;
use crate::record::Kind;
use crate::text::quantity::{duration, plural};

const AT_LEAST: u64 = 10;
const PERCENT: u64 = 10;
const PROCESSES: usize = 1024;
/// A shorter call of code finds what is there: before each launch of a kernel of a library the CUDA runtime asks for it.
const LOOK_UP_NS: u64 = 20_000;
/// Times that the host comes back to load code, for each second that is lost, and part of the time that is lost before them: as often,
/// it may be making it.
const LOADS_PER_SECOND: u64 = 1;
const LOADS_PERCENT: u64 = 20;
/// Where so much of its time outside CUDA is before them, it is what the host does.
const MOST_PERCENT: u64 = 50;
/// Part of the lost time in which the host is said to wait itself.
const WAITS_PERCENT: u64 = 50;

/// Of the times that the host was away.
#[derive(Debug, Default, Clone, Copy)]
struct Away {
    longest: Longest<u32>,
    /// Time in which the thread slept or waited, as far as that is told.
    blocked_ns: u64,
}

impl Sum for Away {
    fn join(&mut self, other: &Away) {
        self.blocked_ns.grow(other.blocked_ns);
        self.longest.join(&other.longest);
    }
}

/// All time outside CUDA, ns.
#[derive(Debug, Default, Clone, Copy)]
struct Outside(u64);

impl Sum for Outside {
    fn join(&mut self, other: &Outside) {
        self.0.grow(other.0);
    }
}

/// Whether a process has come back from outside CUDA, and has not given the device anything since.
#[derive(Debug, Default, Clone, Copy)]
struct Return {
    until: i64,
    /// How long it was away, if it has come back.
    away_ns: u64,
}

/// What a call tells of how long the host was away.
struct Back {
    /// Until this call.
    away_ns: u64,
    /// Before this call of code, the first since it came back; 0: it is none.
    before_code_ns: u64,
}

impl Return {
    fn take(&mut self, seen: &Seen<'_>) -> Back {
        let event = seen.event;
        let ns = u64::try_from(event.at.saturating_sub(self.until)).unwrap_or(0);
        let away_ns = if self.until > 0 && ns >= OUTSIDE_NS { ns } else { 0 };
        if away_ns > 0 {
            self.away_ns = away_ns;
        }
        self.until = self.until.max(event.end());
        let works = matches!(
            event.class,
            Class::Launch | Class::Copy | Class::Memset | Class::Prefetch | Class::Sync
        );
        let is_code = event.class == Class::Module && event.ns.is_none_or(|ns| ns >= LOOK_UP_NS);
        let before_code_ns = if is_code { self.away_ns } else { 0 };
        if is_code || works {
            self.away_ns = 0;
        }
        Back {
            away_ns,
            before_code_ns,
        }
    }
}

/// Of a process.
type Case = (u32, Evidence, Away);

/// Since the last wait, by stretch of the life of its process.
type Open = Vec<(Stretch, Evidence, Away)>;

/// The device is done with its work long before the host comes back.
#[derive(Debug)]
pub(crate) struct HostBound {
    cases: Phased<Away>,
    open: Bounded<Open>,
    /// Of processes whose devices have told what they did.
    measured: Phased<Away>,
    /// First calls of code of those who came back, and all time that they were away.
    loads: Phased<Outside>,
    returns: Bounded<Return>,
    samples: Samples,
}

impl Default for HostBound {
    fn default() -> HostBound {
        HostBound {
            cases: Phased::default(),
            open: Bounded::new(PROCESSES),
            measured: Phased::default(),
            loads: Phased::default(),
            returns: Bounded::new(PROCESSES),
            samples: Samples::default(),
        }
    }
}

impl HostBound {
    fn come_back(&mut self, seen: &Seen<'_>) {
        let process = self.returns.entry(u64::from(seen.event.pid));
        let Some(back) = process.map(|process| process.take(seen)) else {
            return;
        };
        if back.away_ns == 0 && back.before_code_ns == 0 {
            return;
        }
        if let Some((evidence, outside)) = self.loads.of(seen) {
            outside.0.grow(back.away_ns);
            if back.before_code_ns > 0 {
                evidence.add(seen, back.before_code_ns);
            }
        }
    }

    fn note(&mut self, seen: &Seen<'_>) {
        let Some(open) = self.open.entry(u64::from(seen.event.pid)) else {
            return;
        };
        if open.last().is_none_or(|(stretch, ..)| *stretch != seen.stretch) {
            open.push((seen.stretch, Evidence::default(), Away::default()));
        }
        if let Some((_, evidence, away)) = open.last_mut() {
            evidence.add_outside(seen);
            let (ns, tid) = (seen.outside_ns, seen.event.tid);
            away.longest.join(&Longest { ns, whose: tid });
        }
    }

    fn settle(&mut self, seen: &Seen<'_>) {
        let open = self.open.get_mut(u64::from(seen.event.pid));
        for (stretch, evidence, away) in open.map(std::mem::take).unwrap_or_default() {
            if let (Verdict::Ahead, Some((sum, more))) = (seen.step, self.cases.at(seen.event.pid, stretch)) {
                sum.merge(&evidence);
                more.join(&away);
            }
        }
    }

    /// What nobody has waited for since long counts where the device has kept up all the same.
    fn with_open(&self, end: &End<'_>, pid: u32, evidence: &mut Evidence, away: &mut Away) {
        let open = self
            .open
            .get(u64::from(pid))
            .filter(|_| end.courses.keeps_up_unasked(pid));
        let steady = open.into_iter().flatten();
        for (_, more, one) in steady.filter(|(stretch, ..)| end.courses.is_steady(pid, *stretch)) {
            evidence.merge(more);
            away.join(one);
        }
    }

    fn gap(&mut self, seen: &Seen<'_>, gap: &Gap) {
        if let (Fault::Away, Some((evidence, away))) = (gap.fault, self.measured.of(seen)) {
            evidence.add_gap(seen, gap.ns);
            let (ns, tid) = (gap.ns, seen.event.tid);
            away.longest.join(&Longest { ns, whose: tid });
            if Why::from_name(seen.event.name) == Some(Why::Blocked) {
                away.blocked_ns.grow(ns);
            }
            self.samples.gap(seen);
        }
    }

    /// What calls prove, of processes whose devices have not told.
    fn proven(&self, end: &End<'_>) -> Vec<(u32, Evidence, Away)> {
        let mut all: Vec<(u32, Evidence, Away)> = self.cases.steady(end).collect();
        for (pid, _) in self.open.iter() {
            let pid = pid as u32;
            if all.iter().all(|(known, ..)| *known != pid) {
                all.push((pid, Evidence::default(), Away::default()));
            }
        }
        for (pid, evidence, away) in &mut all {
            self.with_open(end, *pid, evidence, away);
        }
        all.retain(|(pid, ..)| !is_measured(end, *pid));
        all
    }

    /// Times that it came back to load code in the steady part, where these are many for the time that is `lost`.
    fn loads(&self, end: &End<'_>, pid: u32, lost: &Evidence) -> Option<Loads> {
        let (_, evidence, Outside(outside_ns)) = self.loads.steady(end).find(|(known, ..)| *known == pid)?;
        let least = (lost.ns / 1_000_000_000).saturating_mul(LOADS_PER_SECOND).max(AT_LEAST);
        let are_many = evidence.count >= least && is_percent(evidence.ns, lost.ns, LOADS_PERCENT);
        are_many.then_some(Loads {
            count: evidence.count,
            are_most: is_percent(evidence.ns, outside_ns, MOST_PERCENT),
        })
    }

    /// And whether that was measured.
    fn costliest(&self, end: &End<'_>) -> Option<(Case, bool)> {
        let told = self.measured.steady(end).filter(|(pid, ..)| is_measured(end, *pid));
        let told = told.map(|case| (case, true));
        let proven = self.proven(end).into_iter().map(|case| (case, false));
        told.chain(proven)
            .max_by_key(|((pid, evidence, _), _)| (evidence.ns, u32::MAX - pid))
    }
}

fn is_measured(end: &End<'_>, pid: u32) -> bool {
    end.courses.is_measured(pid) && !end.run.records_missing
}

const AHEAD: &str = "do the host's work (loading, decoding, logging) in other threads or processes, a step ahead (in PyTorch: \
                     num_workers and prefetch_factor of a DataLoader), or give the device more before it: then it works meanwhile";
const COMPILES: &str = "if it compiles: before the work begins, for few shapes (pad or bucket what varies), and keep what was compiled \
                        (jax_compilation_cache_dir, TORCHINDUCTOR_CACHE_DIR, CUDA_CACHE_PATH); if not, do the host's work in other \
                        threads or processes, a step ahead";

const WAITS: &str = "have what the host itself waits for ready a step ahead: more workers and a deeper queue (in PyTorch: num_workers, \
                     prefetch_factor and persistent_workers of a DataLoader), faster storage, less work for each item; or do without the sleep or the lock";

/// Times that the host came back to load code.
struct Loads {
    count: u64,
    /// Most of its time outside CUDA is before them.
    are_most: bool,
}

/// What the host does meanwhile, as it is told.
enum Doing {
    /// It makes code, as it came back to load it.
    Loads,
    /// It slept or waited, for so many ns.
    Waits(u64),
    Something,
}

impl Doing {
    fn title(&self) -> &'static str {
        match self {
            Doing::Loads => {
                "The host is outside CUDA, mostly before it loads code, while the device is done with what it was given"
            }
            Doing::Waits(_) => {
                "The thread that launches waits outside CUDA while the device is done with what it was given"
            }
            Doing::Something => "The host is outside CUDA while the device is done with what it was given",
        }
    }

    fn cure(&self) -> &'static str {
        match self {
            Doing::Loads => COMPILES,
            Doing::Waits(_) => WAITS,
            Doing::Something => AHEAD,
        }
    }

    /// Behind the places.
    fn words(&self) -> String {
        match self {
            Doing::Waits(ns) => format!(
                "; for {} the thread that launches slept, or waited for others",
                duration(*ns)
            ),
            Doing::Loads | Doing::Something => String::new(),
        }
    }
}

/// That the host may have made code.
fn loaded(loads: &Loads) -> String {
    format!(
        "; after {} or more there it came back {} to load code: it may have been made meanwhile",
        duration(OUTSIDE_NS),
        plural(loads.count, "time")
    )
}

/// What happened, of each certainty.
fn what(evidence: &Evidence, away: &Away, measured: bool, meanwhile: &str) -> String {
    let times = format!(
        "{} in all, {} of {} or more, the longest {} (thread {})",
        duration(evidence.ns),
        plural(evidence.count, "time"),
        duration(OUTSIDE_NS),
        duration(away.longest.ns),
        away.longest.whose
    );
    match measured {
        true => format!(
            "the device was done with everything it had been given, and had nothing to do until its host came back from outside \
             CUDA, for {times}; {meanwhile}"
        ),
        false => format!(
            "the host was outside CUDA for {times}; when it came back, the device had done everything it had been given: at \
             most that time is lost; {meanwhile}"
        ),
    }
}

impl Rule for HostBound {
    fn name(&self) -> &'static str {
        "host-bound"
    }

    fn wants(&self, kind: Kind, _: Class) -> Wants {
        match kind {
            Kind::Call | Kind::Sample => Wants::Work,
            Kind::Idle => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        if seen.event.kind == Kind::Sample {
            if seen.event.name == SAMPLE {
                self.samples.take(seen);
            }
            return;
        }
        if let Some(gap) = &seen.gap {
            return self.gap(seen, gap);
        }
        self.come_back(seen);
        if seen.outside_ns > 0 {
            self.note(seen);
        }
        if seen.step != Verdict::Unproven {
            self.settle(seen);
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let ((pid, evidence, away), measured) = self.costliest(end)?;
        if evidence.count < AT_LEAST || !end.is_share(evidence.ns, PERCENT) {
            return None;
        }
        let sampled = match measured {
            true => self.samples.in_gaps(end, pid),
            false => self.samples.at_any_time(end, pid),
        };
        let waits = is_percent(away.blocked_ns, evidence.ns, WAITS_PERCENT);
        let loads = self.loads(end, pid, &evidence);
        // what is made again and again is not lost at once
        let at_once = is_percent(away.longest.ns, evidence.ns, MOST_PERCENT);
        let doing = match &loads {
            Some(loads) if loads.are_most && !at_once => Doing::Loads,
            _ if waits => Doing::Waits(away.blocked_ns),
            _ => Doing::Something,
        };
        let meanwhile = sampled.words(evidence.ns) + &doing.words() + &loads.as_ref().map(loaded).unwrap_or_default();
        Some(Finding {
            certainty: if measured {
                Certainty::Measured
            } else {
                Certainty::Bound
            },
            title: doing.title().to_owned(),
            what: what(&evidence, &away, measured, &meanwhile),
            site: self.samples.site(&sampled, evidence.ns),
            places: sampled.places,
            cure: doing.cure().to_owned(),
            thresholds: format!(
                "at least {AT_LEAST} times {} or more without a call, with work given to the device, that it had done when \
                 the host waited for it (or that never filled its queue); {PERCENT} % of the steady part",
                duration(OUTSIDE_NS)
            ),
            weakened: end.weakness(&[Class::Launch, Class::Sync]),
            ..evidence.finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests;
