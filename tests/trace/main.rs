//! Programs under `gpuscope run`, `trace` and `leaks`, from end to end: what is told of them, what is not and why, and that
//! they never notice.
//!
//! Not in here: what programs do at their worst (`torture`), and `serve`.
//!
//! `scripts/test.sh` runs two at a time, which may trace the same library: what a test says of probes, of changed code or of
//! counters in a library must be about a file of its own. What traces the whole machine, fills it or judges time stands in
//! that script's list and runs alone.

#![allow(clippy::expect_used, reason = "whatever fails here fails the test")]

mod bad_input;
mod call_paths;
mod call_sites;
mod containers;
mod cost;
mod engines;
mod escapes;
mod exactness;
mod filters;
mod findings;
mod foreign;
mod gpu;
mod gpu_calls;
mod gpu_devices;
mod gpu_graphs;
mod gpu_profiled;
mod gpu_unharmed;
mod gpu_windows;
mod hanging;
mod held;
mod hook_sums;
mod hooks;
mod hooks_example;
mod idle;
mod inside;
mod inside_confined;
mod inside_programs;
mod inside_ranges;
mod inside_sites;
mod kernels;
mod late_gpu;
mod leaks;
mod lifecycle;
mod meaning;
mod memory_truth;
mod one_count;
mod overrun;
mod privileges;
mod processes;
mod sizes;
mod standby;
mod static_probes;
mod steps;
#[path = "../support/mod.rs"]
mod support;
mod surroundings;
mod untouched_pages;
mod work_truth;
mod xids;
