//! What the simulated libraries really did.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Calls by layer and function.
pub type Counts = BTreeMap<(String, String), u64>;

/// The sum of all ledgers in a folder.
#[derive(Debug, Default, Clone)]
pub struct Ledger {
    /// Every call, also those that another one continues in.
    pub calls: Counts,
    /// Failed calls by function and code.
    pub errors: BTreeMap<(String, u64), u64>,
    /// Bytes of the driver: `alloc`, `htod`, ….
    pub bytes: BTreeMap<String, u64>,
    /// Launches by kernel.
    pub kernels: BTreeMap<String, u64>,
    pub pids: BTreeSet<u64>,
}

impl Ledger {
    /// Reads `FOLDER/*.json`; an absent folder is an empty ledger.
    pub fn read(folder: &Path) -> Ledger {
        let mut ledger = Ledger::default();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "json") {
                let text = std::fs::read_to_string(entry.path()).expect("a ledger");
                text.lines().for_each(|line| ledger.add(line));
            }
        }
        ledger
    }

    fn add(&mut self, line: &str) {
        let image: Value = serde_json::from_str(line).expect("a ledger line");
        let layer = image["layer"].as_str().expect("a layer").to_owned();
        self.pids.extend(image["pid"].as_u64());
        for (name, count) in entries(&image["calls"]) {
            *self.calls.entry((layer.clone(), name)).or_default() += count;
        }
        for (name, codes) in image["errors"].as_object().into_iter().flatten() {
            for (code, count) in entries(codes) {
                let key = (name.clone(), code.parse().expect("a code"));
                *self.errors.entry(key).or_default() += count;
            }
        }
        for (kernel, launches) in entries(&image["kernels"]) {
            *self.kernels.entry(kernel).or_default() += launches;
        }
        for (what, bytes) in entries(&image["bytes"]) {
            *self.bytes.entry(what).or_default() += bytes;
        }
    }

    /// The calls that a tracer should report: `__cudaLaunchKernel` jumps into `cudaLaunchKernel`, which the
    /// ledger counts beside it.
    pub fn visible(&self) -> Counts {
        let mut calls = self.calls.clone();
        calls.remove(&("runtime".to_owned(), "__cudaLaunchKernel".to_owned()));
        calls
    }

    /// Its visible calls of functions for which `keep` holds.
    pub fn visible_where(&self, keep: impl Fn(&str, &str) -> bool) -> Counts {
        let mut calls = self.visible();
        calls.retain(|(layer, name), _| keep(layer, name));
        calls
    }
}

fn entries(object: &Value) -> impl Iterator<Item = (String, u64)> {
    let object = object.as_object().into_iter().flatten();
    object.map(|(name, count)| (name.clone(), count.as_u64().expect("a count")))
}

/// The ledgers of each folder in `folder`, by the folder's name.
pub fn ledgers_of(folder: &Path) -> BTreeMap<String, Ledger> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                Ledger::read(&entry.path()),
            )
        })
        .collect()
}
