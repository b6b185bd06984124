//! The program's iterations: how many, how long, and what the slowest did otherwise.

use super::super::Report;
use super::super::idle::share_words;
use super::super::steps::{Iterations, differences, evidence};
use super::super::words::at;
use crate::model::step::{Slow, Steps};
use crate::section::{Cell, Chapter, Column, Section, Table};
use crate::sink::steps::{certainty, lost, sampled, warm_up};
use crate::text::quantity::{count, duration, plural};

/// Steps that are told where there is little room.
const FEW: usize = 5;
/// A slow step took so much longer than the median.
const SLOWER_PERCENT: u64 = 5;

pub(super) fn steps(report: &Report) -> Chapter {
    let told = &report.steps;
    let several = told.told.found.len() > 1;
    let found = told.told.found.iter().map(|steps| section(told, steps, several));
    let none = told.told.why_none.as_ref().map(|why| Section {
        lines: vec![format!("no steps found: {why}")],
        ..Section::default()
    });
    Chapter {
        id: "steps",
        name: "Steps",
        title: "Steps".to_owned(),
        sections: found.chain(none).collect(),
    }
}

fn section(told: &Iterations, steps: &Steps, several: bool) -> Section {
    let columns = vec![
        Column::number("step"),
        Column::number("took").bar(),
        Column::number("longer by"),
        Column::number("at"),
        Column::text("of it in"),
    ];
    let limit_ns = steps.median_ns.saturating_add(steps.median_ns / 100 * SLOWER_PERCENT);
    let slower = steps.slowest.iter().filter(|slow| slow.step.ns() > limit_ns);
    let table = Table::flat(columns, slower.map(|slow| row(steps, slow))).of("slow step");
    Section {
        title: several.then(|| format!("Steps, process {}", steps.anchor.pid)),
        about: format!(
            "{} of {} in the median ({}): {}",
            count(steps.usual),
            duration(steps.median_ns),
            certainty(steps),
            steps.anchor.words()
        ),
        lines: lines(told, steps),
        table: Table { few: FEW, ..table },
        ..Section::default()
    }
}

fn lines(told: &Iterations, steps: &Steps) -> Vec<String> {
    let times = format!(
        "from {} to {}, 99 % of them at most {}{}; numbered from 1 to {}",
        duration(steps.min_ns),
        duration(steps.max_ns),
        duration(steps.p99_ns),
        sampled(steps),
        count(steps.count)
    );
    let mut lines = vec![times, start(steps)];
    lines.extend(unusual(steps));
    lines.extend(lost(steps));
    lines.push(format!(
        "they cover {} of the steady part; {}",
        told.coverage(steps),
        evidence(steps)
    ));
    let idle = share_words(steps.idle_ns, steps.span_ns());
    let idle = match steps.idle_measured {
        true => format!("{idle}, measured"),
        false => format!("at least {idle}"),
    };
    let outside = steps.outside_ns.map_or_else(|| "-".to_owned(), duration);
    lines.push(format!(
        "in them the GPU was idle for {idle}; the host in no CUDA call: {outside} a step"
    ));
    lines
}

fn start(steps: &Steps) -> String {
    match steps.since_ns {
        Some(_) => warm_up(steps),
        None => format!(
            "{} from the first call to the first step; {}",
            duration(steps.before_ns),
            warm_up(steps)
        ),
    }
}

fn unusual(steps: &Steps) -> Option<String> {
    let longest = steps.longest_unusual.first()?;
    let what = match steps.lost_ns {
        0 => "did other work, or more, such as an evaluation",
        _ => "did other work, or more, or calls of them were lost",
    };
    Some(format!(
        "{} beside them {what}: {}, the longest {} at {} for {}",
        plural(steps.unusual, "step"),
        duration(steps.unusual_ns),
        count(longest.number),
        at(longest.at),
        duration(longest.ns())
    ))
}

fn row(steps: &Steps, slow: &Slow) -> Vec<Cell> {
    vec![
        Cell::Count(slow.step.number),
        Cell::Duration(slow.step.ns()),
        Cell::Duration(slow.step.ns().saturating_sub(steps.median_ns)),
        Cell::Moment(slow.step.at),
        Cell::Text(differences(steps, slow)),
    ]
}
