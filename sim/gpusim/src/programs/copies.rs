//! Copies of bytes in a row, and the choice among all families of copies, fills, prefetches and
//! launches.

use super::bench::{Bench, End, PITCH, copied};
use super::{Account, Options, fills, launches, shapes, tally};
use crate::{cuda, cuda_work, pace};

type Family = fn(&mut Bench) -> Result<(), u32>;

const FAMILIES: &[Family] = &[
    by_runtime,
    by_driver,
    by_address,
    by_twin,
    of_array,
    round_trip,
    shapes::flat,
    shapes::solid,
    shapes::by_runtime,
    shapes::peer,
    shapes::batch,
    shapes::solid_batch,
    fills::by_runtime,
    fills::by_driver,
    fills::shaped,
    fills::prefetch,
    launches::by_runtime,
    launches::by_driver,
];

pub fn copies(options: &Options, _: &mut Account) -> Result<String, u32> {
    let mut bench = Bench::new(options)?;
    let mut steps = 0;
    for _ in pace::steps(options.number("steps", 300)) {
        let family = bench.random.below(FAMILIES.len() as u64) as usize;
        FAMILIES[family](&mut bench)?;
        steps += 1;
    }
    cuda::synchronize()?;
    tally::plant("streams_left", bench.streams().len() as u64);
    Ok(format!("{steps} steps among {} families", FAMILIES.len()))
}

/// `cudaMemcpy` with each kind, the one that leaves it to the addresses too.
fn by_runtime(bench: &mut Bench) -> Result<(), u32> {
    let (to, from, bytes) = (bench.any(), bench.any(), bench.bytes());
    let kind = match (from.is_host(), to.is_host()) {
        _ if bench.random.one_in(3) => 4,
        (true, true) => 0,
        (true, false) => 1,
        (false, true) => 2,
        (false, false) => 3,
    };
    let stream = bench.stream();
    match bench.coin() {
        true => cuda_work::copy(to.address, from.address, bytes as usize, kind)?,
        false => cuda::copy_async(to.address, from.address, bytes as usize, kind, stream)?,
    }
    copied(to, from, bytes);
    Ok(())
}

/// The driver's function for each way.
fn by_driver(bench: &mut Bench) -> Result<(), u32> {
    let (host, device, bytes) = (bench.host(), bench.device(), bench.bytes());
    let other = bench.device();
    let (to, from, names) = match bench.random.below(3) {
        0 => (device, host, ["cuMemcpyHtoD_v2", "cuMemcpyHtoDAsync_v2"]),
        1 => (host, device, ["cuMemcpyDtoH_v2", "cuMemcpyDtoHAsync_v2"]),
        _ => (device, other, ["cuMemcpyDtoD_v2", "cuMemcpyDtoDAsync_v2"]),
    };
    linear(bench, names, to, from, bytes)
}

/// The driver's functions that go by the addresses.
fn by_address(bench: &mut Bench) -> Result<(), u32> {
    let (to, from, bytes) = (bench.any(), bench.any(), bench.bytes());
    linear(bench, ["cuMemcpy", "cuMemcpyAsync"], to, from, bytes)
}

/// The functions whose stream 0 is the per-thread default stream.
fn by_twin(bench: &mut Bench) -> Result<(), u32> {
    let (host, device, bytes) = (bench.host(), bench.device(), bench.bytes());
    let (to, from, names) = match bench.random.below(3) {
        0 => (device, host, ["cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoDAsync_v2_ptsz"]),
        1 => (host, device, ["cuMemcpyDtoH_v2_ptds", "cuMemcpyDtoHAsync_v2_ptsz"]),
        _ => (device, host, ["cuMemcpy_ptds", "cuMemcpyAsync_ptsz"]),
    };
    linear(bench, names, to, from, bytes)
}

fn linear(bench: &mut Bench, names: [&'static str; 2], to: End, from: End, bytes: u64) -> Result<(), u32> {
    let stream = bench.stream();
    let name = names[usize::from(bench.coin())];
    bench.driver.call(name, &[to.address, from.address, bytes, stream])?;
    copied(to, from, bytes);
    Ok(())
}

/// Rows of an array.
fn of_array(bench: &mut Bench) -> Result<(), u32> {
    let (array, host, device, stream) = (bench.array, bench.host(), first_device(bench), bench.stream());
    let bytes = 1 + bench.random.below(PITCH);
    let offset = PITCH * bench.random.below(4);
    let (a, h, d) = (array.address, host.address, device.address);
    let (name, args, to, from) = match bench.random.below(7) {
        0 => ("cuMemcpyHtoA_v2", vec![a, offset, h, bytes], array, host),
        1 => ("cuMemcpyAtoH_v2", vec![h, a, offset, bytes], host, array),
        2 => ("cuMemcpyDtoA_v2", vec![a, offset, d, bytes], array, device),
        3 => ("cuMemcpyAtoD_v2", vec![d, a, offset, bytes], device, array),
        4 => (
            "cuMemcpyAtoA_v2",
            vec![a, offset, a, offset + 4 * PITCH, bytes],
            array,
            array,
        ),
        5 => ("cuMemcpyHtoAAsync_v2", vec![a, offset, h, bytes, stream], array, host),
        _ => ("cuMemcpyAtoHAsync_v2", vec![h, a, offset, bytes, stream], host, array),
    };
    bench.driver.call(name, &args)?;
    copied(to, from, bytes);
    Ok(())
}

/// Memory of the device that the array is on.
pub fn first_device(bench: &mut Bench) -> End {
    loop {
        let device = bench.device();
        if device.kind == super::bench::Kind::Device(0) {
            return device;
        }
    }
}

/// To the device, within it, and back: where devices hold data, it is the same.
fn round_trip(bench: &mut Bench) -> Result<(), u32> {
    let (to, from, bytes) = (bench.device(), bench.device(), bench.bytes());
    let sent: Vec<u8> = (0..bytes).map(|_| bench.random.next() as u8).collect();
    let mut back = vec![0u8; bytes as usize];
    let host = |memory: &[u8]| End::new(memory.as_ptr() as u64, super::bench::Kind::Host("pageable"));
    cuda::to_device(from.address, &sent)?;
    cuda::between(to.address, from.address, bytes as usize)?;
    cuda::to_host(&mut back, to.address)?;
    copied(from, host(&sent), bytes);
    copied(to, from, bytes);
    copied(host(&back), to, bytes);
    let holds_data = std::env::var("GPUSIM_DATA").is_ok_and(|wanted| wanted == "1");
    if holds_data && back != sent { Err(999) } else { Ok(()) }
}
