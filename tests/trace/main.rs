//! Programs under `gpuscope run`, `trace` and `leaks`, from end to end: what is told of them, what is not and why, and that
//! they never notice.
//!
//! Not in here: what programs do at their worst (`torture`), and `serve`.

#![allow(clippy::expect_used, reason = "whatever fails here fails the test")]

mod bad_input;
mod call_sites;
mod cost;
mod escapes;
mod exactness;
mod filters;
mod findings;
mod foreign;
mod hanging;
mod held;
mod hook_sums;
mod hooks;
mod hooks_example;
mod kernels;
mod leaks;
mod lifecycle;
mod meaning;
mod memory_truth;
mod one_count;
mod overrun;
mod privileges;
mod processes;
mod sizes;
mod static_probes;
#[path = "../support/mod.rs"]
mod support;
mod surroundings;
mod untouched_pages;
mod work_truth;
mod xids;
