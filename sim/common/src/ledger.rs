//! What a library really did, counted exactly and written out when the process ends.
//!
//! Counts live in a static table, one row per function, repeated in a few shards so that
//! threads seldom meet on a cache line. One JSON object is appended to the file per process
//! image (and per [`Ledger::flush`]): the sum of a file's lines is the truth.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::fail::Plan;

const SHARDS: usize = 16;
/// `NOT_READY` answers a query; it is no failure.
const NOT_READY: u32 = 600;

/// What byte totals are kept of.
#[derive(Clone, Copy)]
#[repr(usize)]
pub enum Bytes {
    Alloc,
    Free,
    HtoD,
    DtoH,
    DtoD,
    HtoH,
    Memset,
}

const BYTE_NAMES: [&str; 7] = ["alloc", "free", "htod", "dtoh", "dtod", "htoh", "memset"];

#[repr(align(128))]
struct Shard<const N: usize>([AtomicU64; N]);

/// The ledger of one library, whose functions are `names`.
pub struct Ledger<const N: usize> {
    layer: &'static str,
    names: &'static [&'static CStr; N],
    shards: [Shard<N>; SHARDS],
    bytes: [AtomicU64; BYTE_NAMES.len()],
    launches: AtomicU64,
    results: Mutex<BTreeMap<(usize, u32), u64>>,
    undecided: AtomicBool,
    plan: OnceLock<Plan>,
}

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
}

fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    SHARD.with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Relaxed) % SHARDS);
        }
        own.get()
    })
}

impl<const N: usize> Ledger<N> {
    pub const fn new(layer: &'static str, names: &'static [&'static CStr; N]) -> Self {
        Ledger {
            layer,
            names,
            shards: [const { Shard([const { AtomicU64::new(0) }; N]) }; SHARDS],
            bytes: [const { AtomicU64::new(0) }; BYTE_NAMES.len()],
            launches: AtomicU64::new(0),
            results: Mutex::new(BTreeMap::new()),
            undecided: AtomicBool::new(true),
            plan: OnceLock::new(),
        }
    }

    /// Counts one call and says what error it must fail with, 0 for none.
    #[inline]
    pub fn enter(&self, function: usize) -> u32 {
        self.shards[shard()].0[function].fetch_add(1, Relaxed);
        if self.undecided.load(Relaxed) {
            self.planned(function)
        } else {
            0
        }
    }

    /// Notes how a call ended.
    #[inline]
    pub fn leave(&self, function: usize, result: u32) -> u32 {
        if result != 0 {
            self.note(function, result);
        }
        result
    }

    /// Adds calls that were counted elsewhere.
    pub fn add_calls(&self, function: usize, calls: u64) {
        self.shards[0].0[function].fetch_add(calls, Relaxed);
    }

    pub fn add_bytes(&self, what: Bytes, bytes: u64) {
        self.bytes[what as usize].fetch_add(bytes, Relaxed);
    }

    pub fn add_launches(&self, kernels: u64) {
        self.launches.fetch_add(kernels, Relaxed);
    }

    #[cold]
    fn planned(&self, function: usize) -> u32 {
        let plan = self.plan.get_or_init(Plan::from_env);
        if !plan.concerns(self.names) {
            self.undecided.store(false, Relaxed);
            return 0;
        }
        plan.next(self.names[function].to_bytes())
    }

    #[cold]
    fn note(&self, function: usize, result: u32) {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        *results.entry((function, result)).or_default() += 1;
    }

    /// Forgets everything: a forked child starts its own account.
    pub fn reset(&self) {
        for counter in self.shards.iter().flat_map(|s| &s.0).chain(&self.bytes) {
            counter.store(0, Relaxed);
        }
        self.launches.store(0, Relaxed);
        // A lock that another thread held while forking never opens in the child.
        if let Ok(mut results) = self.results.try_lock() {
            results.clear();
        }
    }

    /// Appends what happened since the last flush to the file `GPUSIM_LEDGER` names (`%p`
    /// stands for the process id) with `.LAYER.json` added. Does nothing without that setting.
    ///
    /// `kernels`: launches by kernel, which the driver knows.
    pub fn flush(&self, kernels: &[(String, u64)]) {
        let Ok(file) = std::env::var("GPUSIM_LEDGER") else {
            return;
        };
        if file.is_empty() {
            return;
        }
        let pid = std::process::id();
        let line = self.line(pid, kernels);
        let path = format!("{}.{}.json", file.replace("%p", &pid.to_string()), self.layer);
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(&path);
        if let Err(error) = opened.and_then(|mut out| out.write_all(line.as_bytes())) {
            eprintln!("gpusim: cannot write the ledger {path}: {error}");
        }
    }

    fn line(&self, pid: u32, kernels: &[(String, u64)]) -> String {
        let mut calls = Vec::new();
        for (function, name) in self.names.iter().enumerate() {
            let count: u64 = self.shards.iter().map(|s| s.0[function].swap(0, Relaxed)).sum();
            if count != 0 {
                calls.push(format!("\"{}\":{count}", name.to_string_lossy()));
            }
        }
        let results = std::mem::take(&mut *self.results.lock().unwrap_or_else(PoisonError::into_inner));
        let mut errors: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let mut not_ready = Vec::new();
        for ((function, result), count) in results {
            if result == NOT_READY {
                not_ready.push(format!("\"{}\":{count}", self.names[function].to_string_lossy()));
            } else {
                errors
                    .entry(function)
                    .or_default()
                    .push(format!("\"{result}\":{count}"));
            }
        }
        let errors: Vec<String> = errors
            .iter()
            .map(|(f, codes)| format!("\"{}\":{{{}}}", self.names[*f].to_string_lossy(), codes.join(",")))
            .collect();
        let bytes: Vec<String> = BYTE_NAMES
            .iter()
            .zip(&self.bytes)
            .map(|(name, count)| format!("\"{name}\":{}", count.swap(0, Relaxed)))
            .collect();
        let kernels: Vec<String> = kernels
            .iter()
            .map(|(name, count)| format!("{}:{count}", quoted(name)))
            .collect();
        let mut line = format!("{{\"layer\":\"{}\",\"pid\":{pid},", self.layer);
        let _ = writeln!(
            line,
            "\"calls\":{{{}}},\"errors\":{{{}}},\"not_ready\":{{{}}},\"bytes\":{{{}}},\"launches\":{},\"kernels\":{{{}}}}}",
            calls.join(","),
            errors.join(","),
            not_ready.join(","),
            bytes.join(","),
            self.launches.swap(0, Relaxed),
            kernels.join(","),
        );
        line
    }
}

/// A JSON string.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        if character.is_ascii_graphic() && !matches!(character, '"' | '\\') {
            quoted.push(character);
        } else {
            let _ = write!(quoted, "\\u{:04x}", u32::from(character));
        }
    }
    quoted + "\""
}
