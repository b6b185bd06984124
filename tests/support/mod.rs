//! What the tests of whole runs share: gpuscope and programs as processes, and what both wrote.
//!
//! Nothing here knows what is right; that is said by the tests.
//!
//! Others may trace this machine meanwhile, all of its processes, too. So what a test says of probes is about those of its
//! own gpuscope ([`probes_of`], [`Running::probes_in`]), and of code about how it differs from that of a program which
//! only the others trace ([`OwnSim`]).

#![allow(dead_code, unused_imports, reason = "each test program uses its own part")]
#![allow(clippy::expect_used, reason = "whatever fails here fails the test")]

mod asked_store;
pub mod browser;
pub mod callers;
mod engine;
mod gpuscope;
mod hanging;
mod kernel;
pub mod large_library;
mod ledger;
mod machine;
pub mod mounted;
mod own_sim;
mod program;
mod trace;

pub use asked_store::asked_store;
pub use engine::{ENGINE, engine, groups, is_inside, ways};
pub use gpuscope::{Gpuscope, Running};
pub use hanging::Hanging;
pub use kernel::{TIERS, Tier, kernel_objects_of, kernel_version, probes_of, still_there};
pub use ledger::{Counts, Ledger, ledgers_of};
pub use machine::on_machine;
pub use own_sim::OwnSim;
pub use program::{
    Ended, Program, Stepper, changed_beyond, changed_code, changed_places, compile, compile_as, patchable, shell_script,
};
pub use trace::{Trace, number, text, unseen_of};

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Longer than anything takes on a busy machine: a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// `usual`, or as many times that as `GPUSCOPE_PATIENCE` says, of an emulated machine.
pub fn patience(usual: Duration) -> Duration {
    let times = std::env::var("GPUSCOPE_PATIENCE").ok();
    usual * times.map_or(1, |times| times.parse().expect("GPUSCOPE_PATIENCE is a number"))
}

/// The folder of the simulated CUDA, `sim/out`.
pub fn sim_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("sim/out")
}

/// The simulated CUPTI, which programs find where they are told of it.
pub fn sim_cupti() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("sim/out-cupti/libcupti.so.13")
}

/// A file of the simulated CUDA.
pub fn sim(name: &str) -> PathBuf {
    let path = sim_folder().join(name);
    assert!(path.exists(), "{} is missing; sim/build.sh builds it", path.display());
    path
}

/// Copies a file that can be executed at once; shares its blocks where the file system can. What this process had open for writing
/// itself would be open in a child, too, that another test forks just then.
pub fn copy_program(from: &Path, to: &Path) {
    let mut copying = Command::new("cp");
    copying.args(["--reflink=auto", "--preserve=mode"]).args([from, to]);
    assert!(copying.status().expect("cp runs").success(), "{}", to.display());
}

/// `sim` as text, for command lines.
pub fn sim_text(name: &str) -> String {
    sim(name).to_str().expect("a path in UTF-8").to_owned()
}

/// Waits until `holds`; a test whose condition never holds fails with `what`.
pub fn eventually(what: &str, holds: impl FnMut() -> bool) {
    assert!(comes_true(holds), "waited in vain: {what}");
}

/// Waits until `holds`; false: that was too long.
pub fn comes_true(mut holds: impl FnMut() -> bool) -> bool {
    let (start, patience) = (Instant::now(), patience(PATIENCE));
    while start.elapsed() < patience {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Fails with the entries that differ, rather than with both tables.
pub fn assert_same<K: Ord + Debug, V: PartialEq + Debug>(what: &str, expected: &BTreeMap<K, V>, got: &BTreeMap<K, V>) {
    let keys: std::collections::BTreeSet<&K> = expected.keys().chain(got.keys()).collect();
    let differing: Vec<String> = keys
        .into_iter()
        .filter(|key| expected.get(key) != got.get(key))
        .map(|key| format!("  {key:?}: expected {:?}, got {:?}", expected.get(key), got.get(key)))
        .collect();
    assert!(differing.is_empty(), "{what}:\n{}", differing.join("\n"));
}
