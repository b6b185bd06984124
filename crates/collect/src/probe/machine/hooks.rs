//! Whether the calls that a CUDA library makes into the NVIDIA driver can be seen.

use super::super::kernel::{Types, lists, ways};
use super::super::privilege;
use super::Check;
use std::collections::BTreeSet;
use std::path::Path;

const NVIDIA: &str = "nvidia_unlocked_ioctl";
/// Its name in driver 535 and older.
const NVIDIA_OLD: &str = "nvidia_frontend_unlocked_ioctl";

pub(super) fn syscall_tracepoints() -> Check {
    const NAME: &str = "syscall tracepoints";
    const CURE: &str = "sudo mount -t tracefs nodev /sys/kernel/tracing";
    let roots = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let readable = |root: &str, what: &str| Path::new(root).join(what).exists();
    if let Some(root) = roots
        .into_iter()
        .find(|root| readable(root, "events/syscalls/sys_enter_ioctl"))
    {
        return Check::ok(NAME, format!("{root}/events/syscalls"));
    }
    if roots.into_iter().any(|root| readable(root, "events")) {
        let cure = "use a kernel built with CONFIG_FTRACE_SYSCALLS=y";
        return Check::limited(
            NAME,
            "tracefs has no events/syscalls: no calls into the NVIDIA driver",
            cure,
        );
    }
    if !privilege::has("CAP_DAC_READ_SEARCH") {
        return Check::limited(
            NAME,
            "tracefs cannot be read without CAP_DAC_READ_SEARCH",
            "run with sudo",
        );
    }
    Check::limited(
        NAME,
        "tracefs is not mounted: no calls into the NVIDIA driver (--layer kernel)",
        CURE,
    )
}

pub(super) fn kprobes() -> Check {
    const NAME: &str = "kprobes";
    let Err(why) = lists::kprobes() else {
        return Check::ok(NAME, "perf source kprobe");
    };
    let (why, cure) = why.split_once("; hint: ").unwrap_or((&why, "use fentry"));
    Check::limited(NAME, why, cure)
}

/// The kernel says nowhere that it takes such hooks, so one is tried.
pub(super) fn fentry() -> Check {
    let tried = ways::fentry(&Types::read());
    let symbols = std::fs::read("/proc/kallsyms").unwrap_or_default();
    judge_fentry(
        tried,
        &kernel_symbols(&symbols, &[NVIDIA, NVIDIA_OLD]),
        module_described(),
    )
}

fn judge_fentry(tried: Result<(), String>, symbols: &BTreeSet<&str>, module_described: bool) -> Check {
    const NAME: &str = "fentry";
    if let Err(why) = tried {
        let (why, cure) = why.split_once("; hint: ").unwrap_or((&why, "use kprobes"));
        return Check::limited(NAME, why, cure);
    }
    match [NVIDIA, NVIDIA_OLD].into_iter().find(|name| symbols.contains(name)) {
        None => Check::ok(NAME, "loads and attaches; module nvidia is not loaded"),
        Some(name) if module_described => Check::ok(NAME, format!("loads and attaches; {name} can be hooked")),
        Some(name) => Check::limited(
            NAME,
            format!("loads and attaches, but not at {name}: module nvidia has no type information"),
            "rebuild the module with /sys/kernel/btf/vmlinux at hand, or use kprobes",
        ),
    }
}

fn module_described() -> bool {
    Path::new("/sys/kernel/btf/nvidia").exists()
}

/// Which of `wanted` the text of `/proc/kallsyms` names.
fn kernel_symbols<'a>(symbols: &[u8], wanted: &[&'a str]) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    for line in symbols.split(|byte| *byte == b'\n') {
        let name = line.split(u8::is_ascii_whitespace).nth(2).unwrap_or_default();
        found.extend(wanted.iter().copied().find(|wanted| wanted.as_bytes() == name));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_symbols_are_whole_words() {
        let text = b"0 T nvidia_unlocked_ioctl_x\n0 t nvidia_unlocked_ioctl\t[nvidia]\n\n0 b";
        let found = kernel_symbols(text, &["nvidia_unlocked_ioctl", "x"]);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["nvidia_unlocked_ioctl"]);
    }

    #[test]
    fn a_module_without_types_is_named() {
        use super::super::State;
        let with =
            |symbols: &[&'static str], module| judge_fentry(Ok(()), &symbols.iter().copied().collect(), module).state;
        assert_eq!(with(&[], false), State::Ok);
        assert_eq!(with(&[NVIDIA], false), State::Limited);
        assert_eq!(with(&[NVIDIA_OLD], true), State::Ok);
    }

    #[test]
    fn a_refusal_comes_with_its_own_cure() {
        let check = judge_fentry(Err("refused; hint: run with sudo".to_owned()), &BTreeSet::new(), false);
        assert_eq!(
            (check.detail.as_str(), check.cure.as_deref()),
            ("refused", Some("run with sudo"))
        );
    }
}
