//! Training loops that are as they should be.

use super::argument;
use crate::{cuda, pace};

const BATCH: usize = 1 << 20;
const LAYERS: u32 = 20;
const QUESTIONS: u32 = 50;

/// What a step works on.
pub struct Model {
    stream: u64,
    event: u64,
    weights: u64,
    gradients: u64,
    batch: u64,
    loss: u64,
    host_batch: u64,
    host_loss: u64,
}

impl Model {
    pub fn new() -> Result<Self, u32> {
        Ok(Model {
            stream: cuda::stream()?,
            event: cuda::event()?,
            weights: cuda::malloc(64 << 20)?,
            gradients: cuda::malloc(64 << 20)?,
            batch: cuda::malloc(BATCH)?,
            loss: cuda::malloc(4)?,
            host_batch: cuda::malloc_host(BATCH)?,
            host_loss: cuda::malloc_host(4096)?,
        })
    }

    pub fn step(&self) -> Result<(), u32> {
        cuda::memset_async(self.gradients, 64 << 20, self.stream)?;
        cuda::copy_async(self.batch, self.host_batch, BATCH, cuda::HOST_TO_DEVICE, self.stream)?;
        for layer in 0..LAYERS {
            cuda::launch(layer, 128 + layer, 256, self.stream)?;
        }
        for _ in 0..QUESTIONS {
            cuda::get_device()?;
        }
        cuda::event_record(self.event, self.stream)?;
        cuda::copy_async(self.host_loss, self.loss, 4, cuda::DEVICE_TO_HOST, self.stream)?;
        cuda::stream_synchronize(self.stream)
    }

    pub fn free(self) -> Result<(), u32> {
        for address in [self.weights, self.gradients, self.batch, self.loss] {
            cuda::free(address)?;
        }
        cuda::free_host(self.host_batch)?;
        cuda::free_host(self.host_loss)?;
        cuda::event_destroy(self.event)?;
        cuda::stream_destroy(self.stream)
    }
}

pub fn train(args: &[u64]) -> Result<String, u32> {
    let model = Model::new()?;
    let mut steps = 0;
    for _ in pace::steps(argument(args, 0, 100)) {
        model.step()?;
        steps += 1;
    }
    model.free()?;
    Ok(format!("{steps} steps of {LAYERS} kernels; everything freed"))
}

pub fn graph(args: &[u64]) -> Result<String, u32> {
    let stream = cuda::stream()?;
    let (start, end) = (cuda::event()?, cuda::event()?);
    cuda::begin_capture(stream)?;
    for layer in 0..LAYERS {
        cuda::launch_as(layer, 64, 128, stream, true)?;
    }
    let graph = cuda::end_capture(stream)?;
    let runnable = cuda::graph_instantiate(graph)?;
    let mut launches = 0;
    cuda::event_record(start, stream)?;
    for _ in pace::steps(argument(args, 0, 100)) {
        cuda::graph_launch(runnable, stream, u64::from(LAYERS))?;
        launches += 1;
    }
    cuda::event_record(end, stream)?;
    cuda::event_synchronize(end)?;
    let ms = cuda::elapsed_ms(start, end)?;
    cuda::graph_exec_destroy(runnable)?;
    cuda::graph_destroy(graph)?;
    Ok(format!(
        "{launches} launches of a graph of {LAYERS} kernels in {ms:.1} ms of device time"
    ))
}
