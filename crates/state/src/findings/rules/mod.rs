//! One rule per file: its thresholds, what it counts, what it concludes.

mod alloc_churn;
mod alloc_retry;
mod chatty_getters;
mod forked_cuda;
mod fragmentation;
mod hidden_sync;
mod host_bound;
mod host_contention;
mod idle_gaps;
mod killed;
mod late_jit;
mod launch_bound;
mod launch_storm;
mod leak_growth;
mod no_overlap;
mod out_of_memory;
mod pageable_copy;
mod small_grids;
mod sticky_error;
mod sync_copy;
mod sync_stall;
mod unchecked_errors;

pub use sticky_error::is_sticky;

use super::Rule;

macro_rules! rules {
    ($($name:literal $module:ident :: $rule:ident),+ $(,)?) => {
        /// The words of all rules.
        pub(crate) const NAMES: &[&str] = &[$($name),+];

        /// All, in the order of [`NAMES`].
        pub(crate) fn all() -> Vec<Box<dyn Rule>> {
            vec![$(Box::<$module::$rule>::default()),+]
        }
    };
}

rules! {
    "alloc-churn" alloc_churn::AllocChurn,
    "alloc-retry" alloc_retry::AllocRetry,
    "chatty-getters" chatty_getters::ChattyGetters,
    "forked-cuda" forked_cuda::ForkedCuda,
    "fragmentation" fragmentation::Fragmentation,
    "hidden-sync" hidden_sync::HiddenSync,
    "host-bound" host_bound::HostBound,
    "host-contention" host_contention::HostContention,
    "idle-gaps" idle_gaps::IdleGaps,
    "killed" killed::Killed,
    "late-jit" late_jit::LateJit,
    "launch-bound" launch_bound::LaunchBound,
    "launch-storm" launch_storm::LaunchStorm,
    "leak-growth" leak_growth::LeakGrowth,
    "no-overlap" no_overlap::NoOverlap,
    "out-of-memory" out_of_memory::OutOfMemory,
    "pageable-copy" pageable_copy::PageableCopy,
    "small-grids" small_grids::SmallGrids,
    "sticky-error" sticky_error::StickyError,
    "sync-copy" sync_copy::SyncCopy,
    "sync-stall" sync_stall::SyncStall,
    "unchecked-errors" unchecked_errors::UncheckedErrors,
}
