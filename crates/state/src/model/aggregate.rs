//! What rows of users' files have summed up: the kernel's groups, of all processes together unless a row asks for them
//! apart.

use crate::catalog::{Catalog, Fold, Group, Kind, Number, Row};
use crate::wire::{self, AggregateKey, RowCounter};
use std::collections::{BTreeMap, HashMap};

/// What calls have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupName {
    /// Nothing.
    All,
    /// A number of that kind, as read: signed ones in two's complement.
    Number(Kinded),
    /// An enum's value by name.
    Name(String),
    Text(String),
    Process {
        pid: u32,
        comm: Option<String>,
    },
    Thread {
        pid: u32,
        tid: u32,
    },
    /// The id of a call site; see `crates/collect/src/bpf/site.h` for those below 16.
    Stack(u64),
}

/// How a number is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kinded {
    Plain(i128),
    Bytes(u64),
    Nanoseconds(u64),
    Address(u64),
}

/// In which unit the numbers of a report are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Plain,
    Bytes,
    Nanoseconds,
}

/// How many calls had a number from `from` to less than `to`. `None`: without a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    pub from: Option<i128>,
    pub to: Option<i128>,
    pub count: u64,
}

/// The calls of one group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSums {
    pub name: GroupName,
    pub count: u64,
    pub sum: i128,
    /// Where they are kept.
    pub extremes: Option<(i128, i128)>,
    pub buckets: Vec<Bucket>,
}

/// What one row has summed up.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub layer: String,
    pub function: String,
    /// As in the file; `None`: calls that pass the filter are only counted.
    pub aggregate: Option<String>,
    pub fold: Fold,
    pub unit: Unit,
    pub filter: String,
    /// Calls of the function, whether they pass or not.
    pub calls: u64,
    /// Calls in the groups.
    pub passed: u64,
    /// Calls whose arguments or result could not be read: whether they pass, or in which group they are, is not known.
    pub unknown: u64,
    pub groups: Vec<GroupSums>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    count: u64,
    sum: u64,
    largest: u64,
    smallest: u64,
}

/// By row, process where that matters, group and bucket.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    cells: BTreeMap<(u32, u32, u64, u32), Cell>,
    comms: HashMap<u32, String>,
}

impl Tally {
    /// Adds one group of the kernel; `comm` is its process's name, where known.
    pub fn add(&mut self, catalog: &Catalog, key: &AggregateKey, sums: &wire::Aggregate, comm: Option<&str>) {
        let Some(row) = catalog.rows.get(key.row as usize) else {
            return;
        };
        let by = row.hook.aggregate.as_ref().map_or(Group::All, |sums| sums.by);
        let apart = matches!(by, Group::Process | Group::Thread);
        if let (Group::Process, Some(comm)) = (by, comm) {
            self.comms.insert(key.tgid, comm.to_owned());
        }
        let tgid = if apart { key.tgid } else { 0 };
        let cell = self.cells.entry((key.row, tgid, key.group, key.bucket)).or_default();
        cell.count += sums.count;
        cell.sum = cell.sum.wrapping_add(sums.sum);
        cell.largest = cell.largest.max(sums.largest);
        cell.smallest = cell.smallest.max(sums.smallest);
    }

    /// One report for each row that was asked to sum up and was called.
    pub fn reports(&self, catalog: &Catalog, counters: &[RowCounter], texts: &HashMap<u64, String>) -> Vec<Report> {
        let rows = catalog.rows.iter().enumerate();
        let summing = rows.filter(|(row, known)| {
            known.hook.sums_up() && counters.get(*row).is_some_and(|counter| counter.entered > 0)
        });
        let report =
            |(row, known): (usize, &Row)| self.report(catalog, row as u32, known, counters[row].entered, texts);
        summing.map(report).collect()
    }

    fn report(&self, catalog: &Catalog, index: u32, row: &Row, calls: u64, texts: &HashMap<u64, String>) -> Report {
        let sums = row.hook.aggregate.as_ref();
        let (mut groups, mut unknown): (BTreeMap<GroupName, Vec<(u32, Cell)>>, u64) = (BTreeMap::new(), 0);
        for (&(_, tgid, group, bucket), cell) in self.cells.range((index, 0, 0, 0)..(index + 1, 0, 0, 0)) {
            if bucket == wire::BUCKET_UNKNOWN {
                unknown += cell.count;
                continue;
            }
            let name = self.name(catalog, sums.map_or(Group::All, |sums| sums.by), (tgid, group), texts);
            groups.entry(name).or_default().push((bucket, *cell));
        }
        let fold = sums.map_or(Fold::Count, |sums| sums.fold);
        let of = sums.and_then(|sums| sums.of);
        let mut groups: Vec<GroupSums> = groups
            .into_iter()
            .map(|(name, cells)| group(name, &cells, fold, of))
            .collect();
        groups.sort_by_key(|group| std::cmp::Reverse((weight(fold, group), group.count)));
        let library = catalog.library_with(row.library);
        Report {
            layer: library.map(|library| library.name.clone()).unwrap_or_default(),
            function: row.symbol.clone(),
            aggregate: sums.map(|sums| sums.text.clone()),
            fold,
            unit: of.map_or(Unit::Plain, unit),
            filter: row.hook.filter_text.clone(),
            calls,
            passed: groups.iter().map(|group| group.count).sum(),
            unknown,
            groups,
        }
    }

