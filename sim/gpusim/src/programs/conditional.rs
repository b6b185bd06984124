//! A program whose graph has a conditional node, as loops of JAX have.

use super::profiled::work;
use super::{Account, Options, tally};
use crate::cuda;
use crate::driver_api::Driver;

const KERNEL: u32 = 1;

pub fn conditional(options: &Options, _: &mut Account) -> Result<String, u32> {
    let driver = Driver::load().ok_or(35u32)?;
    driver.kernel_ns(options.number("kernel-ns", 500_000));
    work(options.number("steps", 20), options.number("kernels", 4))?;
    let (stream, replays) = (cuda::stream()?, options.number("replays", 10));
    cuda::begin_capture(stream)?;
    cuda::launch_as(KERNEL, 8, 64, stream, true)?;
    let graph = cuda::end_capture(stream)?;
    driver.conditional_handle(graph)?;
    let runnable = cuda::graph_instantiate(graph)?;
    for _ in 0..replays {
        cuda::graph_launch(runnable, stream, 1)?;
        tally::add_kernel(KERNEL);
    }
    cuda::synchronize()?;
    Ok(format!("{replays} launches of a graph with a conditional node"))
}
