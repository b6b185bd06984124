//! What a report says of a program's iterations.

use super::Report;
use super::idle::{at_least, share_words};
use super::words::percent;
use crate::record::{Record, Taker};
use crate::steps::{Account, Difference, Found, Origin, Slow, Step, Steps, Where};
use crate::text::quantity::{bytes, count, duration, plural};
use serde_json::{Value, json};

/// Steps of each process, those of the one that launches most first.
#[derive(Debug, Clone, Default)]
pub struct Iterations {
    pub found: Vec<Steps>,
    /// Why there are none. Neither: it was not looked for them.
    pub why_none: Option<String>,
    /// The steady part of the run, of which findings say shares, ns since the start of the trace.
    steady: (i64, i64),
}

/// Rows on their way to it.
#[derive(Debug, Default)]
pub(super) struct StepTally {
    accounts: Vec<Account>,
    why_none: Option<String>,
}

impl StepTally {
    pub(super) fn of(found: Found) -> StepTally {
        StepTally {
            accounts: found.anchors.into_iter().map(Account::new).collect(),
            why_none: found.why_none,
        }
    }

    pub(super) fn take(&mut self, event: &Record<'_>) {
        self.accounts.iter_mut().for_each(|account| account.take(event));
    }

    /// What rows so far say; asked once.
    pub(super) fn told(&mut self, report: &Report) -> Iterations {
        let from = report.from_ns.saturating_add_unsigned(report.run.start_ns);
        let accounts = std::mem::take(&mut self.accounts).into_iter();
        Iterations {
            found: accounts.filter_map(Account::steps).collect(),
            why_none: self.why_none.clone(),
            steady: (from, from.saturating_add_unsigned(report.run.steady_ns)),
        }
    }
}

impl Iterations {
    /// `2,003 of 10.7 ms in the median (inferred)`.
    pub(super) fn fact(&self) -> Option<String> {
        let steps = self.found.first()?;
        let idle = format!("GPU idle at least {} in them", at_least(steps.idle_ns, steps.span_ns()));
        Some(format!(
            "{} of {} in the median (inferred), {idle}",
            count(steps.usual),
            duration(steps.median_ns)
        ))
    }

    /// The part of the steady part that steps cover.
    pub(super) fn coverage(&self, steps: &Steps) -> String {
        let (from, to) = self.steady;
        let steady_ns = u64::try_from(to.saturating_sub(from)).unwrap_or(0);
        let within = u64::try_from(steps.to_ns.min(to).saturating_sub(steps.from_ns.max(from))).unwrap_or(0);
        share_words(within, steady_ns)
    }

    /// `None`: there are none.
    pub(super) fn to_json(&self) -> Option<Value> {
        (!self.found.is_empty()).then(|| self.found.iter().map(object).collect())
    }
}

/// Certain is what the program says itself.
pub(super) const CERTAINTY: &str = "inferred";

/// How sure it is that these are steps.
pub(super) fn evidence(steps: &Steps) -> String {
    let anchor = &steps.anchor;
    let alike = if anchor.varies() {
        "lie in such steps, whose work varies".to_owned()
    } else {
        format!("lie in steps of about the same {}", plural(anchor.launches, "launch"))
    };
    let share = anchor.explained as f64 / anchor.of.max(1) as f64;
    let whose = anchor
        .tid
        .map_or_else(|| format!("process {}", anchor.pid), |tid| format!("thread {tid}"));
    format!(
        "{} of {} of {whose} {alike}",
        percent(share),
        plural(anchor.of, "launch")
    )
}

/// What took longer in a step than in others; not escaped.
pub(super) fn differences(slow: &Slow) -> String {
    let mut words: Vec<String> = slow.differences.iter().map(difference).collect();
    if slow.more_allocated_bytes > 0 {
        words.push(format!("{} allocated", bytes(slow.more_allocated_bytes)));
    }
    if slow.more_idle_ns > slow.step.ns() / 10 {
        words.push(format!("GPU idle at least {}", duration(slow.more_idle_ns)));
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

fn object(steps: &Steps) -> Value {
    let Origin::Call { name, after, waits, .. } = &steps.anchor.origin;
    let anchor = &steps.anchor;
    json!({
        "pid": anchor.pid, "tid": anchor.tid, "certainty": CERTAINTY,
        "anchor": {"name": name, "after": after, "at": if *waits { "end" } else { "begin" }},
        "varies": anchor.varies(), "launches": anchor.launches,
        "explained_launches": anchor.explained, "of_launches": anchor.of,
        "count": steps.count, "before_ns": steps.before_ns,
        "warm_up": {"steps": steps.warm_up.steps, "total_ns": steps.warm_up.ns},
        "from_ns": steps.from_ns, "to_ns": steps.to_ns,
        "usual": steps.usual, "usual_ns": steps.usual_ns, "median_ns": steps.median_ns, "p99_ns": steps.p99_ns,
        "min_ns": steps.min_ns, "max_ns": steps.max_ns, "one_of": steps.one_of,
        "idle_ns": steps.idle_ns,
        "outside_ns": steps.typical.as_ref().map(crate::steps::Detail::outside_ns),
        "slowest": steps.slowest.iter().map(slow).collect::<Value>(),
        "unusual": {
            "steps": steps.unusual, "total_ns": steps.unusual_ns,
            "longest": steps.longest_unusual.iter().map(step).collect::<Value>(),
        },
    })
}

fn step(step: &Step) -> Value {
    json!({"number": step.number, "at_ns": step.at, "ns": step.ns(), "launches": step.launches})
}

fn slow(slow: &Slow) -> Value {
    let mut object = step(&slow.step);
    object["more_allocated_bytes"] = slow.more_allocated_bytes.into();
    object["more_idle_ns"] = slow.more_idle_ns.into();
    let of = |one: &Difference| {
        let place = match one.place {
            Where::Calls(class) => class.name(),
            Where::Outside => "outside",
        };
        let (name, ns) = one.longest.as_ref().map(|(name, ns)| (name, *ns)).unzip();
        json!({"in": place, "more_ns": one.more_ns, "more_calls": one.more_calls, "longest": name, "longest_ns": ns})
    };
    object["differences"] = slow.differences.iter().map(of).collect();
    object
}
