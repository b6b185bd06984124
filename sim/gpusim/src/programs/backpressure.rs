//! More launches than a stream has room for: those beyond have to wait.

use std::time::{Duration, Instant};

use super::{Account, Options, tally};
use crate::driver_api::Driver;
use crate::{cuda, pace};

pub fn backpressure(options: &Options, _: &mut Account) -> Result<String, u32> {
    let driver = Driver::load().ok_or(35u32)?;
    let stream = cuda::stream()?;
    driver.kernel_ns(options.number("kernel-ns", 50_000));
    let (mut launches, mut longest, start) = (0, Duration::ZERO, Instant::now());
    for _ in pace::steps(options.number("launches", 3000)) {
        let before = Instant::now();
        cuda::launch(0, 1, 32, stream)?;
        longest = longest.max(before.elapsed());
        tally::add_kernel(0);
        launches += 1;
    }
    let submitted = start.elapsed();
    cuda::stream_synchronize(stream)?;
    cuda::stream_destroy(stream)?;
    Ok(format!(
        "{launches} launches submitted in {:.1} ms and done after {:.1} ms; the longest took {:.3} ms",
        submitted.as_secs_f64() * 1e3,
        start.elapsed().as_secs_f64() * 1e3,
        longest.as_secs_f64() * 1e3
    ))
}
