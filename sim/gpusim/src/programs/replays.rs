//! Graphs and their replays: captured, made by hand, nested, cloned and updated.

use super::random::Random;
use super::{Account, Options, tally};
use crate::driver_api::Driver;
use crate::{cuda, cuda_memory, cuda_work};

const BYTES: usize = 4096;

struct Replays {
    driver: Driver,
    random: Random,
    streams: [u64; 2],
    events: [u64; 2],
    device: [u64; 2],
    pinned: u64,
    replays: u64,
}

pub fn graphs(options: &Options, _: &mut Account) -> Result<String, u32> {
    let driver = Driver::load().ok_or(35u32)?;
    driver.kernel_ns(options.number("kernel-ns", 20_000));
    let mut all = Replays {
        driver,
        random: Random(options.number("seed", 1)),
        streams: [cuda::stream()?, cuda::stream()?],
        events: [cuda::event()?, cuda::event()?],
        device: [cuda::malloc(BYTES)?, cuda::malloc(BYTES)?],
        pinned: cuda::malloc_host(BYTES)?,
        replays: options.number("replays", 10),
    };
    let captured = all.captured()?;
    all.by_hand(captured)?;
    all.updated()?;
    cuda::graph_destroy(captured)?;
    cuda::synchronize()?;
    tally::plant("graph_launches", 4 * all.replays);
    Ok(format!("4 runnable graphs, launched {} times each", all.replays))
}

/// What a graph of [`Replays::captured`] does at each launch.
fn count_captured(kernels: [u32; 3]) {
    kernels.into_iter().for_each(tally::add_kernel);
    tally::add("copy HtoD pinned", BYTES as u64);
    tally::add("memset", BYTES as u64);
}

const CAPTURED: [u32; 3] = [0, 3, 5];

impl Replays {
    fn run(&mut self, graph: u64, kernels: u64, count: impl Fn()) -> Result<(), u32> {
        let runnable = cuda::graph_instantiate(graph)?;
        self.replay(runnable, kernels, count)?;
        cuda::graph_exec_destroy(runnable)
    }

    fn replay(&mut self, runnable: u64, kernels: u64, count: impl Fn()) -> Result<(), u32> {
        for _ in 0..self.replays {
            let stream = self.streams[self.random.below(2) as usize];
            cuda::graph_launch(runnable, stream, kernels)?;
            count();
            if self.random.one_in(3) {
                cuda::stream_synchronize(stream)?;
            }
        }
        Ok(())
    }

    /// Work of two streams, the second of which joins by an event and is joined by one.
    fn captured(&mut self) -> Result<u64, u32> {
        let ([first, second], [fork, join]) = (self.streams, self.events);
        cuda::begin_capture(first)?;
        cuda::launch_as(CAPTURED[0], 8, 64, first, true)?;
        cuda::event_record(fork, first)?;
        cuda::stream_wait(second, fork)?;
        cuda::copy_async(self.device[0], self.pinned, BYTES, cuda::HOST_TO_DEVICE, second)?;
        cuda::launch_as(CAPTURED[1], 8, 64, second, true)?;
        cuda::memset_async(self.device[1], BYTES, first)?;
        cuda::event_record(join, second)?;
        cuda::stream_wait(first, join)?;
        cuda::launch_as(CAPTURED[2], 8, 64, first, true)?;
        let graph = cuda::end_capture(first)?;
        self.run(graph, 3, || count_captured(CAPTURED))?;
        Ok(graph)
    }

    /// Nodes of each kind, the captured graph as a child among them; then a clone of it all.
    fn by_hand(&mut self, child: u64) -> Result<(), u32> {
        let graph = cuda_memory::graph()?;
        let first = cuda_work::graph_kernel(graph, &[], 1)?;
        let copy = cuda_work::graph_copy(
            graph,
            &[first],
            self.pinned,
            self.device[1],
            BYTES,
            cuda::DEVICE_TO_HOST,
        )?;
        let fill = cuda_work::graph_fill(graph, &[first], self.device[0], BYTES / 4)?;
        cuda_work::graph_child(graph, &[copy, fill], child)?;
        // CUgraphNodeParams: an empty node.
        let (mut node, params) = (0u64, [5u64; 32]);
        let args = [&raw mut node as u64, graph, 0, 0, params.as_ptr() as u64];
        self.driver.call("cuGraphAddNode", &args)?;
        let count = || {
            tally::add_kernel(1);
            tally::add("copy DtoH pinned", BYTES as u64);
            tally::add("memset", BYTES as u64);
            count_captured(CAPTURED);
        };
        self.run(graph, 4, count)?;
        let clone = cuda_work::graph_clone(graph)?;
        cuda::graph_destroy(graph)?;
        self.run(clone, 4, count)?;
        cuda::graph_destroy(clone)
    }

    /// Launched as it was made, then with another kernel, then as another graph.
    fn updated(&mut self) -> Result<(), u32> {
        let (graph, other) = (cuda_memory::graph()?, cuda_memory::graph()?);
        let node = cuda_work::graph_kernel(graph, &[], 2)?;
        cuda_work::graph_kernel(other, &[], 6)?;
        let runnable = cuda::graph_instantiate(graph)?;
        let replays = self.replays;
        let parts = [replays / 3, replays / 3, replays - 2 * (replays / 3)];
        for (part, kernel) in [2, 4, 6].into_iter().enumerate() {
            match kernel {
                4 => cuda_work::graph_set_kernel(runnable, node, kernel)?,
                6 => cuda_work::graph_update(runnable, other)?,
                _ => {}
            }
            self.replays = parts[part];
            self.replay(runnable, 1, || tally::add_kernel(kernel))?;
        }
        self.replays = replays;
        cuda::graph_exec_destroy(runnable)?;
        cuda::graph_destroy(graph)?;
        cuda::graph_destroy(other)
    }
}
