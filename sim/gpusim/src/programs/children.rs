//! The children of the program that does everything at random.

use super::Account;
use super::memory::{Plan, run_threads};
use crate::{counts, cuda};

pub fn wait_for(child: i32) {
    if child > 0 {
        // SAFETY: no status is asked for.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
}

/// A child that works like its parent, and keeps what it has left.
pub fn working_child(plan: &Plan) -> i32 {
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child != 0 {
        return child;
    }
    counts::reset();
    let plan = Plan {
        seed: plan.seed + 1,
        steps: plan.steps / 4 + 1,
        threads: 1,
        own_contexts: false,
        ..plan.clone()
    };
    let mut account = Account::default();
    let failed = cuda::set_device(0)
        .and_then(|()| run_threads(&plan, &mut account))
        .is_err();
    account.print();
    cuda::count_exit();
    counts::print("memory-child");
    std::process::exit(i32::from(failed))
}

/// A child that has no right to its parent's CUDA.
pub fn forbidden_child() -> i32 {
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child != 0 {
        return child;
    }
    counts::reset();
    let mut account = Account::default();
    for _ in 0..3 {
        account.failed_as("device", 0, cuda::malloc(4096));
    }
    account.print();
    counts::print("memory-forbidden");
    cuda::flush_ledgers();
    // SAFETY: ends this process.
    unsafe { libc::_exit(0) }
}
