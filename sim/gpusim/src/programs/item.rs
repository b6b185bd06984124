//! A value fetched from the device at each step, as `tensor.item()` does.

use super::{Account, Options, tally};
use crate::driver_api::Driver;
use crate::{cuda, pace};

const BYTES: usize = 4;

pub fn item(options: &Options, _: &mut Account) -> Result<String, u32> {
    let driver = Driver::load().ok_or(35u32)?;
    let (stream, value) = (cuda::stream()?, cuda::malloc(512)?);
    let is_pinned = options.text("host", "pageable") == "pinned";
    let own = [0u8; BYTES];
    let pinned = cuda::malloc_host(512)?;
    let host = if is_pinned { pinned } else { own.as_ptr() as u64 };
    driver.kernel_ns(options.number("kernel-ns", 200_000));
    let mut steps = 0;
    for step in pace::steps(options.number("steps", 100)) {
        cuda::launch(step as u32, 32, 128, stream)?;
        tally::add_kernel(step as u32);
        cuda::copy_async(host, value, BYTES, cuda::DEVICE_TO_HOST, stream)?;
        let what = if is_pinned {
            "copy DtoH pinned"
        } else {
            "copy DtoH pageable"
        };
        tally::add(what, BYTES as u64);
        cuda::stream_synchronize(stream)?;
        steps += 1;
    }
    std::hint::black_box(&own);
    cuda::free(value)?;
    cuda::free_host(pinned)?;
    cuda::stream_destroy(stream)?;
    tally::plant("items", steps);
    Ok(format!("{steps} values fetched, one a step"))
}
