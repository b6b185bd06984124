//! Attaches the kernel programs to functions and tracepoints, and takes them away again.

use super::{Session, Tier};
use crate::engine::{Hook, Hooks, KernelPoint, Point};
use anyhow::{Context, Result};
use libbpf_rs::{KprobeOpts, Link, ProgramMut, TracepointCategory, TracepointOpts, UprobeMultiOpts, UprobeOpts};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Links closed at the same time: each waits for all CPUs to have left the probe.
const CLOSERS: usize = 64;

/// Probes `points` of the file behind `path`, which should be a descriptor's path.
///
/// # Errors
/// The kernel refuses.
pub(super) fn attach(session: &Session, path: &Path, points: &[Point]) -> Result<Vec<Link>> {
    match session.tier {
        Tier::Session => attach_sessions(session, path, points),
        Tier::Multi => attach_pair(session, path, points),
        Tier::PerfLink => attach_singly(session, path, points),
    }
}

/// A return leg takes the word at `rsp` for a return address, which it is at a function's entry only: static
/// probes get a program that has no such leg, whatever their row says.
fn attach_sessions(session: &Session, path: &Path, points: &[Point]) -> Result<Vec<Link>> {
    let (entries, inner): (Vec<Point>, Vec<Point>) = points.iter().partition(|point| point.site == 0);
    let both = (&session.skel.progs.call_session, entries, Leg::Both);
    let plain = (&session.skel.progs.call_entry_multi, inner, Leg::Entry);
    [both, plain]
        .into_iter()
        .filter(|(_, points, _)| !points.is_empty())
        .map(|(program, points, leg)| attach_multi(program, path, &points, leg))
        .collect()
}

fn attach_pair(session: &Session, path: &Path, points: &[Point]) -> Result<Vec<Link>> {
    let returning: Vec<Point> = points
        .iter()
        .copied()
        .filter(|point| point.returns && point.site == 0)
        .collect();
    let mut links = Vec::new();
    // returns first: a call must not be opened that nothing will close
    if !returning.is_empty() {
        links.push(attach_multi(
            &session.skel.progs.call_return_multi,
            path,
            &returning,
            Leg::Return,
        )?);
    }
    links.push(attach_multi(
        &session.skel.progs.call_entry_multi,
        path,
        points,
        Leg::Entry,
    )?);
    Ok(links)
}

fn attach_singly(session: &Session, path: &Path, points: &[Point]) -> Result<Vec<Link>> {
    let mut links = Vec::new();
    for point in points {
        if point.returns && point.site == 0 {
            links.push(attach_single(
                &session.skel.progs.call_return_single,
                path,
                point,
                true,
            )?);
        }
        links.push(attach_single(
            &session.skel.progs.call_entry_single,
            path,
            point,
            false,
        )?);
    }
    Ok(links)
}

/// Probes the dynamic linker's notification hook at `offset` of the file behind `path`.
pub(super) fn attach_linker(session: &Session, path: &Path, offset: u64) -> Result<Link> {
    let point = Point::entry(offset, 0, false);
    match session.tier {
        Tier::PerfLink => attach_single(&session.skel.progs.library_mapped_single, path, &point, false),
        _ => attach_multi(&session.skel.progs.library_mapped_multi, path, &[point], Leg::Entry),
    }
}

/// Follows forks, execs and exits. Some kernels refuse this to a process without CAP_SYS_ADMIN.
pub(super) fn attach_lifecycle(session: &Session) -> Result<Vec<Link>> {
    let programs = [
        (&session.skel.progs.process_forked, "sched_process_fork"),
        (&session.skel.progs.process_executed, "sched_process_exec"),
        (&session.skel.progs.process_exited, "sched_process_exit"),
    ];
    programs
        .into_iter()
        .map(|(program, name)| {
            program
                .attach_raw_tracepoint(name)
                .with_context(|| format!("failed to attach to tracepoint {name}"))
        })
        .collect()
}

