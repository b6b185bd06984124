//! More than one process, and programs beside this one.

use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::train::Model;
use crate::{counts, cuda};

const NO_PROGRAM: u32 = 999;

/// How a child ends.
#[derive(Clone, Copy)]
enum End {
    Exit,
    /// Skips exit handlers, so the ledgers are written first.
    ExitAtOnce,
}

/// Runs `work` in a child and returns the child's id.
fn child(end: End, work: fn() -> Result<(), u32>) -> i32 {
    let _ = std::io::stdout().flush();
    // SAFETY: this process has one thread.
    let pid = unsafe { libc::fork() };
    if pid != 0 {
        return pid;
    }
    counts::reset();
    let failed = i32::from(work().is_err());
    match end {
        End::Exit => {
            cuda::count_exit();
            counts::print("fork-child");
            std::process::exit(failed)
        }
        End::ExitAtOnce => {
            counts::print("fork-child");
            cuda::flush_ledgers();
            let _ = std::io::stdout().flush();
            // SAFETY: ends this process.
            unsafe { libc::_exit(failed) }
        }
    }
}

fn short_training() -> Result<(), u32> {
    let model = Model::new()?;
    for _ in 0..5 {
        model.step()?;
    }
    model.free()
}

fn forbidden() -> Result<(), u32> {
    // A context does not survive fork: each of these must fail with 3.
    for _ in 0..3 {
        let _ = cuda::malloc(4096);
    }
    Ok(())
}

fn replaced() -> Result<(), u32> {
    counts::print("fork-exec");
    // The ledger of the image that ends here; exec runs no exit handlers.
    cuda::flush_ledgers();
    let _ = std::io::stdout().flush();
    let _error = Command::new("/proc/self/exe").args(["train", "5"]).exec();
    Err(NO_PROGRAM)
}

pub fn fork(_args: &[u64]) -> Result<String, u32> {
    let mut children = vec![
        child(End::Exit, short_training),
        child(End::Exit, short_training),
        child(End::ExitAtOnce, short_training),
        child(End::Exit, replaced),
    ];
    short_training()?;
    children.push(child(End::Exit, forbidden));
    let mut failed = 0;
    for pid in &children {
        let mut status = 0;
        // SAFETY: an out-pointer to a local.
        let waited = unsafe { libc::waitpid(*pid, &mut status, 0) };
        failed += usize::from(waited != *pid || status != 0);
    }
    Ok(format!("{} children, {failed} of them failed", children.len()))
}

/// Becomes a program that lies beside this one.
fn become_neighbour(name: &str, args: &[&str]) -> Result<String, u32> {
    let neighbour = std::env::current_exe().ok().map(|own| own.with_file_name(name));
    cuda::flush_ledgers();
    if let Some(path) = neighbour {
        let error = Command::new(&path).args(args).exec();
        eprintln!("gpusim: cannot run {}: {error}", path.display());
    }
    Err(NO_PROGRAM)
}

pub fn late(_args: &[u64]) -> Result<String, u32> {
    become_neighbour("gpusim-late", &[])
}

pub fn static_(_args: &[u64]) -> Result<String, u32> {
    become_neighbour("gpusim-static", &["train", "10"])
}
