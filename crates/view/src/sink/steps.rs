//! A program's iterations, as a line of a summary and as JSON, which a report has, too.

use crate::model::step::{Difference, Origin, Slow, Step, Steps, Told, Where};
use crate::text::quantity::{count, duration, escaped, plural};
use serde_json::{Value, json};
use std::fmt::Write;

/// Certain is what the program says itself.
pub const CERTAINTY: &str = "inferred";

/// Those of each process, and why there are none; both null: they were not looked for.
pub fn to_json(told: &Told) -> (Value, Value) {
    let found = match told.found.is_empty() {
        true => Value::Null,
        false => told.found.iter().map(object).collect(),
    };
    (found, json!(told.why_none))
}

/// A line for each process, or why there is none.
pub fn to_text(told: &Told) -> String {
    let mut out = String::new();
    for steps in &told.found {
        let whose = match told.found.len() {
            1 => String::new(),
            _ => format!(" of process {}", steps.anchor.pid),
        };
        let _ = writeln!(out, "steps{whose}: {}", line(steps));
    }
    if let (true, Some(why)) = (told.found.is_empty(), &told.why_none) {
        let _ = writeln!(out, "steps: none found: {}", escaped(why));
    }
    out
}

fn line(steps: &Steps) -> String {
    let slowest = steps.slowest.first().map_or_else(String::new, |slow| {
        format!(
            ", the slowest {} (number {})",
            duration(slow.step.ns()),
            count(slow.step.number)
        )
    });
    let unusual = match steps.unusual {
        0 => String::new(),
        number => format!("; {} beside them did other work", plural(number, "step")),
    };
    format!(
        "{} of {} in the median{}, 99 % of them at most {}{slowest}; {}{unusual} ({CERTAINTY}: {})",
        count(steps.usual),
        duration(steps.median_ns),
        sampled(steps),
        duration(steps.p99_ns),
        warm_up(steps),
        escaped(&steps.anchor.words())
    )
}

/// Where median and 99th percentile are not those of all.
pub fn sampled(steps: &Steps) -> String {
    match steps.one_of {
        1 => String::new(),
        one_of => format!(" (of one in {})", count(one_of)),
    }
}

/// What is not among the numbers since it warmed up; or that this is not known.
pub fn warm_up(steps: &Steps) -> String {
    if let Some(since) = steps.since_ns {
        return format!(
            "counted from {:.3} s on: before, it was not known where they begin; what warmed up is not among them",
            since as f64 / 1e9
        );
    }
    match steps.warm_up.steps {
        0 => "no warm-up".to_owned(),
        number => format!(
            "{} of warm-up in {}, not among those",
            plural(number, "step"),
            duration(steps.warm_up.ns)
        ),
    }
}

fn object(steps: &Steps) -> Value {
    let Origin::Call { name, after, waits, .. } = &steps.anchor.origin;
    let anchor = &steps.anchor;
    json!({
        "pid": anchor.pid, "tid": anchor.tid, "certainty": CERTAINTY,
        "anchor": {"name": name, "after": after, "at": if *waits { "end" } else { "begin" }},
        "varies": anchor.varies, "launches": anchor.launches,
        "explained_launches": anchor.explained, "of_launches": anchor.of,
        "count": steps.count, "since_ns": steps.since_ns, "before_ns": steps.before_ns,
        "warm_up": {"steps": steps.warm_up.steps, "total_ns": steps.warm_up.ns},
        "from_ns": steps.from_ns, "to_ns": steps.to_ns,
        "usual": steps.usual, "usual_ns": steps.usual_ns, "median_ns": steps.median_ns, "p99_ns": steps.p99_ns,
        "min_ns": steps.min_ns, "max_ns": steps.max_ns, "one_of": steps.one_of,
        "idle_ns": steps.idle_ns,
        "outside_ns": steps.outside_ns,
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
