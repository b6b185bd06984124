//! Functions of NVIDIA's kernel driver that go together, and their names on the command line.

/// Some functions of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelGroup {
    /// As given to `--kernel`.
    pub name: &'static str,
    /// Its rows, in the form of a hook file.
    pub text: &'static str,
}

/// Every group, by name.
pub const KERNEL_GROUPS: [KernelGroup; 10] = [
    group("context", include_str!("../../catalog/nvidia/hooks/context.toml")),
    group("fault", include_str!("../../catalog/nvidia/hooks/fault.toml")),
    group("interrupt", include_str!("../../catalog/nvidia/hooks/interrupt.toml")),
    group("ioctl", include_str!("../../catalog/nvidia/hooks/ioctl.toml")),
    group("memory", include_str!("../../catalog/nvidia/hooks/memory.toml")),
    group("object", include_str!("../../catalog/nvidia/hooks/object.toml")),
    group("open", include_str!("../../catalog/nvidia/hooks/open.toml")),
    group("power", include_str!("../../catalog/nvidia/hooks/power.toml")),
    group("rpc", include_str!("../../catalog/nvidia/hooks/rpc.toml")),
    group("wait", include_str!("../../catalog/nvidia/hooks/wait.toml")),
];

const fn group(name: &'static str, text: &'static str) -> KernelGroup {
    KernelGroup { name, text }
}
