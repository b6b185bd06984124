//! Everything at random, with threads that free what others allocated, contexts that come and
//! go, calls that fail, a forked child, and each way to end.

use std::os::unix::process::CommandExt;
use std::sync::{Mutex, PoisonError};

use super::children::{forbidden_child, wait_for, working_child};
use super::things::{self, Live};
use super::worker::Worker;
use super::{Account, Options};
use crate::driver_api::Driver;
use crate::{counts, cuda, cuda_memory};

const NO_PROGRAM: u32 = 999;

#[derive(Clone)]
pub struct Plan {
    pub seed: u64,
    pub steps: u64,
    pub threads: u64,
    pub devices: u64,
    /// Whether threads work in contexts of their own, which end with them.
    pub own_contexts: bool,
}

pub fn memory(options: &Options, account: &mut Account) -> Result<String, u32> {
    let end = options.text("end", "exit");
    let plan = Plan {
        seed: options.number("seed", 1),
        steps: options.number("steps", 1000),
        threads: options.number("threads", 4),
        devices: options.number("devices", 1),
        own_contexts: end == "destroy",
    };
    let forks = options.number("fork", 1) != 0;
    // A child that starts CUDA itself, and one that may not use its parent's.
    let child = if forks { working_child(&plan) } else { 0 };
    cuda::set_device(0)?;
    if forks {
        wait_for(forbidden_child());
    }
    let left = run_threads(&plan, account)?;
    wait_for(child);
    let done = plan.steps * plan.threads;
    finish(&end, plan.devices, left, account)?;
    let (count, bytes) = account.outstanding();
    Ok(format!("{done} steps; {count} things of {bytes} bytes in all are left"))
}

/// Works until the steps are done; what is left.
pub fn run_threads(plan: &Plan, account: &mut Account) -> Result<Vec<Live>, u32> {
    let shared = Mutex::new(Vec::new());
    let accounts: Vec<Account> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads)
            .map(|number| {
                let (plan, shared) = (plan.clone(), &shared);
                scope.spawn(move || Worker::new(plan, number, shared).map(Worker::work))
            })
            .collect();
        let results = threads.into_iter().map(|t| t.join().unwrap_or(Err(NO_PROGRAM)));
        results.collect::<Result<_, u32>>()
    })?;
    accounts.iter().for_each(|one| account.merge(one));
    Ok(shared.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn finish(end: &str, devices: u64, left: Vec<Live>, account: &mut Account) -> Result<(), u32> {
    match end {
        "exit" => free_all(left, account),
        "reset" => {
            for device in 0..devices {
                cuda::set_device(device as i32)?;
                cuda_memory::device_reset()?;
            }
            let gone = left.iter().filter(|l| things::ends_with_context(&l.thing, true));
            gone.for_each(|live| live.ended(account));
            Ok(())
        }
        "kill" => {
            println!("memory: SIGKILL with memory allocated");
            account.print();
            counts::print("memory");
            // SAFETY: sends a signal to this process.
            unsafe { libc::raise(libc::SIGKILL) };
            Ok(())
        }
        "exec" => {
            account.print();
            counts::print("memory");
            cuda::flush_ledgers();
            let _error = std::process::Command::new("/proc/self/exe").args(["train", "5"]).exec();
            Err(NO_PROGRAM)
        }
        _ => Ok(()),
    }
}

/// Frees until nothing is left, as failures on demand may need more than one try.
fn free_all(mut left: Vec<Live>, account: &mut Account) -> Result<(), u32> {
    let driver = Driver::load().ok_or(35u32)?;
    for _ in 0..100 {
        left = left
            .into_iter()
            .filter_map(|live| live.free(&driver, account))
            .collect();
        if left.is_empty() {
            break;
        }
    }
    Ok(())
}
