//! Launches, by every function that launches one kernel.

use super::bench::Bench;
use super::tally;
use crate::cuda;

const KERNEL: &str = "kernel triton_per_fused_add_0";

pub fn by_runtime(bench: &mut Bench) -> Result<(), u32> {
    let (kernel, stream) = (bench.random.next() as u32, bench.stream());
    cuda::launch(kernel, 4, 64, stream)?;
    tally::add_kernel(kernel);
    if bench.random.one_in(4) {
        cuda::stream_synchronize(stream)?;
    }
    Ok(())
}

pub fn by_driver(bench: &mut Bench) -> Result<(), u32> {
    let (function, stream, own) = (bench.function, bench.stream(), bench.own_stream());
    // Grid and block, no shared memory, the stream, no parameters.
    let args = [function, 4, 1, 1, 64, 1, 1, 0, stream, 0, 0];
    // CUDA_LAUNCH_PARAMS and CUlaunchConfig, where two numbers share a word.
    let pair = |low: u64, high: u64| low | high << 32;
    let params = [function, pair(4, 1), pair(1, 64), pair(1, 1), 0, own, 0];
    let config = [pair(4, 1), pair(1, 64), pair(1, 1), 0, stream, 0, 0];
    let (params, config) = (params.as_ptr() as u64, config.as_ptr() as u64);
    let plain = ["cuLaunchKernel", "cuLaunchKernel_ptsz"][usize::from(bench.coin())];
    match bench.random.below(8) {
        0 | 1 => bench.driver.call(plain, &args)?,
        2 => bench.driver.call("cuLaunchKernelEx", &[config, function, 0, 0])?,
        3 => bench.driver.call("cuLaunchCooperativeKernel", &args[..10])?,
        4 => bench
            .driver
            .call("cuLaunchCooperativeKernelMultiDevice", &[params, 1, 0])?,
        5 => bench.driver.call("cuLaunch", &[function])?,
        6 => bench.driver.call("cuLaunchGrid", &[function, 2, 2])?,
        _ => bench.driver.call("cuLaunchGridAsync", &[function, 2, 2, stream])?,
    }
    tally::add(KERNEL, 0);
    crate::counts::add_launches(1);
    Ok(())
}
