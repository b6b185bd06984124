//! What NVIDIA has put on this machine: the kernel driver and its libraries.

use super::super::ldcache;
use super::Check;
use crate::device::{Absent, Devices};
use crate::driver::DriverVersion;
use std::path::{Path, PathBuf};

const INSTALL: &str = "install the driver: sudo apt install nvidia-driver (Debian), sudo ubuntu-drivers install (Ubuntu), sudo dnf install nvidia-driver (Fedora, RHEL)";

pub(super) fn driver() -> Check {
    const NAME: &str = "nvidia driver";
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok();
    let version = text.as_deref().and_then(DriverVersion::parse);
    if let (Some(found), Some(version)) = (text.as_deref().and_then(parse), version) {
        let found = format!("{found}, {} GPUs", gpus());
        let branch = version.dialect.branch;
        return match version.dialect.certain {
            true => Check::ok(
                NAME,
                format!("{found}, ioctls decoded by the tables of branch {branch}"),
            ),
            false => Check::limited(
                NAME,
                format!(
                    "{found}; its ioctls are decoded by the tables of branch {branch}, and what does not fit is shown as numbers"
                ),
                "a newer gpuscope, if there is one",
            ),
        };
    }
    if text.is_some() {
        return Check::ok(NAME, "loaded, of a version that is not understood");
    }
    if Path::new("/dev/dxg").exists() {
        let cure = "trace without --layer kernel";
        return Check::limited(
            NAME,
            "Windows owns it (/dev/dxg): calls into the kernel are not seen",
            cure,
        );
    }
    Check::missing(
        NAME,
        "/proc/driver/nvidia/version is absent: no GPU can be used here",
        INSTALL,
    )
}

fn gpus() -> usize {
    std::fs::read_dir("/proc/driver/nvidia/gpus").map_or(0, |entries| entries.flatten().count())
}

const NVML: &str = "nvml";

/// Version and kind of module from the line that begins with `NVRM version:`.
fn parse(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("NVRM version:"))?;
    let is_version = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    let version = line.split_whitespace().find(is_version)?;
    let kind = if line.contains("Open Kernel Module") {
        "open"
    } else {
        "proprietary"
    };
    Some(format!("{version}, {kind} kernel module"))
}

pub(super) fn driver_library() -> Check {
    const NAME: &str = "libcuda";
    let found = ldcache::find(&|name| name == "libcuda.so.1");
    if found.is_empty() {
        return Check::missing(
            NAME,
            "not on the library path: no CUDA program runs outside a container",
            INSTALL,
        );
    }
    Check::ok(NAME, listed(&found))
}

pub(super) fn runtime_library() -> Check {
    let found = ldcache::find(&|name| name.starts_with("libcudart.so."));
    let none = "not on the library path; copies that programs bring along (pip, conda, static) are traced too";
    Check::ok(
        "libcudart",
        if found.is_empty() {
            none.to_owned()
        } else {
            listed(&found)
        },
    )
}

pub(super) fn management_library() -> Check {
    match Devices::open() {
        Ok(devices) => managed(&devices),
        Err(absent) => unmanaged(&absent),
    }
}

fn managed(devices: &Devices) -> Check {
    let versions = devices.versions();
    let found = devices.list();
    let parts: usize = found.items.iter().map(|device| device.parts().len()).sum();
    let mut detail = format!("{} GPUs", found.items.len());
    if parts > 0 {
        detail += &format!(", {parts} MIG devices");
    }
    for (what, version) in [("NVML", versions.nvml), ("driver", versions.driver)] {
        detail += &version.map_or_else(String::new, |version| format!(", {what} {version}"));
    }
    if found.notes.is_empty() {
        return Check::ok(NVML, detail);
    }
    Check::limited(
        NVML,
        format!("{detail}; {}", found.notes.join("; ")),
        "nvidia-smi shows whether the driver works",
    )
}

fn unmanaged(absent: &Absent) -> Check {
    let lost = "no GPU names, memory totals or utilisation";
    Check::limited(NVML, format!("{}: {lost}", absent.why()), absent.hint())
}

fn listed(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_driver_are_read() {
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  Release Build  (dvs@x)  Sun\nGCC version:  gcc 12.3.0\n";
        assert_eq!(parse(open).as_deref(), Some("570.133.20, open kernel module"));
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.261.03  Fri Jul\n";
        assert_eq!(parse(closed).as_deref(), Some("535.261.03, proprietary kernel module"));
        assert_eq!(parse("GCC version:  gcc 12.3.0\n"), None);
    }
}
