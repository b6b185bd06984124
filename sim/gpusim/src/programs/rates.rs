//! Many allocations: one after the other, and all at once.

use std::io::Write as _;
use std::time::{Duration, Instant};

use super::{Account, Options};
use crate::{cuda, pace};

const DEVICE: i32 = 0;

/// Spreads pairs evenly over each millisecond of the run, so that rates hold on a busy machine.
fn churn_one(rate: f64, duration: Duration) -> (u64, Account) {
    const FULL_SPEED_BATCH: u64 = 256;
    let start = Instant::now();
    let (mut pairs, mut account) = (0, Account::default());
    while start.elapsed() < duration && !pace::stopped() {
        let due = match rate {
            0.0 => pairs + FULL_SPEED_BATCH,
            _ => (start.elapsed().as_secs_f64() * rate) as u64,
        };
        while pairs < due {
            let bytes = 512 * (1 + pairs % 16);
            let made = cuda::malloc(bytes as usize);
            if let Some(address) = account.made("device", DEVICE, bytes, made) {
                account.freed("device", DEVICE, bytes, cuda::free(address));
            }
            pairs += 1;
        }
        if rate > 0.0 {
            std::thread::sleep(Duration::from_micros(500));
        }
    }
    (pairs, account)
}

pub fn churn(options: &Options, account: &mut Account) -> Result<String, u32> {
    let rate = options.number("rate", 100_000) as f64;
    let duration = Duration::from_secs(options.number("seconds", 60));
    let count = options.number("threads", 2).max(1);
    cuda::set_device(DEVICE)?;
    let start = Instant::now();
    let threads: Vec<_> = (0..count)
        .map(|_| std::thread::spawn(move || churn_one(rate / count as f64, duration)))
        .collect();
    let mut pairs = 0;
    for thread in threads {
        let (own, one) = thread.join().map_err(|_| 999u32)?;
        pairs += own;
        account.merge(&one);
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(format!(
        "{pairs} pairs in {seconds:.2} s: {:.0} pairs/s",
        pairs as f64 / seconds
    ))
}

/// Waits until stdin has something or ends, or a signal to stop comes.
fn wait_for_the_end() {
    let mut stdin = libc::pollfd {
        fd: 0,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one descriptor, and a place for what it has.
    while !pace::stopped() && unsafe { libc::poll(&mut stdin, 1, 100) } <= 0 {}
}

pub fn hold(options: &Options, account: &mut Account) -> Result<String, u32> {
    let count = options.number("count", 1_000_000);
    let bytes = options.number("size", 4096);
    let start = Instant::now();
    for _ in 0..count {
        let made = cuda::malloc(bytes as usize);
        if account.made("device", DEVICE, bytes, made).is_none() || pace::stopped() {
            break;
        }
    }
    let (held, sum) = account.outstanding();
    println!(
        "hold: {held} allocations of {sum} bytes in all, made in {:.2} s",
        start.elapsed().as_secs_f64()
    );
    let _ = std::io::stdout().flush();
    wait_for_the_end();
    Ok(format!("{held} allocations never freed"))
}
