//! One rule per file: its thresholds, what it counts, what it concludes.

mod alloc_churn;
mod alloc_retry;
mod chatty_getters;
mod fragmentation;
mod hidden_sync;
mod host_contention;
mod idle_gaps;
mod late_jit;
mod launch_bound;
mod launch_storm;
mod leak_growth;
mod no_overlap;
mod pageable_copy;
mod sticky_error;
mod sync_copy;
mod sync_stall;
mod unchecked_errors;

use super::Rule;

macro_rules! rules {
    ($($name:literal $module:ident :: $rule:ident),+ $(,)?) => {
        /// The words of all rules.
        pub const NAMES: &[&str] = &[$($name),+];

        /// All, in the order of [`NAMES`].
        pub fn all() -> Vec<Box<dyn Rule>> {
            vec![$(Box::<$module::$rule>::default()),+]
        }
    };
}

rules! {
    "alloc-churn" alloc_churn::AllocChurn,
    "alloc-retry" alloc_retry::AllocRetry,
    "chatty-getters" chatty_getters::ChattyGetters,
    "fragmentation" fragmentation::Fragmentation,
    "hidden-sync" hidden_sync::HiddenSync,
    "host-contention" host_contention::HostContention,
    "idle-gaps" idle_gaps::IdleGaps,
    "late-jit" late_jit::LateJit,
    "launch-bound" launch_bound::LaunchBound,
    "launch-storm" launch_storm::LaunchStorm,
    "leak-growth" leak_growth::LeakGrowth,
    "no-overlap" no_overlap::NoOverlap,
    "pageable-copy" pageable_copy::PageableCopy,
    "sticky-error" sticky_error::StickyError,
    "sync-copy" sync_copy::SyncCopy,
    "sync-stall" sync_stall::SyncStall,
    "unchecked-errors" unchecked_errors::UncheckedErrors,
}
