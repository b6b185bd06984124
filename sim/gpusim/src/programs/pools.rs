//! Memory pools: reserved and used, thresholds, and pools destroyed with memory in use.

use super::random::Random;
use super::{Account, Options};
use crate::{cuda, cuda_memory, pace};

const DEVICE: i32 = 0;
const RESERVED: i32 = 5;
const USED: i32 = 7;
const THRESHOLD: u64 = 64 << 20;
const PAGE: u64 = 2 << 20;

/// Memory in use, by its address: where it is from does not matter to those who free it.
struct Use {
    address: u64,
    bytes: u64,
}

pub fn pools(options: &Options, account: &mut Account) -> Result<String, u32> {
    let mut random = Random(options.number("seed", 1));
    let stream = cuda::stream()?;
    let pool = cuda_memory::pool_create(DEVICE)?;
    cuda_memory::pool_keep(pool, THRESHOLD)?;
    let default = cuda_memory::default_pool(DEVICE)?;
    let (mut uses, mut most_idle, mut steps) = (Vec::new(), 0, 0);
    for _ in pace::steps(options.number("steps", 100)) {
        step(&mut random, pool, stream, &mut uses, account)?;
        let (reserved, used) = figures(pool)?;
        most_idle = most_idle.max(reserved - used);
        steps += 1;
    }
    let doomed = destroy_in_use(stream, account)?;
    cuda::stream_synchronize(stream)?;
    let (reserved, used) = figures(pool)?;
    let (default_reserved, default_used) = figures(default)?;
    let pages = (reserved + default_reserved) / PAGE + doomed;
    (0..pages).for_each(|_| account.add("pool", DEVICE, PAGE));
    Ok(format!(
        "{steps} steps; {reserved} bytes reserved and {used} used, {default_reserved} and {default_used} in the default pool, {most_idle} idle at most"
    ))
}

fn figures(pool: u64) -> Result<(u64, u64), u32> {
    Ok((
        cuda_memory::pool_attribute(pool, RESERVED)?,
        cuda_memory::pool_attribute(pool, USED)?,
    ))
}

fn step(random: &mut Random, pool: u64, stream: u64, uses: &mut Vec<Use>, account: &mut Account) -> Result<(), u32> {
    let bytes = 1000 * (1 + random.below(20_000));
    match random.below(10) {
        0..5 => {
            let from_default = random.one_in(3);
            let made = if from_default {
                cuda::malloc_async(bytes as usize, stream)
            } else {
                cuda_memory::malloc_from_pool(bytes as usize, pool, stream)
            };
            let address = account.made("async", DEVICE, bytes, made);
            uses.extend(address.map(|address| Use { address, bytes }));
        }
        5..8 if !uses.is_empty() => {
            let one = uses.swap_remove(random.below(uses.len() as u64) as usize);
            let freed = if random.one_in(4) {
                cuda::free(one.address)
            } else {
                cuda::free_async(one.address, stream)
            };
            account.freed("async", DEVICE, one.bytes, freed);
        }
        8 => cuda::stream_synchronize(stream)?,
        _ => cuda_memory::pool_trim(pool, random.below(THRESHOLD) as usize)?,
    }
    Ok(())
}

/// Destroys a pool of which one allocation is then freed and one is not; the pages it still has.
fn destroy_in_use(stream: u64, account: &mut Account) -> Result<u64, u32> {
    let pool = cuda_memory::pool_create(DEVICE)?;
    let mut addresses = [0; 2];
    for address in &mut addresses {
        *address = cuda_memory::malloc_from_pool(PAGE as usize, pool, stream)?;
        account.add("async", DEVICE, PAGE);
    }
    cuda_memory::pool_destroy(pool)?;
    account.freed("async", DEVICE, PAGE, cuda::free_async(addresses[0], stream));
    Ok(1)
}
