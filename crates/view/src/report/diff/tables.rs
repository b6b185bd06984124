//! What changed of totals and of functions, as tables that both forms write.

use super::{Diff, FunctionChange, Measure, Unit};
use crate::section::{Cell, Column, Section, Table};

/// Functions shown.
const SHOWN: usize = 15;

/// What changed, most first; what did not is one line.
pub(super) fn measures(diff: &Diff<'_>) -> Section {
    let (changed, same): (Vec<&Measure>, Vec<&Measure>) = diff.measures.iter().partition(|one| one.has_changed());
    let columns = vec![
        Column::text(""),
        Column::number("before"),
        Column::number("after"),
        Column::number("change"),
        Column::number("per launch"),
    ];
    let same: Vec<&str> = same.iter().map(|measure| measure.name).collect();
    let same = (!same.is_empty()).then(|| format!("as before (within 1 %): {}", same.join(", ")));
    let table = Table::flat(columns, changed.into_iter().map(measure));
    Section {
        title: Some("Totals".to_owned()),
        below: same,
        unfolded: true,
        table: Table {
            few: diff.measures.len(),
            ..table
        },
        ..Section::default()
    }
}

impl Measure {
    /// Before and after, in its unit.
    pub(crate) fn cells(&self) -> [Cell; 2] {
        let cell = |number| match self.unit {
            Unit::Ns => Cell::Duration(number),
            Unit::Bytes => Cell::Bytes(number),
            Unit::Count => Cell::Count(number),
        };
        [self.before, self.after].map(|number| Cell::of(number, cell))
    }
}

fn measure(measure: &Measure) -> Vec<Cell> {
    let [before, after] = measure.cells();
    vec![
        Cell::Text(measure.name.to_owned()),
        before,
        after,
        Cell::of(measure.change(), Cell::Change),
        Cell::of(measure.change_per_launch(), Cell::Change),
    ]
}

/// Functions that changed, most time gained or lost first.
pub(super) fn functions(diff: &Diff<'_>) -> Section {
    let columns = vec![
        Column::text("function"),
        Column::number("time"),
        Column::number("by call"),
        Column::number("calls before"),
        Column::number("after"),
        Column::number("total before"),
        Column::number("after"),
    ];
    let table = Table::flat(columns, diff.functions.iter().map(function)).of("function");
    Section {
        title: Some("Functions".to_owned()),
        unfolded: true,
        table: Table {
            few: SHOWN,
            all_in: "--json",
            ..table
        },
        ..Section::default()
    }
}

fn function(change: &FunctionChange) -> Vec<Cell> {
    vec![
        Cell::Name(change.name.clone()),
        Cell::More(change.more_ns()),
        Cell::of(change.mean_change(), Cell::Change),
        Cell::Count(change.before_calls),
        Cell::Count(change.after_calls),
        Cell::Duration(change.before_ns),
        Cell::Duration(change.after_ns),
    ]
}
