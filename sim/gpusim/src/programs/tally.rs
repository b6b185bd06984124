//! What a program knows that it gave the device to do, and what it planted for others to find.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::counts;
use crate::cuda::KERNELS;

/// The kernels by number.
const NAMES: [&str; KERNELS as usize] = [
    "_Z6vecAddPKfS0_Pfi",
    "_Z5sgemmPKfS0_Pfiii",
    "_Z9layernormPKfPfif",
    "_Z7softmaxPKfPfi",
    "_Z8reluGradPfPKfi",
    "_Z9adam_stepPfPKfS_S_fi",
    "_ZN5flash9fwd_innerEPKfS1_Pfi",
    "_Z9reduceSumILi256EEvPKfPfi",
];

#[derive(Default)]
struct Tally {
    /// How often, and how many bytes in all, by what the log of work says.
    work: BTreeMap<String, (u64, u64)>,
    planted: BTreeMap<&'static str, u64>,
}

fn tally() -> MutexGuard<'static, Tally> {
    static TALLY: Mutex<Tally> = Mutex::new(Tally {
        work: BTreeMap::new(),
        planted: BTreeMap::new(),
    });
    TALLY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts something done, as in `copy HtoD pinned`, `memset` or `prefetch DtoH`.
pub fn add(what: &str, bytes: u64) {
    let mut tally = tally();
    let row = tally.work.entry(what.to_owned()).or_default();
    row.0 += 1;
    row.1 += bytes;
}

/// Counts a launch.
pub fn add_kernel(kernel: u32) {
    add(&format!("kernel {}", NAMES[(kernel % KERNELS) as usize]), 0);
}

/// Says what there is to find.
pub fn plant(what: &'static str, count: u64) {
    tally().planted.insert(what, count);
}

/// Prints it as one line for machines; whether there was anything to say.
pub fn print() -> bool {
    let tally = tally();
    if tally.work.is_empty() {
        return false;
    }
    let work = tally
        .work
        .iter()
        .map(|(what, row)| format!(r#""{what}":[{},{}]"#, row.0, row.1));
    let planted = tally.planted.iter().map(|(what, count)| format!(r#""{what}":{count}"#));
    counts::print_line(format!(
        r#"GPUSIM-WORK {{"pid":{},"work":{{{}}},"planted":{{{}}}}}"#,
        std::process::id(),
        work.collect::<Vec<_>>().join(","),
        planted.collect::<Vec<_>>().join(","),
    ));
    true
}
