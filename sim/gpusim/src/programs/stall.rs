//! The device waits for the host, because the host waits for the device.

use std::time::{Duration, Instant};

use super::{Account, Options, tally};
use crate::driver_api::Driver;
use crate::{cuda, pace};

pub fn stall(options: &Options, _: &mut Account) -> Result<String, u32> {
    let driver = Driver::load().ok_or(35u32)?;
    let host = Duration::from_nanos(options.number("host-ns", 1_000_000));
    let kernels = options.number("kernels", 1) as u32;
    let how = options.text("sync", "device");
    let (stream, event) = (cuda::stream()?, cuda::event()?);
    driver.kernel_ns(options.number("kernel-ns", 2_000_000));
    let (start, mut worked, mut steps) = (Instant::now(), Duration::ZERO, 0);
    for _ in pace::steps(options.number("steps", 50)) {
        for kernel in 0..kernels {
            cuda::launch(kernel, 128, 256, stream)?;
            tally::add_kernel(kernel);
        }
        match how.as_str() {
            "event" => cuda::event_record(event, stream).and_then(|()| cuda::event_synchronize(event))?,
            "stream" => cuda::stream_synchronize(stream)?,
            _ => cuda::synchronize()?,
        }
        let before = Instant::now();
        std::thread::sleep(host);
        worked += before.elapsed();
        steps += 1;
    }
    let share = worked.as_secs_f64() / start.elapsed().as_secs_f64() * 100.0;
    cuda::event_destroy(event)?;
    cuda::stream_destroy(stream)?;
    Ok(format!(
        "{steps} steps; the device had nothing to do for {share:.0}% of the time"
    ))
}
