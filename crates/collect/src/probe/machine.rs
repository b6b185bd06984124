//! What this machine and this process allow, found out by trying where trying is harmless.
//!
//! Owns the list of checks and the cures. [`coverage`] says the same of one traced process. `doctor` prints both.

pub mod coverage;
mod hooks;
mod kernel;
mod library;
pub mod mapped;
mod nvidia;
pub mod process;
mod tiers;
mod version;
mod xids;

use serde::Serialize;

pub use tiers::{best_tier, can_trace};

/// How well one thing works here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Nothing is lost.
    Ok,
    /// Tracing works, something named in the detail does not.
    Limited,
    /// What depends on it does not work.
    Missing,
}

impl State {
    /// The word used in output.
    pub fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Limited => "limited",
            State::Missing => "missing",
        }
    }
}

/// One fact about this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Short and stable, also the key in JSON.
    pub name: &'static str,
    /// How well it works.
    pub state: State,
    /// What was found, and what that costs.
    pub detail: String,
    /// The command, or else the action, that mends it.
    pub cure: Option<String>,
}

impl Check {
    /// Nothing is lost.
    pub fn ok(name: &'static str, detail: impl Into<String>) -> Check {
        Check {
            name,
            state: State::Ok,
            detail: detail.into(),
            cure: None,
        }
    }

    fn limited(name: &'static str, detail: impl Into<String>, cure: impl Into<String>) -> Check {
        Check {
            name,
            state: State::Limited,
            detail: detail.into(),
            cure: Some(cure.into()),
        }
    }

    /// What depends on it does not work.
    pub fn missing(name: &'static str, detail: impl Into<String>, cure: impl Into<String>) -> Check {
        Check {
            name,
            state: State::Missing,
            detail: detail.into(),
            cure: Some(cure.into()),
        }
    }
}

/// Everything that can be said about this machine, in the order in which it should be mended.
pub fn checks() -> Vec<Check> {
    let release = version::release();
    let mut found = vec![
        kernel::version(&release),
        kernel::type_information(),
        kernel::capabilities(),
        kernel::lockdown(),
        kernel::unprivileged_bpf(),
        kernel::perf_event_paranoid(),
    ];
    found.extend(tiers::checks());
    found.extend([hooks::syscall_tracepoints(), hooks::kprobes(), hooks::fentry()]);
    found.extend([
        nvidia::driver(),
        nvidia::driver_library(),
        nvidia::runtime_library(),
        nvidia::management_library(),
        xids::xids(),
    ]);
    found
}

/// Why no return probes may be used on this kernel; `None`: they are safe.
///
/// A process that would die of them can be started at any time, so this holds for all.
pub fn returns_refused() -> Option<String> {
    let release = version::release();
    let kills = version::parse(&release).is_some_and(version::return_probes_kill_seccomp);
    kills.then(|| {
        format!(
            "results and durations: return probes of Linux {release} kill programs that run under seccomp; \
             hint: 6.12.14, 6.13.3 or newer"
        )
    })
}

/// Why programs in the kernel cannot trace here; `None`: nothing speaks against it.
#[must_use]
pub fn programs_refused() -> Option<&'static str> {
    let has = super::privilege::has;
    let may_load = has("CAP_SYS_ADMIN") || (has("CAP_BPF") && has("CAP_PERFMON"));
    let kernel = version::parse(&version::release());
    let is = |lacks: fn(version::Version) -> bool| kernel.is_some_and(lacks);
    if !may_load {
        Some("programs in the kernel need root, or CAP_BPF and CAP_PERFMON")
    } else if is(version::lacks_cookies) {
        Some("programs in the kernel need Linux 6.1 or newer")
    } else if is(version::lacks_multi) && kernel::refuses_events() {
        Some("probes of Linux before 6.6 need root here, or kernel.perf_event_paranoid=2")
    } else {
        None
    }
}

/// In words: return probes would kill process `pid`, because it has a shadow stack that this kernel's do not know.
pub fn shadow_stack_in_the_way(pid: u32) -> Option<String> {
    let kernel = version::parse(&version::release());
    let is_there = kernel.is_some_and(|kernel| !version::return_probes_know_shadow_stacks(kernel))
        && process::read(pid).is_ok_and(|process| process.shadow_stack);
    is_there.then(|| format!("process {pid} has a shadow stack, and return probes of this kernel would kill it"))
}
