//! Calls that failed, calls that have no rows, and faults of devices.

use super::site;
use super::texts::Texts;
use crate::model::snapshot;
use crate::record::Record;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// Functions and errors that are told apart together; failures beyond them count in totals alone.
const LIMIT: usize = 1 << 14;
/// Faults that are kept.
const XIDS: usize = 256;
/// Spans without rows that are kept.
const SPANS: usize = 64;

/// Calls of one function that failed in one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failure {
    pub name: String,
    pub error: String,
    pub count: u64,
    /// Of the first that has a row.
    pub first_ns: Option<i64>,
    /// Where the first with a stack was called from.
    pub site: Option<String>,
}

/// Calls without rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Losses {
    pub calls: u64,
    /// By function, most first.
    pub functions: Vec<Lost>,
    /// When; at most 64 of them.
    pub spans: Vec<Span>,
}

/// Calls of one function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lost {
    pub name: String,
    pub count: u64,
}

/// Calls are missing somewhere between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    pub from_ns: i64,
    pub to_ns: i64,
}

/// A fault of a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Xid {
    pub(crate) at_ns: i64,
    /// As docs/output.md has them.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// Calls that failed, calls that have no rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Failures {
    errors: Texts,
    of: HashMap<(usize, u32), Failure>,
    lost: BTreeMap<String, u64>,
    spans: Vec<Span>,
    pub(super) xids: Vec<Xid>,
}

impl Failures {
    /// A call that failed.
    pub(super) fn take(&mut self, event: &Record<'_>, function: usize) {
        let error = event.error.unwrap_or("");
        let key = (function, self.errors.number(error));
        if self.of.len() >= LIMIT && !self.of.contains_key(&key) {
            return;
        }
        let failure = self.of.entry(key).or_insert_with(|| Failure {
            name: event.name.to_owned(),
            error: match (error, event.result) {
                ("", Some(code)) => code.to_string(),
                _ => error.to_owned(),
            },
            count: 0,
            first_ns: Some(event.at),
            site: None,
        });
        failure.count = failure.count.saturating_add(event.count);
        if failure.site.is_none() {
            failure.site = event.stack.and_then(site::place);
        }
    }

    /// Calls without rows.
    pub(super) fn lose(&mut self, event: &Record<'_>) {
        if self.lost.len() < XIDS * XIDS || self.lost.contains_key(event.name) {
            let lost = self.lost.entry(event.name.to_owned()).or_default();
            *lost = lost.saturating_add(event.count);
        }
        let span = Span {
            from_ns: event.at,
            to_ns: event.end(),
        };
        if self.spans.len() < SPANS && self.spans.last() != Some(&span) {
            self.spans.push(span);
        }
    }

    /// A fault.
    pub(super) fn fault(&mut self, event: &Record<'_>) {
        if self.xids.len() >= XIDS {
            return;
        }
        let fields = event.args.and_then(|args| serde_json::from_str(args).ok());
        self.xids.push(Xid {
            at_ns: event.at,
            fields: fields.unwrap_or_default(),
        });
    }

    /// What rows add up to.
    pub(super) fn totals(&self) -> Vec<snapshot::Failure> {
        let all = self.list(&[]).into_iter();
        all.map(|failure| snapshot::Failure {
            name: failure.name,
            error: failure.error,
            count: failure.count,
        })
        .collect()
    }

    /// The faults that rows tell of, by kind.
    pub(super) fn faults(&self) -> Vec<snapshot::Xid> {
        let mut faults: Vec<snapshot::Xid> = Vec::new();
        for xid in &self.xids {
            let word = |key: &str| xid.fields.get(key).and_then(Value::as_str).unwrap_or("?").to_owned();
            let pid = xid.fields.get("pid").and_then(Value::as_u64);
            let pid = pid.and_then(|pid| u32::try_from(pid).ok());
            let (name, pci) = (word("name"), word("pci"));
            match faults
                .iter_mut()
                .find(|one| (&one.name, &one.pci, one.pid) == (&name, &pci, pid))
            {
                Some(known) => known.count += 1,
                None => faults.push(snapshot::Xid {
                    name,
                    pci,
                    pid,
                    count: 1,
                }),
            }
        }
        faults
    }

    /// Most first; what `exact` says replaces what rows add up to.
    pub(super) fn list(&self, exact: &[snapshot::Failure]) -> Vec<Failure> {
        let mut failures: Vec<Failure> = self.of.values().cloned().collect();
        exact.iter().for_each(|reported| correct(&mut failures, reported));
        failures.sort_by(|a, b| {
            b.count
                .cmp(&a.count)
                .then_with(|| (&a.name, &a.error).cmp(&(&b.name, &b.error)))
        });
        failures
    }

    pub(super) fn losses(&self) -> Losses {
        let lost = self.lost.iter().map(|(name, count)| Lost {
            name: name.clone(),
            count: *count,
        });
        let mut functions: Vec<Lost> = lost.collect();
        functions.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        Losses {
            calls: functions.iter().map(|lost| lost.count).fold(0, u64::saturating_add),
            functions,
            spans: self.spans.clone(),
        }
    }
}

fn correct(failures: &mut Vec<Failure>, reported: &snapshot::Failure) {
    let is_known = |one: &&mut Failure| one.name == reported.name && one.error == reported.error;
    let known = failures.iter_mut().find(is_known);
    match known {
        Some(failure) => failure.count = reported.count,
        None => failures.push(Failure {
            name: reported.name.clone(),
            error: reported.error.clone(),
            count: reported.count,
            first_ns: None,
            site: None,
        }),
    }
}
