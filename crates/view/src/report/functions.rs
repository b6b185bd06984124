//! Totals by layer and function.

use super::histogram::{Bucket, Histogram};
use super::sum;
use super::texts::{OTHERS, Texts, place};
use crate::catalog::Class;
use crate::model::snapshot::{self, Snapshot};
use crate::record::Record;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Functions that are told apart; what a hostile file has beyond them is one.
const LIMIT: usize = 1 << 14;

/// Which view of the work a row belongs to. Views are never added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    Runtime,
    Driver,
    Other,
}

impl View {
    pub(super) fn of(layer: &str) -> View {
        match layer {
            "runtime" => View::Runtime,
            "driver" => View::Driver,
            _ => View::Other,
        }
    }
}

/// What is known of one function.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Function {
    pub layer: String,
    pub name: String,
    pub category: &'static str,
    pub calls: u64,
    /// `None`: its return is not hooked, so it is not known.
    pub errors: Option<u64>,
    pub total_ns: Option<u64>,
    pub max_ns: Option<u64>,
    /// At most a quarter too high.
    pub p50_ns: Option<u64>,
    /// At most a quarter too high.
    pub p99_ns: Option<u64>,
    pub bytes: u64,
    /// In calls of the kernel driver, where those were traced.
    pub driver_ns: Option<u64>,
    /// Calls of it that have rows; of the others nothing but the totals is known.
    pub rows: u64,
    /// Of those that have rows.
    pub histogram: Vec<Bucket>,
}

/// All functions of a layer, most time first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Layer {
    pub layer: String,
    pub calls: u64,
    pub errors: u64,
    pub total_ns: u64,
    pub functions: Vec<Function>,
}

/// Sums of one function, from rows.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    layer: u32,
    name: u32,
    pub(super) view: View,
    class: Class,
    calls: u64,
    rows: u64,
    errors: u64,
    timed: bool,
    total_ns: u64,
    max_ns: u64,
    bytes: u64,
    times: Histogram,
}

/// Totals by layer and function.
#[derive(Debug, Clone, Default)]
pub(super) struct Functions {
    layers: Texts,
    names: Texts,
    tallies: Vec<Tally>,
    numbers: HashMap<(u32, u32), usize>,
    /// By where the name lies: rows of one batch share it.
    recent: Vec<usize>,
}

impl Functions {
    /// Adds a row; the number of its function.
    pub(super) fn take(&mut self, event: &Record<'_>) -> usize {
        let number = self.number(event);
        let tally = &mut self.tallies[number];
        tally.calls = tally.calls.saturating_add(event.count);
        tally.errors += u64::from(event.failed);
        if let (Some(ns), false) = (event.ns, event.kind == crate::record::Kind::Count) {
            tally.timed = true;
            tally.total_ns = tally.total_ns.saturating_add(ns);
            tally.max_ns = tally.max_ns.max(ns);
            tally.times.add(ns);
        } else if let Some(ns) = event.ns {
            tally.total_ns = tally.total_ns.saturating_add(ns);
        }
        tally.rows += u64::from(event.kind != crate::record::Kind::Count);
        if !event.failed {
            tally.bytes = tally.bytes.saturating_add(event.bytes.unwrap_or(0));
        }
        number
    }

    fn number(&mut self, event: &Record<'_>) -> usize {
        let slot = place(event.name);
        self.recent.resize(self.recent.len().max(slot + 1), 0);
        let guess = self.recent[slot];
        if let Some(tally) = self.tallies.get(guess) {
            let same = self.names.text(tally.name) == event.name && self.layers.text(tally.layer) == event.layer;
            if same {
                return guess;
            }
        }
        let mut key = (self.layers.number(event.layer), self.names.number(event.name));
        if self.tallies.len() >= LIMIT && !self.numbers.contains_key(&key) {
            key = (self.layers.number(OTHERS), self.names.number(OTHERS));
        }
        let tallies = &mut self.tallies;
        let number = *self.numbers.entry(key).or_insert_with(|| {
            tallies.push(Tally::new(key, event));
            tallies.len() - 1
        });
        self.recent[slot] = number;
        number
    }

    pub(super) fn view(&self, number: usize) -> View {
        self.tallies.get(number).map_or(View::Other, |tally| tally.view)
    }

    pub(super) fn name(&self, number: usize) -> &str {
        self.tallies.get(number).map_or("", |tally| self.names.text(tally.name))
    }

