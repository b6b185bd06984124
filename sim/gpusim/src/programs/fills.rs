//! Fills and prefetches.

use super::bench::{Bench, End, PITCH, PLANE_ROWS};
use super::tally;
use crate::{cuda, cuda_work};

/// Memory that can be filled: a device's, or managed or pinned.
fn target(bench: &mut Bench) -> End {
    loop {
        let end = bench.any();
        if end.kind != super::bench::Kind::Host("pageable") {
            return end;
        }
    }
}

/// Counts a fill.
fn filled(end: End, bytes: u64) {
    match end.kind {
        super::bench::Kind::Host(kind) => tally::add(&format!("memset {kind}"), bytes),
        _ => tally::add("memset", bytes),
    }
}

pub fn by_runtime(bench: &mut Bench) -> Result<(), u32> {
    let (end, bytes, stream) = (target(bench), bench.bytes(), bench.stream());
    match bench.coin() {
        true => cuda::memset(end.address, bytes as usize)?,
        false => cuda::memset_async(end.address, bytes as usize, stream)?,
    }
    filled(end, bytes);
    Ok(())
}

pub fn by_driver(bench: &mut Bench) -> Result<(), u32> {
    let (end, bytes, stream) = (target(bench), bench.bytes(), bench.stream());
    let names = [
        ["cuMemsetD8_v2", "cuMemsetD16_v2", "cuMemsetD32_v2"],
        ["cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async"],
    ];
    let log = bench.random.below(3);
    let count = bytes >> log;
    let name = names[usize::from(bench.coin())][log as usize];
    bench.driver.call(name, &[end.address, 7, count, stream])?;
    if count > 0 {
        filled(end, count << log);
    }
    Ok(())
}

/// Rows and planes.
pub fn shaped(bench: &mut Bench) -> Result<(), u32> {
    let (end, [width, height, depth], stream) = (target(bench), bench.shape(), bench.stream());
    let (pitch, rows) = (PITCH as usize, [width as usize, height as usize]);
    let names = ["cuMemsetD2D8_v2", "cuMemsetD2D16_v2", "cuMemsetD2D32_v2"];
    let names_async = ["cuMemsetD2D8Async", "cuMemsetD2D16Async", "cuMemsetD2D32Async"];
    let log = bench.random.below(3);
    let elements = (width >> log).max(1);
    let args = [end.address, PITCH, 7, elements, height, stream];
    let planes = [width as usize, PLANE_ROWS as usize, depth as usize];
    let bytes = match bench.random.below(6) {
        0 => cuda_work::fill_flat(end.address, pitch, rows).map(|()| width * height),
        1 => cuda_work::fill_flat_async(end.address, pitch, rows, stream).map(|()| width * height),
        2 => cuda_work::fill_solid(end.address, pitch, planes).map(|()| width * PLANE_ROWS * depth),
        3 => cuda_work::fill_solid_async(end.address, pitch, planes, stream).map(|()| width * PLANE_ROWS * depth),
        4 => bench
            .driver
            .call(names[log as usize], &args)
            .map(|()| (elements << log) * height),
        _ => bench
            .driver
            .call(names_async[log as usize], &args)
            .map(|()| (elements << log) * height),
    }?;
    filled(end, bytes);
    Ok(())
}

/// Managed memory to the device and back.
pub fn prefetch(bench: &mut Bench) -> Result<(), u32> {
    const DEVICE: u64 = 1;
    const HOST: u64 = 2;
    let (address, bytes, stream) = (bench.managed(), bench.bytes(), bench.stream());
    let to_device = bench.coin();
    let location = if to_device { DEVICE } else { HOST };
    let ordinal = if to_device { 0 } else { u64::from(u32::MAX) };
    let first = 0u64;
    let mut batch = vec![&raw const address as u64, &raw const bytes as u64, 1];
    batch.extend([&raw const location as u64, &raw const first as u64, 1, 0, stream]);
    let to_device = match bench.random.below(4) {
        0 => bench
            .driver
            .call("cuMemPrefetchAsync", &[address, bytes, ordinal, stream])
            .map(|()| to_device),
        1 => bench
            .driver
            .call("cuMemPrefetchAsync_v2", &[address, bytes, location, 0, stream])
            .map(|()| to_device),
        2 => bench.driver.call("cuMemPrefetchBatchAsync", &batch).map(|()| to_device),
        _ => cuda::prefetch(address, bytes as usize, stream).map(|()| true),
    }?;
    tally::add(
        if to_device {
            "prefetch HtoD managed"
        } else {
            "prefetch DtoH managed"
        },
        bytes,
    );
    Ok(())
}
