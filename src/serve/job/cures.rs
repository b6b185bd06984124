//! What to do about a job's idle time, and what comes of it.

use super::figures::Figures;
use crate::model::work::{Gain, Reason};

/// Of a job's idle time: less of it for one reason is not worth a word.
const WORTH_A_WORD: f64 = 0.01;

/// A reason that a version of gpuscope knows, and what it cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cure {
    pub reason: Reason,
    /// Of GPUs, at least.
    pub seconds: f64,
    /// How much of the time in use is gone when all of that is; `None`: the job uses its GPUs no less for it.
    pub share_of_use: Option<f64>,
}

/// What took most comes first.
pub(super) fn cures(figures: &Figures) -> Vec<Cure> {
    let worth = WORTH_A_WORD * figures.wasted_seconds();
    let known = figures.waste.iter().filter_map(|(name, seconds)| {
        let reason = Reason::from_name(name)?;
        let share_of_use = match reason.gain() {
            Gain::Sooner => figures.share_of_use(*seconds),
            Gain::Freed | Gain::Known => None,
        };
        Some(Cure {
            reason,
            seconds: *seconds,
            share_of_use,
        })
    });
    let mut cures: Vec<Cure> = known
        .filter(|cure| cure.seconds > 0.0 && cure.seconds >= worth)
        .collect();
    cures.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    cures
}