    fn name(&self, catalog: &Catalog, by: Group, key: (u32, u64), texts: &HashMap<u64, String>) -> GroupName {
        let (tgid, group) = key;
        match by {
            Group::All => GroupName::All,
            Group::Process => GroupName::Process {
                pid: tgid,
                comm: self.comms.get(&tgid).cloned(),
            },
            Group::Thread => GroupName::Thread {
                pid: tgid,
                tid: group as u32,
            },
            Group::Stack => GroupName::Stack(group),
            Group::Comm => text(texts, group),
            Group::Number(number) if is_text(number) => text(texts, group),
            Group::Number(number) => numbered(catalog, number, group),
        }
    }
}

fn is_text(number: Number) -> bool {
    number.kind == Kind::CStr && number.operand != crate::catalog::Operand::Result
}

fn text(texts: &HashMap<u64, String>, number: u64) -> GroupName {
    let known = texts.get(&number).cloned();
    GroupName::Text(known.unwrap_or_else(|| "(texts beyond the table)".to_owned()))
}

fn numbered(catalog: &Catalog, number: Number, raw: u64) -> GroupName {
    let value = value(number, raw);
    match number.kind {
        Kind::Enum(id) => match catalog.enum_name(id, value as i64) {
            Some(name) => GroupName::Name(name.to_owned()),
            None => GroupName::Number(Kinded::Plain(value)),
        },
        Kind::DevPtr | Kind::Ptr | Kind::Handle | Kind::Fn | Kind::CStr => GroupName::Number(Kinded::Address(raw)),
        _ => GroupName::Number(match unit(number) {
            Unit::Plain => Kinded::Plain(value),
            Unit::Bytes => Kinded::Bytes(raw),
            Unit::Nanoseconds => Kinded::Nanoseconds(raw),
        }),
    }
}

/// What crossed with its sign flipped, or not.
fn value(number: Number, raw: u64) -> i128 {
    if number.is_signed() {
        i128::from((raw ^ wire::SIGN_BIT) as i64)
    } else {
        i128::from(raw)
    }
}

fn unit(number: Number) -> Unit {
    match (number.operand, number.kind) {
        (crate::catalog::Operand::Duration, _) => Unit::Nanoseconds,
        (_, Kind::Size) => Unit::Bytes,
        _ => Unit::Plain,
    }
}

/// By what groups are ordered.
fn weight(fold: Fold, group: &GroupSums) -> i128 {
    match (fold, group.extremes) {
        (Fold::Sum, _) => group.sum,
        (Fold::Min | Fold::Max, Some((_, largest))) => largest,
        _ => i128::from(group.count),
    }
}

fn group(name: GroupName, cells: &[(u32, Cell)], fold: Fold, of: Option<Number>) -> GroupSums {
    let signed = of.is_some_and(Number::is_signed);
    let sum = |cell: &Cell| {
        if signed {
            i128::from(cell.sum as i64)
        } else {
            i128::from(cell.sum)
        }
    };
    let extremes = |number: Number| {
        let smallest = cells.iter().map(|(_, cell)| value(number, !cell.smallest)).min()?;
        Some((
            smallest,
            cells.iter().map(|(_, cell)| value(number, cell.largest)).max()?,
        ))
    };
    let keeps = matches!(fold, Fold::Min | Fold::Max | Fold::Stats);
    GroupSums {
        name,
        count: cells.iter().map(|(_, cell)| cell.count).sum(),
        sum: cells.iter().map(|(_, cell)| sum(cell)).sum(),
        extremes: of.filter(|_| keeps).and_then(extremes),
        buckets: if fold == Fold::Hist {
            histogram(cells)
        } else {
            Vec::new()
        },
    }
}

fn histogram(cells: &[(u32, Cell)]) -> Vec<Bucket> {
    let mut buckets: Vec<Bucket> = cells.iter().map(|(bucket, cell)| bounds(*bucket, cell.count)).collect();
    buckets.sort_by_key(|bucket| bucket.to.unwrap_or(i128::MAX));
    buckets
}

fn bounds(bucket: u32, count: u64) -> Bucket {
    let (from, to) = match bucket {
        wire::BUCKET_BELOW => (None, Some(0)),
        0 => (Some(0), Some(1)),
        power => (Some(1i128 << (power - 1)), Some(1i128 << power)),
    };
    Bucket { from, to, count }
}

#[cfg(test)]
#[path = "aggregate_tests.rs"]
mod tests;
