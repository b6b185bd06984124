//! What is known before probes are attached: that takes seconds, and nobody is to look at an empty screen meanwhile.
//!
//! Owns a thread, as NVML and `/proc` may keep who asks them waiting.

use super::handover::Early;
use super::live::{Asked, Live};
use crate::cli::TopArgs;
use crate::refusal::NO_THREAD;
use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// NVML that takes longer to answer is not waited for.
const PATIENCE: Duration = Duration::from_millis(200);
/// Between two looks whether it has answered.
const PAUSE: Duration = Duration::from_millis(20);

/// Ends when dropped.
pub(super) struct Preview {
    over: Arc<AtomicBool>,
}

impl Preview {
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn begin(args: &TopArgs, sampler: &Asked, early: Early) -> Result<Preview> {
        let over = Arc::new(AtomicBool::new(false));
        let (args, sampler, is_over) = (args.clone(), sampler.clone(), Arc::clone(&over));
        // who cannot look now says why once everything is attached
        let show = move || drop(show(&args, &sampler, &early, &is_over));
        let thread = std::thread::Builder::new().name("preview".to_owned());
        thread.spawn(show).context(NO_THREAD)?;
        Ok(Preview { over })
    }
}

impl Drop for Preview {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
    }
}

/// A frame for each answer of NVML; one without, where there is none in time.
fn show(args: &TopArgs, sampler: &Asked, early: &Early, over: &AtomicBool) -> Result<()> {
    let begun = Instant::now();
    let mut live = Live::unattached(args, sampler)?;
    let mut shown = None;
    while !over.load(Ordering::Acquire) && !early.ends() {
        let answers = sampler.as_ref().and_then(|sampler| sampler.latest());
        let answered = Some(answers.map(|answers| answers.at));
        let is_due = answered != Some(None) || begun.elapsed() >= PATIENCE;
        if is_due && answered != shown {
            shown = answered;
            early.give(live.look(None));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
