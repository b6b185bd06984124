//! Copies of rows and planes, between devices, and many at once.

use super::bench::{Bench, End, Kind, PITCH, PLANE_ROWS, copied};
use super::copies::first_device;
use crate::cuda_work;

const ANY: u64 = 4;

/// Two ends of which an array may be one.
fn ends(bench: &mut Bench) -> (End, End) {
    match bench.random.below(4) {
        0 => (
            bench.array,
            if bench.coin() {
                bench.host()
            } else {
                first_device(bench)
            },
        ),
        1 => (
            if bench.coin() {
                bench.host()
            } else {
                first_device(bench)
            },
            bench.array,
        ),
        _ => (bench.any(), bench.any()),
    }
}

/// What a structure says of the memory of an end: what it is, or that its address tells.
fn memory(bench: &mut Bench, end: End) -> u64 {
    if end.kind != Kind::Array && bench.random.one_in(3) {
        ANY
    } else {
        end.memory()
    }
}

fn area([width, height, depth]: [u64; 3]) -> u64 {
    width * height * depth
}

/// `CUDA_MEMCPY2D`.
pub fn flat(bench: &mut Bench) -> Result<(), u32> {
    let ((to, from), [width, height, _]) = (ends(bench), bench.shape());
    let mut plan = [0u64; 16];
    for (at, end) in [(0, from), (7, to)] {
        plan[at + 2] = memory(bench, end);
        plan[at + 3..at + 6].fill(end.address);
        plan[at + 6] = PITCH;
    }
    plan[14..].copy_from_slice(&[width, height]);
    let names = ["cuMemcpy2D_v2", "cuMemcpy2DUnaligned_v2", "cuMemcpy2DAsync_v2"];
    let (name, stream) = (names[bench.random.below(3) as usize], bench.stream());
    bench.driver.call(name, &[plan.as_ptr() as u64, stream])?;
    copied(to, from, width * height);
    Ok(())
}

/// `CUDA_MEMCPY3D`, and `CUDA_MEMCPY3D_PEER` with contexts.
fn plan(to: (End, u64, u64), from: (End, u64, u64), shape: [u64; 3]) -> [u64; 25] {
    let mut plan = [0u64; 25];
    for (at, (end, memory, context)) in [(0, from), (11, to)] {
        plan[at + 4] = memory;
        plan[at + 5..at + 8].fill(end.address);
        plan[at + 8] = context;
        plan[at + 9..at + 11].copy_from_slice(&[PITCH, PLANE_ROWS]);
    }
    plan[22..].copy_from_slice(&shape);
    plan
}

/// A shape that fits both ends: an array has one plane.
fn fitting(bench: &mut Bench, to: End, from: End) -> [u64; 3] {
    let [width, height, depth] = bench.shape();
    let is_array = to.kind == Kind::Array || from.kind == Kind::Array;
    [width, height, if is_array { 1 } else { depth }]
}

pub fn solid(bench: &mut Bench) -> Result<(), u32> {
    let (to, from) = ends(bench);
    let shape = fitting(bench, to, from);
    let memories = (memory(bench, to), memory(bench, from));
    let plan = plan((to, memories.0, 0), (from, memories.1, 0), shape);
    let (name, stream) = (
        ["cuMemcpy3D_v2", "cuMemcpy3DAsync_v2"][usize::from(bench.coin())],
        bench.stream(),
    );
    bench.driver.call(name, &[plan.as_ptr() as u64, stream])?;
    copied(to, from, area(shape));
    Ok(())
}

/// `cudaMemcpy2D` and `cudaMemcpy3D`.
pub fn by_runtime(bench: &mut Bench) -> Result<(), u32> {
    let (to, from, shape, stream) = (bench.any(), bench.any(), bench.shape(), bench.stream());
    let rows = [shape[0] as usize, shape[1] as usize];
    // cudaMemcpy3DParms: pointers with pitch and height at 4 and 12, the extent at 16, the kind last.
    let mut parms = [0u64; 20];
    for (at, end) in [(4, from), (12, to)] {
        parms[at..at + 4].copy_from_slice(&[end.address, PITCH, PITCH, PLANE_ROWS]);
    }
    parms[16..19].copy_from_slice(&shape);
    parms[19] = ANY;
    let bytes = match bench.random.below(4) {
        0 => cuda_work::flat(to.address, from.address, PITCH as usize, rows, ANY as u32).map(|()| shape[0] * shape[1]),
        1 => cuda_work::flat_async(to.address, from.address, PITCH as usize, rows, ANY as u32, stream)
            .map(|()| shape[0] * shape[1]),
        2 => cuda_work::solid(&parms).map(|()| area(shape)),
        _ => cuda_work::solid_async(&parms, stream).map(|()| area(shape)),
    }?;
    copied(to, from, bytes);
    Ok(())
}

