//! What the kernel was built with, how it is configured, and what this process may do with it.

use super::super::privilege;
use super::Check;
use super::version::{self, Version};

const SETCAP: &str =
    "sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_lease+ep $(command -v gpuscope)";
const SETCAP_ADMIN: &str = "run with sudo";
/// Capabilities that tracing does without, and what is lost.
const HELPFUL: [(&str, &str); 3] = [
    ("CAP_SYS_PTRACE", "processes of other users are not found"),
    ("CAP_DAC_READ_SEARCH", "files of other users and tracefs are not read"),
    (
        "CAP_LEASE",
        "a library that is overwritten while probed is not protected",
    ),
];
/// The highest `perf_event_paranoid` with which events of perf are not for administrators alone.
const ANYBODY: i64 = 2;

pub(super) fn version(release: &str) -> Check {
    const NAME: &str = "kernel";
    let upgrade = |to: &str| format!("use Linux {to} or newer");
    let Some(version) = version::parse(release) else {
        return Check::limited(NAME, format!("release {release:?} is not understood"), "uname -r");
    };
    let linux = format!("Linux {release}");
    match version {
        _ if version::lacks_cookies(version) => Check::missing(
            NAME,
            format!("{linux}: probes carry no cookie, so no call can be named"),
            upgrade("6.1"),
        ),
        _ if version < Version(6, 1, 0) => Check::limited(NAME, format!("{linux}: older than 6.1"), upgrade("6.1")),
        _ if version::return_probes_kill_seccomp(version) => Check::limited(
            NAME,
            format!("{linux}: return probes kill processes that run under seccomp"),
            "use Linux 6.12.14, 6.13.3 or newer",
        ),
        _ if version::lacks_multi(version) => Check::limited(
            NAME,
            format!("{linux}: detaching takes 20-150 ms a function"),
            upgrade("6.6"),
        ),
        _ => Check::ok(NAME, linux),
    }
}

pub(super) fn type_information() -> Check {
    const NAME: &str = "type information";
    if privilege::has_btf() {
        return Check::ok(NAME, "/sys/kernel/btf/vmlinux");
    }
    let cure = "use a kernel built with CONFIG_DEBUG_INFO_BTF=y (Debian 11+, Ubuntu 20.10+, Fedora, RHEL 8.2+ have it)";
    Check::missing(NAME, "/sys/kernel/btf/vmlinux is absent", cure)
}

pub(super) fn capabilities() -> Check {
    let admin = privilege::has("CAP_SYS_ADMIN");
    judge_capabilities(&|name| privilege::has(name) || (admin && ["CAP_BPF", "CAP_PERFMON"].contains(&name)))
}

fn judge_capabilities(has: &dyn Fn(&str) -> bool) -> Check {
    const NAME: &str = "capabilities";
    let needed: Vec<&str> = ["CAP_BPF", "CAP_PERFMON"]
        .into_iter()
        .filter(|name| !has(name))
        .collect();
    if !needed.is_empty() {
        return Check::missing(
            NAME,
            format!("without {}", needed.join(" and ")),
            format!("run with sudo, or: {SETCAP}"),
        );
    }
    let lost: Vec<_> = HELPFUL.iter().filter(|(name, _)| !has(name)).collect();
    if lost.is_empty() {
        return Check::ok(NAME, "all that are needed");
    }
    let lost: Vec<String> = lost
        .iter()
        .map(|(name, loss)| format!("without {name} {loss}"))
        .collect();
    Check::limited(NAME, lost.join("; "), SETCAP_ADMIN)
}

pub(super) fn lockdown() -> Check {
    let modes = std::fs::read_to_string("/sys/kernel/security/lockdown").ok();
    let mounted = std::fs::read_dir("/sys/kernel/security").is_ok_and(|mut entries| entries.next().is_some());
    match modes {
        None if privilege::is_locked_down() => judge_lockdown(Some("[confidentiality]"), mounted),
        modes => judge_lockdown(modes.as_deref(), mounted),
    }
}

fn judge_lockdown(modes: Option<&str>, mounted: bool) -> Check {
    const NAME: &str = "lockdown";
    let mode = modes.and_then(|text| Some(text.split_once('[')?.1.split_once(']')?.0));
    match mode {
        Some("confidentiality") => Check::missing(
            NAME,
            "confidentiality: no program may read kernel memory, which all of ours do: nothing can be traced",
            privilege::UNLOCK,
        ),
        Some(mode) => Check::ok(NAME, mode),
        None if mounted => Check::ok(NAME, "not built into this kernel"),
        None => Check::limited(
            NAME,
            "not known: securityfs is not mounted",
            "sudo mount -t securityfs securityfs /sys/kernel/security",
        ),
    }
}