impl Session {
    /// Puts probes at a function of the kernel, by the name that kallsyms has for it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn attach_kernel_function(&self, name: &str, point: KernelPoint) -> Result<Vec<Link>> {
        let attach = |program: &ProgramMut<'_>, returns| {
            let options = KprobeOpts {
                cookie: point.cookie(),
                ..Default::default()
            };
            program
                .attach_kprobe_with_opts(returns, name, options)
                .context("the kernel takes no probe there (inlined, notrace, or locked down)")
        };
        let mut links = Vec::new();
        // returns first: a call must not be opened that nothing will close
        if point.returns {
            links.push(attach(&self.skel.progs.kernel_returned, true)?);
        }
        links.push(attach(&self.skel.progs.kernel_entered, false)?);
        Ok(links)
    }

    /// Hooks tracepoint `GROUP:NAME`.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn attach_tracepoint(&self, name: &str, point: KernelPoint) -> Result<Vec<Link>> {
        let (group, name) = name.split_once(':').context("is not of the form GROUP:NAME")?;
        let options = TracepointOpts {
            cookie: point.cookie(),
            ..Default::default()
        };
        let group = TracepointCategory::Custom(group.to_owned());
        let program = &self.skel.progs.kernel_passed;
        let link = program.attach_tracepoint_with_opts(group, name, options);
        Ok(vec![link.context("the kernel takes no program there")?])
    }

    /// A probe without a body, to measure what a hit costs on this machine.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn attach_empty(&self, path: &Path, points: &[Point], entry_only: bool) -> Result<Hooks> {
        let (program, leg) = match entry_only {
            true => (&self.skel.progs.empty_entry, Leg::Entry),
            false => (&self.skel.progs.empty_session, Leg::Both),
        };
        attach_multi(program, path, points, leg).map(|link| hooks(vec![link]))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leg {
    Entry,
    Return,
    Both,
}

const ANY_PROCESS: i32 = -1;

fn attach_multi(program: &ProgramMut<'_>, path: &Path, points: &[Point], leg: Leg) -> Result<Link> {
    let semaphores = if points.iter().any(|point| point.semaphore != 0) {
        points.iter().map(|point| point.semaphore as usize).collect()
    } else {
        Vec::new()
    };
    let options = UprobeMultiOpts {
        offsets: points.iter().map(|point| point.offset as usize).collect(),
        cookies: points.iter().map(Point::cookie).collect(),
        ref_ctr_offsets: semaphores,
        retprobe: leg == Leg::Return,
        session: leg == Leg::Both,
        ..Default::default()
    };
    program
        .attach_uprobe_multi_with_opts(ANY_PROCESS, path, "", options)
        .with_context(|| format!("failed to attach {} probes to {}", points.len(), path.display()))
}

fn attach_single(program: &ProgramMut<'_>, path: &Path, point: &Point, retprobe: bool) -> Result<Link> {
    let options = UprobeOpts {
        cookie: point.cookie(),
        ref_ctr_offset: point.semaphore as usize,
        retprobe,
        ..Default::default()
    };
    program
        .attach_uprobe_with_opts(ANY_PROCESS, path, point.offset as usize, options)
        .with_context(|| format!("failed to attach at offset {:#x} of {}", point.offset, path.display()))
}

/// What the kernel hands out for a probe, as hooks.
pub(super) fn hooks(links: Vec<Link>) -> Hooks {
    links.into_iter().map(|link| Box::new(link) as Box<dyn Hook>).collect()
}

/// Takes probes away. Closing a link waits until no CPU runs the probe; those waits are taken together.
pub(crate) fn detach<T: Send>(links: Vec<T>) {
    let others = links.len().min(CLOSERS).saturating_sub(1);
    let left = Mutex::new(links);
    let close = || while next(&left).is_some() {};
    std::thread::scope(|scope| {
        for _ in 0..others {
            // where no more threads are allowed, fewer will do
            if std::thread::Builder::new().spawn_scoped(scope, close).is_err() {
                break;
            }
        }
        close();
    });
}

fn next<T>(left: &Mutex<Vec<T>>) -> Option<T> {
    left.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_link_is_closed_once() {
        struct Counted<'a>(&'a AtomicUsize);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let closed = AtomicUsize::new(0);
        for links in [0, 1, 63, 1000] {
            closed.store(0, Ordering::Relaxed);
            detach((0..links).map(|_| Counted(&closed)).collect());
            assert_eq!(closed.load(Ordering::Relaxed), links);
        }
    }
}
