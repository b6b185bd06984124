//! Whether what the GPU executes is recorded.

use crate::activity::{self, Wish};
use crate::cli::{Gpu, GpuChoice, Options};
use crate::inside::standby::{self, Standby};
use crate::refusal::Usage;
use crate::tracer::{Demand, Tracer};
use anyhow::{Result, bail};

/// Has the command that is about to be started load what asks CUPTI, where that was not forbidden. Where only some calls are shown,
/// activities become lines if they were asked for.
///
/// # Errors
/// They were asked for, and it cannot be loaded.
pub(crate) fn watch_gpu(tracer: &mut Tracer, gpu: Gpu, options: &Options) -> Result<()> {
    let shows_some = options.which.shows_some();
    match gpu.gpu {
        GpuChoice::Off => Ok(()),
        GpuChoice::Auto => tracer.watch_gpu(Demand {
            wish: Wish::default(),
            must: false,
            lines: !shows_some,
        }),
        GpuChoice::On(wish) => tracer.watch_gpu(Demand {
            wish,
            must: true,
            lines: true,
        }),
    }
}

/// The same of processes that run already, as far as they wait to be asked, or will (`gpuscope preload`).
///
/// # Errors
/// It was asked for, and none of them does, or one does not answer.
pub(crate) fn watch_gpu_of(tracer: &mut Tracer, gpu: Gpu, options: &Options) -> Result<()> {
    let waits = tracer.family().any(activity::is_waiting);
    // it waits from when it has initialised CUDA on; and of those that are traced from inside more may come
    let may_wait = || tracer.traces_alone() || tracer.family().any(|pid| standby::of(pid) != Standby::Absent);
    match gpu.gpu {
        GpuChoice::On(_) if !waits => bail!(Usage(NONE_WAITS.to_owned())),
        _ if !waits && !may_wait() => Ok(()),
        _ => {
            watch_gpu(tracer, gpu, options)?;
            tracer.visit_family()
        }
    }
}

const NONE_WAITS: &str = "--gpu: what runs already has not loaded what asks CUPTI, or has not called CUDA yet\n\
                          hint: gpuscope preload -- CMD starts it so that it can be asked later; run or record -- CMD from its start";
