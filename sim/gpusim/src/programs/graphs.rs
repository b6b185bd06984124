//! Memory nodes of graphs: made by hand and by capture, freed inside, outside and not at all.

use super::{Account, Options};
use crate::{cuda, cuda_memory, pace};

const DEVICE: i32 = 0;
const BYTES: u64 = 1 << 20;

pub fn graphmem(options: &Options, account: &mut Account) -> Result<String, u32> {
    let stream = cuda::stream()?;
    let mut steps = 0;
    for step in pace::steps(options.number("steps", 20)) {
        freed_inside(stream, account)?;
        freed_outside(stream, account)?;
        captured(stream, account)?;
        if step % 4 == 0 {
            outliving(stream, account)?;
        }
        steps += 1;
    }
    cuda::stream_synchronize(stream)?;
    let (count, bytes) = account.outstanding();
    Ok(format!(
        "{steps} steps; {count} things of {bytes} bytes in all are left"
    ))
}

fn add_node(graph: u64, account: &mut Account) -> Result<u64, u32> {
    let address = cuda_memory::graph_alloc(graph, DEVICE, BYTES)?;
    account.add("graph-node", DEVICE, BYTES);
    Ok(address)
}

fn destroy(runnable: u64, graph: u64, nodes: u64, account: &mut Account) -> Result<(), u32> {
    cuda::graph_exec_destroy(runnable)?;
    cuda::graph_destroy(graph)?;
    (0..nodes).for_each(|_| account.end("graph-node", DEVICE, BYTES));
    Ok(())
}

/// Allocated and freed by each of three launches.
fn freed_inside(stream: u64, account: &mut Account) -> Result<(), u32> {
    let graph = cuda_memory::graph()?;
    let address = add_node(graph, account)?;
    cuda_memory::graph_free(graph, address)?;
    let runnable = cuda::graph_instantiate(graph)?;
    for _ in 0..3 {
        cuda::graph_launch(runnable, stream, 0)?;
        account.add("graph", DEVICE, BYTES);
        account.end("graph", DEVICE, BYTES);
    }
    destroy(runnable, graph, 1, account)
}

/// Freed by a call between launches; a launch without it fails.
fn freed_outside(stream: u64, account: &mut Account) -> Result<(), u32> {
    let graph = cuda_memory::graph()?;
    let address = add_node(graph, account)?;
    let runnable = cuda::graph_instantiate(graph)?;
    for free in [cuda::free, |address| cuda::free_async(address, 0)] {
        cuda::graph_launch(runnable, stream, 0)?;
        account.add("graph", DEVICE, BYTES);
        if cuda::graph_launch(runnable, stream, 0).is_ok() {
            return Err(999);
        }
        account.freed("graph", DEVICE, BYTES, free(address));
    }
    destroy(runnable, graph, 1, account)
}

/// Captured from a stream: one freed inside, one freed after the launch.
fn captured(stream: u64, account: &mut Account) -> Result<(), u32> {
    cuda::begin_capture(stream)?;
    let inside = cuda::malloc_async(BYTES as usize, stream)?;
    let after = cuda::malloc_async(BYTES as usize, stream)?;
    (0..2).for_each(|_| account.add("graph-node", DEVICE, BYTES));
    cuda::launch_as(0, 64, 128, stream, true)?;
    cuda::free_async(inside, stream)?;
    let graph = cuda::end_capture(stream)?;
    let runnable = cuda::graph_instantiate(graph)?;
    cuda::graph_launch(runnable, stream, 1)?;
    (0..2).for_each(|_| account.add("graph", DEVICE, BYTES));
    account.end("graph", DEVICE, BYTES);
    account.freed("graph", DEVICE, BYTES, cuda::free_async(after, stream));
    destroy(runnable, graph, 2, account)
}

/// Memory that outlives its graph, and is lost.
fn outliving(stream: u64, account: &mut Account) -> Result<(), u32> {
    let graph = cuda_memory::graph()?;
    add_node(graph, account)?;
    let runnable = cuda::graph_instantiate(graph)?;
    cuda::graph_launch(runnable, stream, 0)?;
    account.add("graph", DEVICE, BYTES);
    destroy(runnable, graph, 1, account)
}
