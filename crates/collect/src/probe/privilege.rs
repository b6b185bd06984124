//! What this process may do, and the words for what it may not.
//!
//! Owns the reading of capabilities and the cures named in errors; `doctor` prints the same facts.

use super::Tier;

/// Capabilities that matter here: name and bit.
pub(crate) const CAPABILITIES: [(&str, u32); 6] = [
    ("CAP_BPF", 39),
    ("CAP_PERFMON", 38),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_SYS_PTRACE", 19),
    ("CAP_DAC_READ_SEARCH", 2),
    ("CAP_LEASE", 28),
];

/// The effective capability mask of this process; 0 when `/proc` does not tell.
pub(crate) fn effective() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// Whether this process holds the capability named `name`.
pub fn has(name: &str) -> bool {
    let bit = CAPABILITIES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, bit)| *bit);
    bit.is_some_and(|bit| effective() >> bit & 1 == 1)
}

/// Whether the kernel publishes its type information, which the programs are fitted to.
pub(crate) fn has_btf() -> bool {
    std::path::Path::new("/sys/kernel/btf/vmlinux").exists()
}

/// What a kernel that is locked down against reading its memory takes away.
pub(crate) const LOCKED_DOWN: &str = "the kernel is locked down (confidentiality): no program may read its memory";
pub(crate) const UNLOCK: &str = "boot with lockdown=integrity on the kernel command line";

/// Refuses where [`is_locked_down`].
///
/// # Errors
/// The kernel is locked down, with the cure.
pub(crate) fn readable_kernel() -> Result<(), String> {
    if is_locked_down() {
        return Err(format!("{LOCKED_DOWN}; hint: {UNLOCK}"));
    }
    Ok(())
}

/// Whether the kernel lets no program read its memory, which ours have to.
#[must_use]
pub(crate) fn is_locked_down() -> bool {
    let mode = std::fs::read_to_string("/sys/kernel/security/lockdown");
    let asked = || std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    says_locked_down(mode.ok().as_deref(), asked)
}

/// By the mode, or, where that is not told, by what the kernel was booted with.
fn says_locked_down(mode: Option<&str>, asked: impl FnOnce() -> String) -> bool {
    match mode {
        Some(mode) => mode.contains("[confidentiality]"),
        None => asked()
            .split_whitespace()
            .any(|word| word == "lockdown=confidentiality"),
    }
}

/// One error out of the failures of all tiers.
pub(crate) fn explain(mut reasons: Vec<(Tier, anyhow::Error)>) -> anyhow::Error {
    let refused = reasons.iter().any(|(_, error)| os_error(error) == Some(libc::EPERM));
    let last = reasons
        .pop()
        .map_or_else(|| anyhow::anyhow!("no tier was tried"), |(_, error)| error);
    // libbpf-rs has no kind for it
    if format!("{last:#}").contains("(os error 24)") {
        return last.context("failed to load: too few open files are allowed\nhint: ulimit -n 1024");
    }
    if let Some(missing) = missing_capabilities() {
        // what the kernel answered says no more than that
        return anyhow::anyhow!(
            "tracing needs root, or {missing}\nhint: run with sudo, or: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_lease+ep $(command -v gpuscope)"
        );
    }
    if !has_btf() {
        return last.context(
            "this kernel has no type information (/sys/kernel/btf/vmlinux is absent)\nhint: use a kernel built with CONFIG_DEBUG_INFO_BTF=y (Debian 11+, Ubuntu 20.10+, Fedora, RHEL 8.2+ have it)",
        );
    }
    if is_locked_down() {
        return last.context(format!("{LOCKED_DOWN}\nhint: {UNLOCK}"));
    }
    if refused {
        return last.context("the kernel refused to load the programs\nhint: gpuscope doctor");
    }
    last.context("this kernel cannot run the tracer (Linux 6.1 or newer is needed)\nhint: gpuscope doctor")
}

fn os_error(error: &anyhow::Error) -> Option<i32> {
    error
        .chain()
        .find_map(|cause| cause.downcast_ref::<libbpf_rs::Error>())
        .and_then(errno_of)
}

fn errno_of(error: &libbpf_rs::Error) -> Option<i32> {
    use libbpf_rs::ErrorKind as Kind;
    match error.kind() {
        Kind::PermissionDenied => Some(libc::EPERM),
        Kind::NotFound => Some(libc::ENOENT),
        Kind::InvalidInput => Some(libc::EINVAL),
        _ => None,
    }
}

fn missing_capabilities() -> Option<String> {
    if has("CAP_SYS_ADMIN") {
        return None;
    }
    let missing: Vec<&str> = ["CAP_BPF", "CAP_PERFMON"]
        .into_iter()
        .filter(|name| !has(name))
        .collect();
    (!missing.is_empty()).then(|| missing.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_locked_down_by_its_mode_or_else_by_its_command_line() {
        let asked = || "quiet lockdown=confidentiality".to_owned();
        assert!(says_locked_down(
            Some("none integrity [confidentiality]\n"),
            String::new
        ));
        assert!(!says_locked_down(Some("none [integrity] confidentiality\n"), asked));
        assert!(says_locked_down(None, asked));
        assert!(!says_locked_down(None, String::new));
    }
}
