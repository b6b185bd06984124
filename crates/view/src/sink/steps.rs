//! A program's iterations, as a line of a summary and as JSON, which a report has, too.

use crate::model::step::{Difference, Origin, Slow, Step, Steps, Told, Where};
use crate::text::quantity::{count, duration, escaped, plural};
use serde_json::{Value, json};
use std::fmt::Write;

/// How sure it is that these are steps.
pub(crate) fn certainty(steps: &Steps) -> &'static str {
    match steps.anchor.origin {
        Origin::Call { .. } => "inferred",
        Origin::Range { .. } => "marked",
    }
}

/// What says so; not escaped.
fn origin(steps: &Steps) -> String {
    match steps.anchor.origin {
        Origin::Call { .. } => format!("inferred: {}", steps.anchor.words()),
        Origin::Range { .. } => steps.anchor.words(),
    }
}

/// Those of each process, and why there are none; both null: they were not looked for.
pub(crate) fn to_json(told: &Told) -> (Value, Value) {
    let found = match told.found.is_empty() {
        true => Value::Null,
        false => told.found.iter().map(object).collect(),
    };
    (found, json!(told.why_none))
}

/// A line for each process, or why there is none.
pub(crate) fn to_text(told: &Told) -> String {
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
        let lost = if slow.lost { ", in which calls were lost" } else { "" };
        format!(
            ", the slowest {} (number {}{lost})",
            duration(slow.step.ns()),
            count(slow.step.number)
        )
    });
    let unusual = match steps.unusual {
        0 => String::new(),
        number => format!("; {} beside them did other work", plural(number, "step")),
    };
    let lost = lost(steps).map_or_else(String::new, |lost| format!("; {lost}"));
    format!(
        "{} of {} in the median{}, 99 % of them at most {}{slowest}; {}{unusual}{lost} ({})",
        count(steps.usual),
        duration(steps.median_ns),
        sampled(steps),
        duration(steps.p99_ns),
        warm_up(steps),
        escaped(&origin(steps))
    )
}

/// What lost calls put in doubt; `None`: none were lost meanwhile.
pub(crate) fn lost(steps: &Steps) -> Option<String> {
    (steps.lost_ns > 0).then(|| {
        format!(
            "calls were lost in {} of that time: some steps may be several in one, and have done anything",
            duration(steps.lost_ns)
        )
    })
}

/// Where median and 99th percentile are not those of all.
pub(crate) fn sampled(steps: &Steps) -> String {
    match steps.one_of {
        1 => String::new(),
        one_of => format!(" (of one in {})", count(one_of)),
    }
}

/// What is not among the numbers since it warmed up; or that this is not known.
pub(crate) fn warm_up(steps: &Steps) -> String {
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

fn anchor_json(origin: &Origin) -> Value {
    match origin {
        Origin::Call { name, after, waits, .. } => {
            json!({"name": name, "after": after, "at": if *waits { "end" } else { "begin" }})
        }
        Origin::Range { name, .. } => json!({"range": name}),
    }
}

fn object(steps: &Steps) -> Value {
    let anchor = &steps.anchor;
    json!({
        "pid": anchor.pid, "tid": anchor.tid, "certainty": certainty(steps),
        "anchor": anchor_json(&anchor.origin),
        "varies": anchor.varies, "launches": anchor.launches,
        "explained_launches": anchor.explained, "of_launches": anchor.of,
        "count": steps.count, "since_ns": steps.since_ns, "before_ns": steps.before_ns,
        "warm_up": {"steps": steps.warm_up.steps, "total_ns": steps.warm_up.ns},
        "from_ns": steps.from_ns, "to_ns": steps.to_ns,
        "usual": steps.usual, "usual_ns": steps.usual_ns, "median_ns": steps.median_ns, "p99_ns": steps.p99_ns,
        "min_ns": steps.min_ns, "max_ns": steps.max_ns, "one_of": steps.one_of,
        "idle_ns": steps.idle_ns, "idle_measured": steps.idle_measured, "lost_ns": steps.lost_ns,
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
    object["lost"] = slow.lost.into();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::step::{Anchor, WarmUp};

    fn steps(origin: Origin) -> Steps {
        let step = Step {
            number: 67,
            at: 0,
            end: 17_700_000,
            launches: 20,
            usual: true,
        };
        Steps {
            anchor: Anchor {
                pid: 7,
                tid: None,
                origin,
                varies: false,
                launches: 20,
                explained: 2000,
                of: 2000,
            },
            count: 100,
            since_ns: None,
            before_ns: 0,
            warm_up: WarmUp {
                steps: 1,
                ns: 1_400_000,
            },
            from_ns: 0,
            to_ns: 80_000_000,
            usual: 99,
            usual_ns: 79_000_000,
            median_ns: 599_100,
            p99_ns: 17_700_000,
            min_ns: 547_300,
            max_ns: 17_700_000,
            one_of: 1,
            outside_ns: Some(12_900),
            slowest: vec![Slow {
                step,
                differences: Vec::new(),
                more_allocated_bytes: 0,
                more_idle_ns: 0,
                lost: false,
            }],
            unusual: 2,
            unusual_ns: 9_000_000,
            longest_unusual: Vec::new(),
            idle_ns: 0,
            idle_measured: false,
            lost_ns: 0,
        }
    }

    fn told(steps: Steps) -> String {
        to_text(&Told {
            found: vec![steps],
            why_none: None,
        })
    }

    #[test]
    fn a_line_says_how_many_how_long_and_what_says_so() {
        let call = Origin::Call {
            key: 1,
            name: "cuStreamSynchronize".to_owned(),
            after: None,
            waits: true,
            launches: false,
        };
        let range = Origin::Range {
            key: 1,
            name: "step \u{1b}[2J".to_owned(),
        };
        let late = Steps {
            since_ns: Some(4_000_000_000),
            one_of: 4,
            ..steps(call.clone())
        };
        let mut doubtful = Steps {
            lost_ns: 2_000_000_000,
            ..steps(call.clone())
        };
        doubtful.slowest[0].lost = true;
        insta::assert_snapshot!(told(steps(call)) + &told(steps(range)) + &told(late) + &told(doubtful));
    }

    #[test]
    fn why_there_are_none_is_said_where_they_were_looked_for() {
        let none = Told {
            found: Vec::new(),
            why_none: Some("no launch was seen".to_owned()),
        };
        assert_eq!(to_text(&none), "steps: none found: no launch was seen\n");
        assert_eq!(to_text(&Told::default()), "");
        assert_eq!(to_json(&Told::default()), (Value::Null, Value::Null));
    }
}
