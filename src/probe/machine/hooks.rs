//! Whether the calls that a CUDA library makes into the NVIDIA driver can be seen.

use super::super::privilege;
use super::Check;
use std::collections::BTreeSet;
use std::path::Path;

const DIRECT: &str = "register_ftrace_direct";
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
    if Path::new("/sys/bus/event_source/devices/kprobe").exists() {
        return Check::ok(NAME, "perf source kprobe");
    }
    let cure = "use a kernel built with CONFIG_KPROBES=y and CONFIG_KPROBE_EVENTS=y";
    Check::limited(
        NAME,
        "this kernel has none: functions inside the NVIDIA driver are not seen",
        cure,
    )
}

/// The kernel says nowhere that it takes such hooks, but it exports the function that they go through.
pub(super) fn fentry() -> Check {
    let symbols = std::fs::read("/proc/kallsyms").unwrap_or_default();
    if symbols.is_empty() {
        return Check::limited("fentry", "not known: /proc/kallsyms cannot be read", "run with sudo");
    }
    judge_fentry(
        &kernel_symbols(&symbols, &[DIRECT, NVIDIA, NVIDIA_OLD]),
        privilege::has_btf(),
        module_described(),
    )
}

fn judge_fentry(symbols: &BTreeSet<&str>, kernel_described: bool, module_described: bool) -> Check {
    const NAME: &str = "fentry";
    if !symbols.contains(DIRECT) || !kernel_described {
        let cure = "use a kernel built with CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS=y and CONFIG_DEBUG_INFO_BTF=y";
        return Check::limited(
            NAME,
            "this kernel has none: functions inside the NVIDIA driver are not seen",
            cure,
        );
    }
    match [NVIDIA, NVIDIA_OLD].into_iter().find(|name| symbols.contains(name)) {
        None => Check::ok(NAME, "the kernel has it; module nvidia is not loaded"),
        Some(name) if module_described => Check::ok(NAME, format!("the kernel has it; {name} can be hooked")),
        Some(name) => {
            let detail = format!("{name} is there, but module nvidia has no type information");
            Check::limited(
                NAME,
                detail,
                "rebuild the module with /sys/kernel/btf/vmlinux at hand, or use kprobes",
            )
        }
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
        let text =
            b"0 T unregister_ftrace_direct\n0 T register_ftrace_direct_x\n0 t nvidia_unlocked_ioctl\t[nvidia]\n\n0 b";
        let found = kernel_symbols(text, &["register_ftrace_direct", "nvidia_unlocked_ioctl"]);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["nvidia_unlocked_ioctl"]);
    }

    #[test]
    fn a_module_without_types_is_named() {
        use super::super::State;
        let with =
            |symbols: &[&'static str], module| judge_fentry(&symbols.iter().copied().collect(), true, module).state;
        assert_eq!(with(&[], false), State::Limited);
        assert_eq!(with(&[DIRECT], false), State::Ok);
        assert_eq!(with(&[DIRECT, NVIDIA], false), State::Limited);
        assert_eq!(with(&[DIRECT, NVIDIA_OLD], true), State::Ok);
    }
}
