//! What a report says of a program's iterations.

use super::Report;
use super::idle::{at_least, share_words};
use super::words::percent;
use crate::model::step::{Difference, Origin, Slow, Steps, Told, Where};
use crate::record::{Record, Taker};
use crate::sink::steps::certainty;
use crate::steps::{Account, Anchor, Followed, Follower};
use crate::text::quantity::{bytes, count, duration, plural};

/// Steps of each process.
#[derive(Debug, Clone, Default)]
pub struct Iterations {
    pub told: Told,
    /// The steady part of the run, of which findings say shares, ns since the start of the trace.
    steady: (i64, i64),
}

/// Rows on their way to it.
#[derive(Debug)]
pub(super) enum StepTally {
    Takes(Box<Follower<Account>>),
    Knows(Box<Followed<Account>>),
    /// Of a part of a trace.
    Off,
}

impl Default for StepTally {
    fn default() -> StepTally {
        StepTally::Takes(Box::default())
    }
}

impl StepTally {
    pub(super) fn take(&mut self, event: &Record<'_>) {
        if let StepTally::Takes(follower) = self {
            follower.take(event);
        }
    }

    /// After the last row: what steps are cut at, where they have to be read again for that.
    pub(super) fn again(&mut self) -> Option<Vec<Anchor>> {
        let StepTally::Takes(follower) = std::mem::replace(self, StepTally::Off) else {
            return None;
        };
        let followed = follower.finish();
        let again = followed.again.clone();
        *self = StepTally::Knows(Box::new(followed));
        again
    }

    /// What rows so far say; asked once.
    pub(super) fn told(&mut self, report: &Report) -> Iterations {
        let from = report.from_ns.saturating_add_unsigned(report.run.start_ns);
        let followed = match std::mem::replace(self, StepTally::Off) {
            StepTally::Takes(follower) => follower.finish(),
            StepTally::Knows(followed) => *followed,
            StepTally::Off => return Iterations::default(),
        };
        Iterations {
            told: followed.told(!report.run.records_missing),
            steady: (from, from.saturating_add_unsigned(report.run.steady_ns)),
        }
    }
}

impl Iterations {
    /// `2,003 of 10.7 ms in the median (inferred)`.
    pub(super) fn fact(&self) -> Option<String> {
        let steps = self.told.found.first()?;
        let share = at_least(steps.idle_ns, steps.span_ns());
        let idle = match steps.idle_measured {
            true => format!("GPU idle {share} in them (measured)"),
            false => format!("GPU idle at least {share} in them"),
        };
        let whose = match self.told.found.len() {
            1 => String::new(),
            _ => format!(" of process {}", steps.anchor.pid),
        };
        Some(format!(
            "{}{whose} of {} in the median ({}), {idle}",
            count(steps.usual),
            duration(steps.median_ns),
            certainty(steps)
        ))
    }

    /// The part of the steady part that steps cover.
    pub(super) fn coverage(&self, steps: &Steps) -> String {
        let (from, to) = self.steady;
        let steady_ns = u64::try_from(to.saturating_sub(from)).unwrap_or(0);
        let within = u64::try_from(steps.to_ns.min(to).saturating_sub(steps.from_ns.max(from))).unwrap_or(0);
        share_words(within, steady_ns)
    }
}

/// How sure it is that these are steps.
pub(super) fn evidence(steps: &Steps) -> String {
    let anchor = &steps.anchor;
    let alike = if matches!(anchor.origin, Origin::Range { .. }) {
        "lie in them, whichever thread made them".to_owned()
    } else if anchor.varies {
        "lie in such steps, whose work varies".to_owned()
    } else {
        format!("lie in steps of about the same {}", plural(anchor.launches, "launch"))
    };
    let share = anchor.explained as f64 / anchor.of.max(1) as f64;
    let of_thread = anchor.tid.filter(|_| matches!(anchor.origin, Origin::Call { .. }));
    let whose = of_thread.map_or_else(|| format!("process {}", anchor.pid), |tid| format!("thread {tid}"));
    format!(
        "{} of {} of {whose} {alike}",
        percent(share),
        plural(anchor.of, "launch")
    )
}

/// What took longer in a step of `steps` than in others; not escaped.
pub(super) fn differences(steps: &Steps, slow: &Slow) -> String {
    if slow.lost {
        return "calls were lost meanwhile: what it did is not known".to_owned();
    }
    let mut words: Vec<String> = slow.differences.iter().map(difference).collect();
    if slow.more_allocated_bytes > 0 {
        words.push(format!("{} allocated", bytes(slow.more_allocated_bytes)));
    }
    if slow.more_idle_ns > slow.step.ns() / 10 {
        let least = if steps.idle_measured { "" } else { "at least " };
        words.push(format!("GPU idle {least}{}", duration(slow.more_idle_ns)));
    }
    words.join("; ")
}

fn difference(one: &Difference) -> String {
    let more = duration(one.more_ns);
    let Where::Calls(class) = one.place else {
        return format!("no CUDA call {more}");
    };
    let calls = Some(one.more_calls).filter(|calls| *calls > 0);
    let calls = calls.map(|calls| format!("{} more", plural(calls, "call")));
    let longest = one.longest.as_ref();
    let longest = longest.map(|(name, ns)| format!("{name} {}", duration(*ns)));
    let about: Vec<String> = longest.into_iter().chain(calls).collect();
    format!("{} {more} ({})", class.name(), about.join(", "))
}
