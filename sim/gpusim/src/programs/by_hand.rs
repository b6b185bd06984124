//! A program whose graph gets a copy by hand, as XLA does it for JAX, or by capturing a stream.

use super::profiled::work;
use super::{Account, Options, tally};
use crate::driver_api::Driver;
use crate::{cuda, cuda_work};

const KERNEL: u32 = 1;
const BYTES: usize = 4096;
/// Copies before there is a graph.
const EARLIER: u64 = 20;
/// Of `--way`.
const CAPTURED: u64 = 3;

pub fn by_hand(options: &Options, _: &mut Account) -> Result<String, u32> {
    let driver = Driver::load().ok_or(35u32)?;
    driver.kernel_ns(options.number("kernel-ns", 500_000));
    work(options.number("steps", 150), options.number("kernels", 4))?;
    let (stream, replays) = (cuda::stream()?, options.number("replays", 10));
    let (from, to) = (cuda::malloc(BYTES)?, cuda::malloc_host(BYTES)?);
    let copy = || cuda::copy_async(to, from, BYTES, cuda::DEVICE_TO_HOST, stream);
    for _ in 0..EARLIER {
        copy()?;
        tally::add("copy DtoH pinned", BYTES as u64);
    }
    cuda::synchronize()?;
    let way = options.number("way", 0);
    cuda::begin_capture(stream)?;
    cuda::launch_as(KERNEL, 8, 64, stream, true)?;
    if way == CAPTURED {
        copy()?;
    }
    let graph = cuda::end_capture(stream)?;
    match way {
        0 => drop(cuda_work::graph_copy(
            graph,
            &[],
            to,
            from,
            BYTES,
            cuda::DEVICE_TO_HOST,
        )?),
        1 | 2 => any_copy(&driver, way, graph, to, from)?,
        _ => {}
    }
    let runnable = cuda::graph_instantiate(graph)?;
    for _ in 0..replays {
        cuda::graph_launch(runnable, stream, 1)?;
        tally::add_kernel(KERNEL);
        tally::add("copy DtoH pinned", BYTES as u64);
    }
    cuda::synchronize()?;
    Ok(format!("{replays} launches of a graph with a copy"))
}

/// By the functions that put nodes of any kind.
fn any_copy(driver: &Driver, way: u64, graph: u64, to: u64, from: u64) -> Result<(), u32> {
    const HOST: u64 = 1;
    const DEVICE: u64 = 2;
    let mut node = 0u64;
    // CUgraphNodeParams, which says that it is a copy; the CUDA_MEMCPY3D is at its fifth word
    let mut params = [0u64; 32];
    params[0] = 1;
    let plan = &mut params[4..];
    (plan[4], plan[6]) = (DEVICE, from);
    (plan[15], plan[16]) = (HOST, to);
    (plan[22], plan[23], plan[24]) = (BYTES as u64, 1, 1);
    let (node, params) = (&raw mut node as u64, params.as_ptr() as u64);
    match way {
        1 => driver.call("cuGraphAddNode", &[node, graph, 0, 0, params]),
        _ => driver.call("cuGraphAddNode_v2", &[node, graph, 0, 0, 0, params]),
    }
    .map(drop)
}