pub(super) fn unprivileged_bpf() -> Check {
    const NAME: &str = "unprivileged bpf";
    let has_bpf = privilege::has("CAP_BPF") || privilege::has("CAP_SYS_ADMIN");
    match sysctl("unprivileged_bpf_disabled") {
        None => Check::ok(NAME, "no such setting in this kernel"),
        Some(level) if has_bpf => Check::ok(
            NAME,
            format!("level {level}: does not apply, this process holds CAP_BPF"),
        ),
        Some(0) => Check::limited(NAME, "level 0: allowed, yet probes need CAP_BPF", "run with sudo"),
        Some(level) => Check::missing(NAME, format!("level {level}: refused without CAP_BPF"), "run with sudo"),
    }
}

/// Whether events of perf are refused to this process, as Debian's kernels and their kin do from level 3 on, which others do not know.
pub(super) fn refuses_events() -> bool {
    let only_admins = sysctl("perf_event_paranoid").is_some_and(|level| level > ANYBODY);
    only_admins && !privilege::has("CAP_SYS_ADMIN")
}

pub(super) fn perf_event_paranoid() -> Check {
    judge_paranoid(sysctl("perf_event_paranoid"), privilege::has("CAP_SYS_ADMIN"))
}

fn judge_paranoid(level: Option<i64>, admin: bool) -> Check {
    const NAME: &str = "perf_event_paranoid";
    match level {
        None => Check::missing(
            NAME,
            "this kernel has no perf events",
            "use a kernel built with CONFIG_PERF_EVENTS=y",
        ),
        Some(level) if admin => Check::ok(
            NAME,
            format!("level {level}: does not apply, this process holds CAP_SYS_ADMIN"),
        ),
        Some(level) if level > ANYBODY => Check::limited(
            NAME,
            format!("level {level}: only uprobe.multi and uprobe.session without CAP_SYS_ADMIN"),
            "sudo sysctl kernel.perf_event_paranoid=2",
        ),
        Some(level) => Check::ok(NAME, format!("level {level}")),
    }
}

fn sysctl(name: &str) -> Option<i64> {
    std::fs::read_to_string(format!("/proc/sys/kernel/{name}"))
        .ok()?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    fn judged(check: &Check) -> (State, &str) {
        (check.state, check.cure.as_deref().unwrap_or_default())
    }

    #[test]
    fn each_kernel_gets_its_cure() {
        assert_eq!(
            judged(&version("5.10.0-30-amd64")),
            (State::Missing, "use Linux 6.1 or newer")
        );
        assert_eq!(judged(&version("6.1.0")), (State::Limited, "use Linux 6.6 or newer"));
        assert_eq!(
            judged(&version("6.12.9")),
            (State::Limited, "use Linux 6.12.14, 6.13.3 or newer")
        );
        assert_eq!(judged(&version("6.18.44-x")), (State::Ok, ""));
        assert_eq!(judged(&version("strange")), (State::Limited, "uname -r"));
    }

    #[test]
    fn each_missing_capability_is_named() {
        let none = judge_capabilities(&|_| false);
        assert_eq!(
            (none.state, none.detail.as_str()),
            (State::Missing, "without CAP_BPF and CAP_PERFMON")
        );
        assert!(
            none.cure
                .is_some_and(|cure| cure.contains("sudo setcap cap_bpf,cap_perfmon"))
        );
        let least = judge_capabilities(&|name| ["CAP_BPF", "CAP_PERFMON"].contains(&name));
        assert_eq!(least.state, State::Limited);
        assert!(least.detail.contains("CAP_SYS_PTRACE") && least.detail.contains("CAP_LEASE"));
        assert_eq!(judge_capabilities(&|_| true).state, State::Ok);
    }

    #[test]
    fn lockdown_modes_are_told_apart() {
        assert_eq!(
            judge_lockdown(Some("[none] integrity confidentiality\n"), true).detail,
            "none"
        );
        assert_eq!(
            judge_lockdown(Some("none [integrity] confidentiality\n"), true).state,
            State::Ok
        );
        assert_eq!(
            judge_lockdown(Some("none integrity [confidentiality]\n"), true).state,
            State::Missing
        );
        assert_eq!(judge_lockdown(None, true).state, State::Ok);
        assert_eq!(
            judged(&judge_lockdown(None, false)).1,
            "sudo mount -t securityfs securityfs /sys/kernel/security"
        );
    }

    #[test]
    fn the_paranoid_level_matters_without_admin_only() {
        assert_eq!(judge_paranoid(Some(4), true).state, State::Ok);
        assert_eq!(
            judged(&judge_paranoid(Some(3), false)),
            (State::Limited, "sudo sysctl kernel.perf_event_paranoid=2")
        );
        assert_eq!(judge_paranoid(Some(-1), false).state, State::Ok);
        assert_eq!(judge_paranoid(None, true).state, State::Missing);
    }
}
