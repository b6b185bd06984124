//! What can be seen of one running process, and what cannot.

use super::library::{self, Finding};
use super::mapped::MappedLibrary;
use super::process::{self, Process};
use super::version::{self, Version};
use crate::catalog::Catalog;
use crate::discover::{self, Mapping};
use anyhow::Result;
use serde::Serialize;
use std::io;

/// What can be seen of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Its number here.
    pub pid: u32,
    /// Its number in its own PID namespace, where that differs.
    pub inner_pid: Option<u32>,
    /// Its name; not escaped.
    pub comm: String,
    /// Why nothing at all can be seen of it, whatever it maps.
    pub refusal: Option<String>,
    /// What it maps of CUDA.
    pub libraries: Vec<MappedLibrary>,
    /// What is not seen, and why.
    pub gaps: Vec<String>,
}

/// Looks at process `pid`.
///
/// # Errors
/// When there is no such process. A process that cannot be traced is an answer, see [`Coverage::refusal`].
pub fn coverage(pid: u32, catalog: &Catalog) -> Result<Coverage> {
    let process = process::read(pid)?;
    let (comm, inner_pid) = (process.comm.clone(), process.inner_pid);
    let mut found = Coverage {
        pid,
        inner_pid,
        comm,
        refusal: None,
        libraries: Vec::new(),
        gaps: Vec::new(),
    };
    match mapped(pid, &process) {
        Ok(files) => look(&mut found, &files, &process, catalog),
        Err(reason) => found.refusal = Some(reason),
    }
    Ok(found)
}

/// The files that it maps as code, or why it cannot be traced.
fn mapped(pid: u32, process: &Process) -> Result<Vec<Mapping>, String> {
    if process.kernel_thread {
        return Err("a kernel thread: it calls no CUDA function".to_owned());
    }
    if process.ended {
        return Err("it has ended and waits for its parent to notice (zombie)".to_owned());
    }
    if discover::is_32_bit(pid) {
        return Err("a 32-bit program: only 64-bit ones can be traced".to_owned());
    }
    discover::mappings(pid).map_err(|error| unreadable(&error))
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "its mappings cannot be read: it belongs to another user, or to none that this one may look at\nhint: run with sudo; within a container or a namespace of users, as root of the host".to_owned()
        }
        _ => format!("its mappings cannot be read: {error}"),
    }
}

fn look(found: &mut Coverage, files: &[Mapping], process: &Process, catalog: &Catalog) {
    for file in files {
        match library::examine(found.pid, file, catalog) {
            Ok(Finding::Library(library)) => found.libraries.push(*library),
            Ok(Finding::NotSearched) => found.gaps.push(not_searched(file)),
            Ok(Finding::Nothing) => {}
            Err(error) => found.gaps.push(unusable(file, &error, catalog)),
        }
    }
    for library in &mut found.libraries {
        library.mount_namespace_differs = process.mount_namespace_differs;
    }
    let debugger = process
        .traced_by
        .and_then(|tracer| process::debugger(found.pid, tracer));
    found.gaps.extend(debugger);
    found.gaps.extend(layer_gaps(&found.libraries));
    found.gaps.extend(
        version::parse(&version::release())
            .into_iter()
            .flat_map(|kernel| kernel_gaps(process, kernel)),
    );
}

fn not_searched(file: &Mapping) -> String {
    format!(
        "{}: too large to be searched for a static runtime, and holds no GPU code",
        file.path.display()
    )
}

fn unusable(file: &Mapping, error: &anyhow::Error, catalog: &Catalog) -> String {
    let lost = library::by_name(file, catalog).map_or("a static runtime in it", |library| library.name.as_str());
    format!("{}: {error:#}; {lost} would not be seen", file.path.display())
}

fn layer_gaps(libraries: &[MappedLibrary]) -> Vec<String> {
    let has = |layer: &str| libraries.iter().any(|library| library.layer == layer);
    let mut gaps = Vec::new();
    match (has("runtime"), has("driver")) {
        _ if libraries.is_empty() => gaps.push("no CUDA library is mapped: nothing to see until one is loaded"),
        (true, false) => {
            gaps.push("libcuda is not mapped: driver calls appear once the runtime loads it, at its first use")
        }
        (false, true) => gaps
            .push("no CUDA runtime is mapped: its calls appear once one is loaded; driver calls are complete without"),
        _ => {}
    }
    if has("driver") {
        gaps.push("private driver functions (cuGetExportTable) have no names and are not seen");
    }
    gaps.into_iter().map(str::to_owned).collect()
}

fn kernel_gaps(process: &Process, kernel: Version) -> Vec<String> {
    let mut gaps = Vec::new();
    if process.seccomp && version::return_probes_kill_seccomp(kernel) {
        gaps.push("results and durations: it runs under seccomp, and return probes of this kernel would kill it");
    }
    if process.shadow_stack && !version::return_probes_know_shadow_stacks(kernel) {
        gaps.push("results and durations: it has a shadow stack, and return probes of this kernel would kill it");
    }
    gaps.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
#[path = "coverage_tests.rs"]
mod tests;
