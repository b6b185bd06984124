//! Whether what the GPU executes is recorded.

use crate::activity::Wish;
use crate::cli::{Gpu, GpuChoice, Options};
use crate::tracer::{Demand, Tracer};
use anyhow::Result;

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
