//! System calls on the devices of NVIDIA's kernel driver: what to copy of them, the tracepoints, and what they took.
//!
//! Owns what the driver's version is on this machine. What its calls mean is the business of [`crate::driver`].

use super::Setup;
use super::links::hooks;
use super::session::in_kernel;
use super::skeleton::OpenCallsSkel;
use crate::driver::request::Majors;
use crate::driver::{Dialect, DriverRows, DriverVersion, plan};
use crate::engine::{Engine, Hooks};
use crate::wire::bytes_of;
use anyhow::{Context, Result};
use libbpf_rs::{Link, MapCore, MapFlags, ProgramMut};
use std::path::Path;

const VERSION_FILES: [&str; 2] = ["/proc/driver/nvidia/version", "/sys/module/nvidia/version"];
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"];

/// The version of the driver that is loaded; `None`: none is.
#[must_use]
pub(crate) fn version() -> Option<DriverVersion> {
    let texts = VERSION_FILES
        .into_iter()
        .filter_map(|file| std::fs::read_to_string(file).ok());
    texts.into_iter().find_map(|text| DriverVersion::parse(&text))
}

/// The tables that fit it.
#[must_use]
pub fn dialect() -> Dialect {
    version().map_or_else(Dialect::unknown, |version| version.dialect)
}

/// Why the tracepoints of system calls cannot be reached.
#[must_use]
pub(crate) fn refused() -> Option<String> {
    let folder = TRACEFS.into_iter().find(|folder| Path::new(folder).exists());
    let Some(folder) = folder else {
        return Some(
            "system calls cannot be traced: tracefs is not mounted\nhint: mount -t tracefs nodev /sys/kernel/tracing"
                .to_owned(),
        );
    };
    let found = Path::new(folder).join("syscalls/sys_enter_ioctl").exists();
    (!found).then(|| {
        "system calls cannot be traced: this kernel has no tracepoints of them (CONFIG_FTRACE_SYSCALLS)".to_owned()
    })
}

/// A row that no table has.
const NO_ROW: u32 = u32::MAX;

/// Has the programs loaded that follow the driver's calls: ioctls, and of chosen processes the other system calls.
pub(super) fn prepare(open: &mut OpenCallsSkel<'_>, setup: &Setup) {
    let progs = &mut open.progs;
    let (ioctl, each) = (setup.driver.is_some(), setup.only_targets);
    progs.ioctl_entered.set_autoload(ioctl);
    progs.ioctl_left.set_autoload(ioctl);
    let others = [
        &mut progs.open_entered,
        &mut progs.open_left,
        &mut progs.openat_entered,
        &mut progs.openat_left,
        &mut progs.close_entered,
        &mut progs.close_left,
        &mut progs.mmap_entered,
        &mut progs.mmap_left,
        &mut progs.poll_entered,
        &mut progs.poll_left,
        &mut progs.ppoll_entered,
        &mut progs.ppoll_left,
    ];
    for program in others {
        program.set_autoload(ioctl && each);
    }
    let Some((rows, data)) = setup.driver.zip(open.maps.rodata_data.as_deref_mut()) else {
        return;
    };
    let traced = |row: u32| {
        if setup.driver_left_out.contains(&row) {
            NO_ROW
        } else {
            row
        }
    };
    data.options.every_frame = 1;
    data.options.uvm_row = traced(rows.unknown(true));
    for (step, row) in data.options.driver_row.iter_mut().enumerate() {
        *row = traced(rows.of_step(step as u8));
    }
}

impl dyn Engine {
    /// Says what to copy of the driver's calls. `selected`: rows that are traced.
    ///
    /// # Errors
    /// The tables are full.
    pub fn set_driver_plans(&self, rows: &DriverRows, selected: &dyn Fn(u32) -> bool) -> Result<()> {
        let session = in_kernel(self)?;
        for (key, plan) in plan::plans(rows, selected) {
            let map = &session.skel.maps.ioctl_plans;
            map.update(bytes_of(&key), bytes_of(&plan), MapFlags::ANY)
                .with_context(|| format!("failed to store what to copy of ioctl {:#x}", key.nr))?;
        }
        for (class, piece) in plan::classes() {
            let map = &session.skel.maps.ioctl_classes;
            map.update(&class.to_ne_bytes(), bytes_of(&piece), MapFlags::ANY)
                .with_context(|| format!("failed to store what to copy of class {class:#x}"))?;
        }
        Ok(())
    }

    /// Follows ioctls and, with `each`, the other system calls. Calls that this machine does not have are left out.
    ///
    /// # Errors
    /// The kernel refuses; says why.
    pub fn attach_driver(&self, each: bool) -> Result<Hooks> {
        if let Some(reason) = refused() {
            anyhow::bail!(reason);
        }
        let progs = &in_kernel(self)?.skel.progs;
        let mut links = vec![
            attach(&progs.ioctl_left, "sys_exit_ioctl")?,
            attach(&progs.ioctl_entered, "sys_enter_ioctl")?,
        ];
        let others: [(&ProgramMut<'_>, &str); 12] = [
            (&progs.open_left, "sys_exit_open"),
            (&progs.open_entered, "sys_enter_open"),
            (&progs.openat_left, "sys_exit_openat"),
            (&progs.openat_entered, "sys_enter_openat"),
            (&progs.close_left, "sys_exit_close"),
            (&progs.close_entered, "sys_enter_close"),
            (&progs.mmap_left, "sys_exit_mmap"),
            (&progs.mmap_entered, "sys_enter_mmap"),
            (&progs.poll_left, "sys_exit_poll"),
            (&progs.poll_entered, "sys_enter_poll"),
            (&progs.ppoll_left, "sys_exit_ppoll"),
            (&progs.ppoll_entered, "sys_enter_ppoll"),
        ];
        for (program, name) in others.into_iter().filter(|_| each) {
            // some architectures have no open and no poll
            if has_tracepoint(name) {
                links.push(attach(program, name)?);
            }
        }
        Ok(hooks(links))
    }

    /// Looks up the numbers of UVM's devices, which change when its module is loaded.
    pub fn look_up_uvm(&self) {
        let devices = std::fs::read_to_string("/proc/devices").unwrap_or_default();
        let major = Majors::parse(&devices).uvm;
        if let Ok(session) = in_kernel(self) {
            session.control.set_uvm_major(major.unwrap_or(0));
        }
    }
}

fn has_tracepoint(name: &str) -> bool {
    let mut folders = TRACEFS.into_iter().map(Path::new);
    folders.any(|folder| folder.join("syscalls").join(name).exists())
}

fn attach(program: &ProgramMut<'_>, name: &str) -> Result<Link> {
    program
        .attach_tracepoint(libbpf_rs::TracepointCategory::Syscalls, name)
        .with_context(|| format!("failed to attach to tracepoint syscalls:{name}"))
}
