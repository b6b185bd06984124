//! The loaded kernel programs and what they are told while they run.
//!
//! Owns the BPF object. How it is loaded, attached and read is the business of [`super::load`], [`super::links`]
//! and [`super::engine`]; which functions are attached that of [`super::attach`].

use super::Tier;
use super::control::{Control, SharedSites, SharedSums};
use super::hold::Holder;
use super::kernel::Ways;
use super::skeleton::CallsSkel;
use super::trampoline::missed_by;
use crate::engine::{Engine, Keep};
use anyhow::{Context, Result};
use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd};

/// The loaded kernel programs.
pub struct Session {
    pub(super) skel: CallsSkel<'static>,
    pub tier: Tier,
    pub(super) rows: usize,
    pub(super) control: Control,
    pub(super) site_counters: SharedSites,
    pub(super) aggregate_counters: SharedSums,
    /// How functions of the kernel are hooked.
    pub(super) ways: Ways,
    /// Why stacks of threads are not sampled, where that was asked for.
    pub(super) unsampled: Option<String>,
    /// Who is held while it is attached to, and by whom. Taken by the gate.
    pub(super) holding: Cell<Option<(Option<Holder>, Keep)>>,
}

impl Session {
    /// Has threads held by `holder` while they are attached to. Without it they only wait in the kernel, which is less sure.
    pub fn hold(&self, holder: Option<Holder>, keep: Keep) {
        self.holding.set(Some((holder, keep)));
    }

    /// How functions of the kernel are hooked.
    pub(super) fn ways(&self) -> &Ways {
        &self.ways
    }

    /// Calls that none of the programs for many functions has seen, and why.
    pub(super) fn missed_in_kernel(&self) -> Vec<String> {
        let programs = &self.skel.progs;
        let probes = [
            &programs.kernel_entered,
            &programs.kernel_returned,
            &programs.kernel_passed,
        ];
        let probes = probes
            .map(|program| missed_by(program.as_fd().as_raw_fd()))
            .iter()
            .sum();
        let missed: [(u64, &str); 2] = [
            (probes, "an interrupt came while another hook ran on that CPU"),
            (
                self.control.read().desks_missed,
                "too many other hooks were within their work on that CPU",
            ),
        ];
        let missed = missed.into_iter().filter(|(missed, _)| *missed > 0);
        missed
            .map(|(missed, why)| format!("{missed} passes of functions or tracepoints of the kernel: {why}"))
            .collect()
    }

    pub(super) fn control(&self) -> Control {
        self.control
    }
}

/// What only programs in the kernel can see is asked of them.
///
/// # Errors
/// `engine` has none.
pub(super) fn in_kernel(engine: &dyn Engine) -> Result<&Session> {
    let session = engine.inner().downcast_ref();
    session.context("only programs in the kernel see that, and this way of tracing has none")
}
