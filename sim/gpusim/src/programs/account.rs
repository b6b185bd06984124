//! What a program knows that it holds: from the results of its calls, not from the libraries.

use std::collections::BTreeMap;

use crate::counts;

#[derive(Clone, Copy, Default)]
struct Row {
    outstanding: i64,
    held: i64,
    allocations: u64,
    allocated: u64,
    frees: u64,
    freed: u64,
    failed: u64,
}

/// Rows by family and device, and what went wrong with frees.
#[derive(Clone, Default)]
pub struct Account {
    rows: BTreeMap<(&'static str, i32), Row>,
    failed_frees: u64,
    double_frees: u64,
    unknown_frees: u64,
}

impl Account {
    fn row(&mut self, family: &'static str, device: i32) -> &mut Row {
        self.rows.entry((family, device)).or_default()
    }

    pub fn add(&mut self, family: &'static str, device: i32, bytes: u64) {
        let row = self.row(family, device);
        row.outstanding += 1;
        row.held += bytes as i64;
        row.allocations += 1;
        row.allocated += bytes;
    }

    pub fn end(&mut self, family: &'static str, device: i32, bytes: u64) {
        let row = self.row(family, device);
        row.outstanding -= 1;
        row.held -= bytes as i64;
        row.frees += 1;
        row.freed += bytes;
    }

    /// Adds what a call made, or counts its failure.
    pub fn made(&mut self, family: &'static str, device: i32, bytes: u64, result: Result<u64, u32>) -> Option<u64> {
        match result {
            Ok(_) => self.add(family, device, bytes),
            Err(_) => self.row(family, device).failed += 1,
        }
        result.ok()
    }

    /// A call that is expected to fail.
    pub fn failed_as(&mut self, family: &'static str, device: i32, result: Result<u64, u32>) {
        self.row(family, device).failed += u64::from(result.is_err());
    }

    /// Takes off what a call freed, or counts its failure.
    pub fn freed(&mut self, family: &'static str, device: i32, bytes: u64, result: Result<(), u32>) -> bool {
        match result {
            Ok(()) => self.end(family, device, bytes),
            Err(_) => self.failed_frees += 1,
        }
        result.is_ok()
    }

    /// Counts the failure of a call that frees nothing by itself.
    pub fn done(&mut self, result: Result<(), u32>) -> bool {
        self.failed_frees += u64::from(result.is_err());
        result.is_ok()
    }

    pub fn double_free(&mut self, result: Result<(), u32>) {
        self.failed_frees += u64::from(result.is_err());
        self.double_frees += u64::from(result.is_err());
    }

    pub fn unknown_free(&mut self, result: Result<(), u32>) {
        self.failed_frees += u64::from(result.is_err());
        self.unknown_frees += u64::from(result.is_err());
    }

    pub fn merge(&mut self, other: &Account) {
        for ((family, device), from) in &other.rows {
            let to = self.row(family, *device);
            to.outstanding += from.outstanding;
            to.held += from.held;
            to.allocations += from.allocations;
            to.allocated += from.allocated;
            to.frees += from.frees;
            to.freed += from.freed;
            to.failed += from.failed;
        }
        self.failed_frees += other.failed_frees;
        self.double_frees += other.double_frees;
        self.unknown_frees += other.unknown_frees;
    }

    pub fn outstanding(&self) -> (i64, i64) {
        let sum = |of: fn(&Row) -> i64| self.rows.values().map(of).sum();
        (sum(|r| r.outstanding), sum(|r| r.held))
    }

    /// Prints it as one line for machines.
    pub fn print(&self) {
        let rows: Vec<String> = self
            .rows
            .iter()
            .map(|((family, device), row)| line(family, *device, row))
            .collect();
        counts::print_line(format!(
            r#"GPUSIM-BOOK {{"pid":{},"failed_frees":{},"double_frees":{},"unknown_frees":{},"families":[{}]}}"#,
            std::process::id(),
            self.failed_frees,
            self.double_frees,
            self.unknown_frees,
            rows.join(","),
        ));
    }
}

fn line(family: &str, device: i32, row: &Row) -> String {
    format!(
        r#"{{"family":"{family}","device":{device},"outstanding":{},"held_bytes":{},"allocations":{},"allocated_bytes":{},"frees":{},"freed_bytes":{},"failed_allocations":{}}}"#,
        row.outstanding, row.held, row.allocations, row.allocated, row.frees, row.freed, row.failed
    )
}
