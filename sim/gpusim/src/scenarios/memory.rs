//! What can be done with memory, rightly and wrongly.

use super::argument;
use super::train::Model;
use crate::driver_api::Driver;
use crate::{cuda, pace};

const KEPT: usize = 1 << 20;
const OUT_OF_MEMORY: u32 = 2;

pub fn leak(args: &[u64]) -> Result<String, u32> {
    let model = Model::new()?;
    let wanted = argument(args, 0, 200);
    let (mut steps, mut kept) = (0u64, 0usize);
    for _ in pace::steps(wanted) {
        let activations = cuda::malloc(4 << 20);
        match activations.and_then(|a| cuda::malloc(KEPT).map(|_| a)) {
            Ok(activations) => {
                kept += KEPT;
                model.step()?;
                cuda::free(activations)?;
                steps += 1;
            }
            Err(OUT_OF_MEMORY) if wanted == 0 => break,
            Err(code) => return Err(code),
        }
    }
    model.free()?;
    Ok(format!("{steps} steps; {kept} bytes never freed, {KEPT} per step"))
}

pub fn churn(args: &[u64]) -> Result<String, u32> {
    let mut batches = 0;
    for batch in pace::steps(argument(args, 0, 50)) {
        let scratch = cuda::malloc(1 << 30)?;
        cuda::memset_async(scratch, 1 << 30, 0)?;
        cuda::launch(batch as u32, 256, 256, 0)?;
        cuda::free(scratch)?;
        batches += 1;
    }
    Ok(format!("{batches} batches, each with 1 GiB allocated and freed"))
}

pub fn pool(args: &[u64]) -> Result<String, u32> {
    let stream = cuda::stream()?;
    let mut steps = 0;
    for step in pace::steps(argument(args, 0, 100)) {
        let a = cuda::malloc_async(1 << 20, stream)?;
        let b = cuda::malloc_async(3 << 20, stream)?;
        cuda::launch(step as u32, 64, 256, stream)?;
        cuda::free_async(a, stream)?;
        cuda::free_async(b, stream)?;
        steps += 1;
    }
    cuda::stream_synchronize(stream)?;
    cuda::stream_destroy(stream)?;
    Ok(format!("{steps} steps with 4 MiB each from the pool; everything freed"))
}

pub fn kinds(_args: &[u64]) -> Result<String, u32> {
    let (free_before, total) = cuda::memory_info()?;
    let mut host = vec![7u8; 1 << 16];
    let (a, b) = (cuda::malloc(1 << 16)?, cuda::malloc(1 << 16)?);
    cuda::to_device(a, &host)?;
    cuda::between(b, a, 1 << 16)?;
    cuda::to_host(&mut host, b)?;
    cuda::memset(a, 1 << 16)?;
    let pinned = cuda::malloc_host(1 << 20)?;
    cuda::copy_async(a, pinned, 1 << 16, cuda::HOST_TO_DEVICE, 0)?;
    cuda::synchronize()?;
    cuda::host_register(&host)?;
    cuda::host_unregister(host.as_ptr() as u64)?;
    let managed = cuda::malloc_managed(2 << 20)?;
    cuda::prefetch(managed, 2 << 20, 0)?;
    cuda::memset(managed, 2 << 20)?;
    cuda::pitched(1000, 16)?;
    for address in [a, b, managed] {
        cuda::free(address)?;
    }
    cuda::free_host(pinned)?;
    let (free_after, _) = cuda::memory_info()?;
    Ok(format!(
        "{total} bytes of device memory, {free_before} free before and {free_after} after"
    ))
}

pub fn vmm(args: &[u64]) -> Result<String, u32> {
    const BLOCK: u64 = 2 << 20;
    let blocks = argument(args, 0, 16);
    let driver = Driver::load().ok_or(35u32)?;
    driver.start()?;
    let function = driver.function(c"triton_per_fused_add_0")?;
    let space = driver.reserve(blocks * BLOCK)?;
    let mut physical = Vec::new();
    for i in 0..blocks {
        let handle = driver.create(BLOCK)?;
        driver.map(space + i * BLOCK, BLOCK, handle)?;
        physical.push(handle);
    }
    driver.set_access(space, blocks * BLOCK)?;
    for _ in 0..blocks {
        driver.launch(function)?;
    }
    driver.synchronize()?;
    driver.unmap(space, blocks * BLOCK)?;
    for handle in physical {
        driver.release(handle)?;
    }
    driver.free_addresses(space, blocks * BLOCK)?;
    Ok(format!(
        "{blocks} blocks of 2 MiB created, mapped, unmapped and released"
    ))
}
