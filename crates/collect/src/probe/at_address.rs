//! Probes at addresses of the kernel, for functions of whom several have one name.

use super::Session;
use crate::engine::KernelPoint;
use anyhow::{Context, Result};
use libbpf_rs::{Link, PerfEventOpts, ProgramMut, libbpf_sys as sys};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

const KIND: &str = "/sys/bus/event_source/devices/kprobe/type";
/// In the event's `config`, as `format/retprobe` beside [`KIND`] says.
const AT_RETURN: u64 = 1;

impl Session {
    /// Puts probes at the function of the kernel that begins at `address`.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn attach_kernel_address(&self, address: u64, point: KernelPoint) -> Result<Vec<Link>> {
        let attach = |program: &ProgramMut<'_>, returns| {
            let event =
                event_at(address, returns).with_context(|| format!("the kernel takes no probe at {address:#x}"))?;
            let options = PerfEventOpts {
                cookie: point.cookie(),
                ..Default::default()
            };
            let link = program.attach_perf_event_with_opts(event.as_raw_fd(), options)?;
            let _ = event.into_raw_fd(); // the link closes it
            anyhow::Ok(link)
        };
        let mut links = Vec::new();
        // returns first: a call must not be opened that nothing will close
        if point.returns {
            links.push(attach(&self.skel.progs.kernel_returned, true)?);
        }
        links.push(attach(&self.skel.progs.kernel_entered, false)?);
        Ok(links)
    }
}

fn event_at(address: u64, returns: bool) -> io::Result<OwnedFd> {
    let kind = std::fs::read_to_string(KIND)?;
    let mut wanted = sys::perf_event_attr {
        type_: kind.trim().parse().map_err(io::Error::other)?,
        size: size_of::<sys::perf_event_attr>() as u32,
        config: if returns { AT_RETURN } else { 0 },
        ..Default::default()
    };
    wanted.__bindgen_anon_4.kprobe_addr = address;
    let (any_process, this_cpu, no_group) = (-1, 0, -1);
    // SAFETY: the kernel reads `wanted`, which says how long it is, and keeps nothing of it
    let event = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const wanted,
            any_process,
            this_cpu,
            no_group,
            sys::PERF_FLAG_FD_CLOEXEC,
        )
    };
    if event < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened for us just now
    Ok(unsafe { OwnedFd::from_raw_fd(event as i32) })
}