/// Between two devices, or within one where there is only one.
pub fn peer(bench: &mut Bench) -> Result<(), u32> {
    let (to, from, bytes, stream) = (bench.device(), bench.device(), bench.bytes(), bench.stream());
    let (target, source) = ((to.address, ordinal(to)), (from.address, ordinal(from)));
    let contexts = [context(bench, to)?, context(bench, from)?];
    let shape = bench.shape();
    let plan = plan((to, 2, contexts[0]), (from, 2, contexts[1]), shape);
    let args = [to.address, contexts[0], from.address, contexts[1], bytes, stream];
    let plan = [plan.as_ptr() as u64, stream];
    let is_solid = match bench.random.below(6) {
        0 => bench.driver.call("cuMemcpyPeer", &args).map(|()| false),
        1 => bench.driver.call("cuMemcpyPeerAsync", &args).map(|()| false),
        2 => bench.driver.call("cuMemcpy3DPeer", &plan).map(|()| true),
        3 => bench.driver.call("cuMemcpy3DPeerAsync", &plan).map(|()| true),
        4 => cuda_work::peer(target, source, bytes as usize).map(|()| false),
        _ => cuda_work::peer_async(target, source, bytes as usize, stream).map(|()| false),
    }?;
    copied(to, from, if is_solid { area(shape) } else { bytes });
    Ok(())
}

fn ordinal(end: End) -> i32 {
    if let Kind::Device(device) = end.kind { device } else { 0 }
}

fn context(bench: &Bench, end: End) -> Result<u64, u32> {
    let mut context = 0u64;
    let place = &raw mut context as u64;
    bench
        .driver
        .call("cuDevicePrimaryCtxRetain", &[place, ordinal(end) as u64])?;
    Ok(context)
}

/// Several copies in one call.
pub fn batch(bench: &mut Bench) -> Result<(), u32> {
    let count = 1 + bench.random.below(5) as usize;
    let to: Vec<End> = (0..count).map(|_| bench.any()).collect();
    let from: Vec<End> = (0..count).map(|_| bench.any()).collect();
    let sizes: Vec<usize> = (0..count).map(|_| bench.bytes() as usize).collect();
    let addresses = |ends: &[End]| ends.iter().map(|end| end.address).collect::<Vec<u64>>();
    let (targets, sources, stream) = (addresses(&to), addresses(&from), bench.own_stream());
    let (attributes, first, mut failed) = ([0u64; 4], 0u64, 0u64);
    let mut args = vec![
        targets.as_ptr() as u64,
        sources.as_ptr() as u64,
        sizes.as_ptr() as u64,
        count as u64,
    ];
    args.extend([attributes.as_ptr() as u64, &raw const first as u64, 1]);
    match bench.random.below(3) {
        0 => cuda_work::batch(&targets, &sources, &sizes, stream)?,
        1 => {
            args.extend([&raw mut failed as u64, stream]);
            bench.driver.call("cuMemcpyBatchAsync", &args)?;
        }
        _ => {
            args.push(stream);
            bench.driver.call("cuMemcpyBatchAsync_v2", &args)?;
        }
    }
    for i in 0..count {
        copied(to[i], from[i], sizes[i] as u64);
    }
    Ok(())
}

/// Several copies of planes in one call: `CUDA_MEMCPY3D_BATCH_OP`.
pub fn solid_batch(bench: &mut Bench) -> Result<(), u32> {
    let count = 1 + bench.random.below(3);
    let (mut items, mut made) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (to, from, shape) = (bench.any(), bench.any(), bench.shape());
        for end in [from, to] {
            // A pointer: its address, the length of its rows, the height of its planes, no hint.
            items.extend([1, end.address, PITCH, PLANE_ROWS, 0]);
        }
        items.extend(shape);
        items.push(0);
        made.push((to, from, area(shape)));
    }
    let (items, stream) = (items.as_ptr() as u64, bench.own_stream());
    let mut failed = 0u64;
    match bench.coin() {
        true => bench.driver.call(
            "cuMemcpy3DBatchAsync",
            &[count, items, &raw mut failed as u64, 0, stream],
        )?,
        false => bench
            .driver
            .call("cuMemcpy3DBatchAsync_v2", &[count, items, 0, stream])?,
    }
    made.into_iter().for_each(|(to, from, bytes)| copied(to, from, bytes));
    Ok(())
}
