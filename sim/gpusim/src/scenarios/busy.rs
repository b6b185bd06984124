//! Many calls: small launches, needless waits, threads, and as many as can be.

use std::time::{Duration, Instant};

use super::argument;
use crate::{cuda, pace};

pub fn tiny_launches(args: &[u64]) -> Result<String, u32> {
    let stream = cuda::stream()?;
    let start = Instant::now();
    let mut launches = 0;
    for i in pace::steps(argument(args, 0, 10_000)) {
        cuda::launch(i as u32, 1, 32, stream)?;
        launches += 1;
    }
    cuda::stream_synchronize(stream)?;
    cuda::stream_destroy(stream)?;
    Ok(format!(
        "{launches} launches of one warp each in {:.1} ms",
        start.elapsed().as_secs_f64() * 1e3
    ))
}

pub fn sync_stall(args: &[u64]) -> Result<String, u32> {
    let device = cuda::malloc(4096)?;
    let mut host = [0u8; 4];
    let (start, mut waited, mut launches) = (Instant::now(), Duration::ZERO, 0);
    for i in pace::steps(argument(args, 0, 200)) {
        cuda::launch(i as u32, 128, 256, 0)?;
        let before = Instant::now();
        cuda::synchronize()?;
        cuda::to_host(&mut host, device)?;
        waited += before.elapsed();
        launches += 1;
    }
    cuda::free(device)?;
    let share = waited.as_secs_f64() / start.elapsed().as_secs_f64() * 100.0;
    Ok(format!(
        "{launches} launches, each waited for: {share:.0}% of the time in synchronisation"
    ))
}

fn worker(rounds: u64) -> Result<(), u32> {
    let stream = cuda::stream()?;
    let event = cuda::event()?;
    for round in pace::steps(rounds) {
        let memory = cuda::malloc(1 << 16)?;
        cuda::memset_async(memory, 1 << 16, stream)?;
        cuda::launch(round as u32, 8, 64, stream)?;
        cuda::event_record(event, stream)?;
        cuda::stream_wait(stream, event)?;
        cuda::get_device()?;
        cuda::stream_synchronize(stream)?;
        cuda::free(memory)?;
    }
    cuda::event_destroy(event)?;
    cuda::stream_destroy(stream)
}

pub fn threads(args: &[u64]) -> Result<String, u32> {
    let (count, rounds) = (argument(args, 0, 4), argument(args, 1, 100));
    let threads: Vec<_> = (0..count).map(|_| std::thread::spawn(move || worker(rounds))).collect();
    let mut first_error = Ok(());
    for thread in threads {
        first_error = first_error.and(thread.join().unwrap_or(Err(999)));
    }
    first_error?;
    Ok(format!("{count} threads, {rounds} rounds each"))
}

/// Spreads calls evenly over each millisecond of the run, so that rates hold on a busy machine.
fn hammer_one(rate: f64, duration: Duration) -> Result<u64, u32> {
    const FULL_SPEED_BATCH: u64 = 256;
    let stream = cuda::stream()?;
    let start = Instant::now();
    let mut calls = 0;
    while start.elapsed() < duration && !pace::stopped() {
        if rate == 0.0 {
            cuda::query_uncounted(stream, FULL_SPEED_BATCH);
            calls += FULL_SPEED_BATCH;
            continue;
        }
        let due = (start.elapsed().as_secs_f64() * rate) as u64;
        if due > calls {
            cuda::query_uncounted(stream, due - calls);
            calls = due;
        } else {
            std::thread::sleep(Duration::from_secs_f64((1.0 / rate).clamp(0.0005, 0.1)));
        }
    }
    cuda::count_queries(calls);
    cuda::stream_destroy(stream)?;
    Ok(calls)
}

pub fn hammer(args: &[u64]) -> Result<String, u32> {
    let rate = argument(args, 0, 0) as f64;
    let duration = Duration::from_secs(argument(args, 1, 5));
    let count = argument(args, 2, 1).max(1);
    let start = Instant::now();
    let threads: Vec<_> = (0..count)
        .map(|_| std::thread::spawn(move || hammer_one(rate / count as f64, duration)))
        .collect();
    let mut calls = 0;
    for thread in threads {
        calls += thread.join().unwrap_or(Err(999))?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let per_call = seconds * 1e9 * count as f64 / calls.max(1) as f64;
    Ok(format!(
        "{calls} calls in {seconds:.2} s: {:.0} calls/s, {per_call:.0} ns each per thread",
        calls as f64 / seconds
    ))
}