    /// By layer; what `exact` says replaces what rows add up to.
    pub(super) fn layers(&self, exact: Option<&Snapshot>) -> Vec<Layer> {
        let mut all: Vec<Function> = self.tallies.iter().map(|tally| self.function(tally)).collect();
        if let Some(exact) = exact {
            correct(&mut all, &exact.functions);
        }
        let mut layers: BTreeMap<(u8, String), Vec<Function>> = BTreeMap::new();
        for function in all {
            let rank = rank(&function.layer);
            layers.entry((rank, function.layer.clone())).or_default().push(function);
        }
        layers
            .into_iter()
            .map(|((_, layer), of)| Layer::of(layer, of))
            .collect()
    }

    /// What rows add up to.
    pub(super) fn totals(&self) -> Vec<snapshot::Function> {
        let all = self.tallies.iter().map(|tally| self.function(tally));
        all.map(|function| snapshot::Function {
            layer: function.layer,
            name: function.name,
            category: function.category.to_owned(),
            calls: function.calls,
            errors: function.errors,
            unfinished: 0,
            bytes: function.bytes,
            total_ns: function.total_ns,
            max_ns: function.max_ns,
            p50_ns: function.p50_ns,
            p99_ns: function.p99_ns,
            driver_ns: None,
        })
        .collect()
    }

    fn function(&self, tally: &Tally) -> Function {
        let timed = |ns: u64| (tally.timed || tally.total_ns > 0).then_some(ns);
        let quantile = |share| tally.times.quantile(share, tally.max_ns).filter(|_| tally.timed);
        Function {
            layer: self.layers.text(tally.layer).to_owned(),
            name: self.names.text(tally.name).to_owned(),
            category: tally.class.category(),
            calls: tally.calls,
            errors: tally.timed.then_some(tally.errors),
            total_ns: timed(tally.total_ns),
            max_ns: tally.timed.then_some(tally.max_ns),
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            bytes: tally.bytes,
            driver_ns: None,
            rows: tally.rows,
            histogram: tally.times.buckets(),
        }
    }
}

impl Tally {
    fn new((layer, name): (u32, u32), event: &Record<'_>) -> Tally {
        Tally {
            layer,
            name,
            view: View::of(event.layer),
            class: event.class,
            calls: 0,
            rows: 0,
            errors: 0,
            timed: false,
            total_ns: 0,
            max_ns: 0,
            bytes: 0,
            times: Histogram::default(),
        }
    }
}

impl Layer {
    fn of(layer: String, mut functions: Vec<Function>) -> Layer {
        let weight = |function: &Function| (function.total_ns.unwrap_or(0), function.calls);
        functions.sort_by(|a, b| weight(b).cmp(&weight(a)).then_with(|| a.name.cmp(&b.name)));
        Layer {
            layer,
            calls: sum(functions.iter().map(|function| function.calls)),
            errors: sum(functions.iter().filter_map(|function| function.errors)),
            total_ns: sum(functions.iter().filter_map(|function| function.total_ns)),
            functions,
        }
    }
}

/// What was written first, then what happened, then what the kernel was asked.
fn rank(layer: &str) -> u8 {
    match layer {
        "runtime" => 0,
        "driver" => 1,
        "kernel" => 3,
        _ => 2,
    }
}

/// Puts exact totals in the place of those of rows.
fn correct(all: &mut Vec<Function>, exact: &[snapshot::Function]) {
    let places: HashMap<(String, String), usize> = all
        .iter()
        .enumerate()
        .map(|(place, function)| ((function.layer.clone(), function.name.clone()), place))
        .collect();
    for exact in exact {
        let key = (exact.layer.clone(), exact.name.clone());
        let place = places.get(&key).copied().unwrap_or(all.len());
        if place == all.len() {
            all.push(unseen(exact));
        }
        let function = &mut all[place];
        function.calls = exact.calls;
        function.errors = exact.errors;
        function.bytes = exact.bytes;
        function.total_ns = exact.total_ns;
        function.max_ns = exact.max_ns;
        function.p50_ns = exact.p50_ns;
        function.p99_ns = exact.p99_ns;
        function.driver_ns = exact.driver_ns;
    }
}

/// A function that has no row.
fn unseen(exact: &snapshot::Function) -> Function {
    let class = Class::ALL.iter().find(|class| class.category() == exact.category);
    Function {
        layer: exact.layer.clone(),
        name: exact.name.clone(),
        category: class.map_or("other", |class| class.category()),
        calls: 0,
        errors: None,
        total_ns: None,
        max_ns: None,
        p50_ns: None,
        p99_ns: None,
        bytes: 0,
        driver_ns: None,
        rows: 0,
        histogram: Vec::new(),
    }
}
