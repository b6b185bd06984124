//! Programs that a function of the kernel calls at its entry and return (fentry, fexit).
//!
//! Owns their loading: such a program is loaded for one function, so each is a copy of one in the BPF object, with which
//! it shares all tables. Which function gets one is the business of [`super::kernel::ways`].

use super::privilege;
use super::skeleton::CallsSkel;
use crate::engine::KernelPoint;
use anyhow::{Context, Result};
use libbpf_rs::{AsRawLibbpf, ProgramMut, libbpf_sys as sys};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// In every kernel that can run programs, for its own tests of this.
pub(super) const TRIAL: &str = "bpf_fentry_test1";
const LICENSE: &std::ffi::CStr = c"Dual BSD/GPL";

/// A function of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Its number in the type information of the kernel, or of the module.
    pub function: u32,
    /// The module that it is of.
    pub module: Option<String>,
}

/// The programs of one function; dropping them takes them away.
#[derive(Debug)]
pub(crate) struct Trampoline {
    entered: Attached,
    returned: Option<Attached>,
}

#[derive(Debug)]
struct Attached {
    _link: OwnedFd,
    program: OwnedFd,
}

/// What the kernel did not run a function's programs for, because another thread or an interrupt was within the same program
/// on that CPU; whoever called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Missed {
    /// These calls are not known at all.
    pub entries: u64,
    /// Of calls that are not known to have returned, where their entry was seen.
    pub returns: u64,
}

impl std::ops::AddAssign for Missed {
    fn add_assign(&mut self, other: Missed) {
        self.entries += other.entries;
        self.returns += other.returns;
    }
}

impl Trampoline {
    #[must_use]
    pub(crate) fn missed(&self) -> Missed {
        let missed = |attached: &Attached| missed_by(attached.program.as_raw_fd());
        Missed {
            entries: missed(&self.entered),
            returns: self.returned.as_ref().map_or(0, missed),
        }
    }
}

/// Calls that the kernel did not run a program for; 0 where it does not say.
pub(super) fn missed_by(program: RawFd) -> u64 {
    let mut info = sys::bpf_prog_info::default();
    let mut length = size_of_val(&info) as u32;
    // SAFETY: `info` holds `length` bytes, and names no buffers
    let said = unsafe { sys::bpf_prog_get_info_by_fd(program, &raw mut info, &raw mut length) };
    if said == 0 { info.recursion_misses } else { 0 }
}

/// Loads and attaches a program that does nothing to [`TRIAL`], by its number in the type information of the kernel; says why
/// that cannot be.
///
/// # Errors
/// The kernel, or our privileges, do not allow it.
pub(crate) fn trial(function: u32) -> Result<(), String> {
    // asks for its cookie, as ours do, which Linux 5.19 has given such programs
    let code = [
        instruction(sys::BPF_JMP | sys::BPF_CALL, sys::BPF_FUNC_get_attach_cookie as i32),
        instruction(sys::BPF_ALU64 | sys::BPF_MOV, 0),
        instruction(sys::BPF_JMP | sys::BPF_EXIT, 0),
    ];
    let options = sys::bpf_prog_load_opts {
        sz: size_of::<sys::bpf_prog_load_opts>() as _,
        expected_attach_type: sys::BPF_TRACE_FENTRY,
        attach_btf_id: function,
        ..Default::default()
    };
    let tried = load(c"trial", &code, options).and_then(|program| link(&program, sys::BPF_TRACE_FENTRY, 0));
    tried.map(drop).map_err(|error| refusal(&error))
}

fn instruction(code: u32, immediate: i32) -> sys::bpf_insn {
    sys::bpf_insn {
        code: code as u8,
        imm: immediate,
        ..Default::default()
    }
}

fn refusal(error: &io::Error) -> String {
    let may = |name| privilege::has(name) || privilege::has("CAP_SYS_ADMIN");
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) if may("CAP_BPF") && may("CAP_PERFMON") => {
            "this kernel refuses it to anyone; hint: see what locks it down: cat /sys/kernel/security/lsm".to_owned()
        }
        Some(libc::EPERM | libc::EACCES) => "needs CAP_BPF and CAP_PERFMON; hint: run with sudo".to_owned(),
        Some(libc::EINVAL) => "not in this kernel; hint: use Linux 5.19 or newer".to_owned(),
        _ => {
            format!("not in this kernel ({error}); hint: use one built with CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS=y")
        }
    }
}

/// Has `target` call the programs of `skel`.
///
/// # Errors
/// The kernel refuses.
pub(super) fn attach(skel: &CallsSkel<'_>, target: &Target, point: KernelPoint) -> Result<Trampoline> {
    let types = target.module.as_deref().map(module_types).transpose();
    let types = types.context("the type information of its module is not given to us; hint: run with sudo")?;
    let attach = |template: &ProgramMut<'_>, kind| {
        let program = copy_of(skel, template, kind, target.function, types.as_ref())?;
        let link = link(&program, kind, point.cookie()).context("the function takes no program")?;
        anyhow::Ok(Attached { _link: link, program })
    };
    let programs = &skel.progs;
    // returns first: a call must not be opened that nothing will close
    let returned = point
        .returns
        .then(|| attach(&programs.trampoline_returned, sys::BPF_TRACE_FEXIT));
    Ok(Trampoline {
        returned: returned.transpose()?,
        entered: attach(&programs.trampoline_entered, sys::BPF_TRACE_FENTRY)?,
    })
}

/// A copy of a loaded program, for another function.
fn copy_of(
    skel: &CallsSkel<'_>,
    template: &ProgramMut<'_>,
    kind: sys::bpf_attach_type,
    function: u32,
    types: Option<&OwnedFd>,
) -> Result<OwnedFd> {
    use libbpf_rs::skel::Skel;
    let program = template.as_libbpf_object().as_ptr();
    let object = skel.object().as_libbpf_object();
    // SAFETY: the object and its program live as long as the skeleton; what they hand out is theirs
    let options = unsafe {
        sys::bpf_prog_load_opts {
            sz: size_of::<sys::bpf_prog_load_opts>() as _,
            expected_attach_type: kind,
            attach_btf_id: function,
            attach_btf_obj_fd: types.map_or(0, |types| types.as_raw_fd() as u32),
            prog_btf_fd: sys::bpf_object__btf_fd(object.as_ptr()) as u32,
            func_info: sys::bpf_program__func_info(program).cast(),
            func_info_cnt: sys::bpf_program__func_info_cnt(program),
            func_info_rec_size: size_of::<sys::bpf_func_info>() as u32,
            line_info: sys::bpf_program__line_info(program).cast(),
            line_info_cnt: sys::bpf_program__line_info_cnt(program),
            line_info_rec_size: size_of::<sys::bpf_line_info>() as u32,
            ..Default::default()
        }
    };
    load(c"gpuscope", template.insns(), options).context("the kernel takes no program for this function")
}

fn load(name: &std::ffi::CStr, code: &[sys::bpf_insn], mut options: sys::bpf_prog_load_opts) -> io::Result<OwnedFd> {
    // SAFETY: the texts end with 0, the code is as long as said, and all that `options` names outlives the call
    let loaded = unsafe {
        sys::bpf_prog_load(
            sys::BPF_PROG_TYPE_TRACING,
            name.as_ptr(),
            LICENSE.as_ptr(),
            code.as_ptr(),
            code.len() as _,
            &raw mut options,
        )
    };
    owned(loaded)
}

fn link(program: &OwnedFd, kind: sys::bpf_attach_type, cookie: u64) -> io::Result<OwnedFd> {
    let mut options = sys::bpf_link_create_opts {
        sz: size_of::<sys::bpf_link_create_opts>() as _,
        ..Default::default()
    };
    options.__bindgen_anon_1.tracing.cookie = cookie;
    // SAFETY: `options` outlives the call; target 0 is the function that the program was loaded for
    owned(unsafe { sys::bpf_link_create(program.as_raw_fd(), 0, kind, &raw const options) })
}

/// A handle of the type information of module `name`.
fn module_types(name: &str) -> Result<OwnedFd> {
    let mut id = 0;
    loop {
        // SAFETY: `id` is a number of ours
        if unsafe { sys::bpf_btf_get_next_id(id, &raw mut id) } != 0 {
            return Err(io::Error::last_os_error()).with_context(|| format!("failed to find module {name}"));
        }
        // SAFETY: takes a number
        let types = match owned(unsafe { sys::bpf_btf_get_fd_by_id(id) }) {
            // gone meanwhile
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => continue,
            types => types.with_context(|| format!("failed to open module {name}"))?,
        };
        if name_of_types(&types) == name.as_bytes() {
            return Ok(types);
        }
    }
}

/// Empty where the kernel does not say.
fn name_of_types(types: &OwnedFd) -> Vec<u8> {
    let mut name = vec![0u8; 64];
    let mut info = sys::bpf_btf_info {
        name: name.as_mut_ptr() as u64,
        name_len: name.len() as u32,
        ..Default::default()
    };
    let mut length = size_of_val(&info) as u32;
    // SAFETY: `info` holds `length` bytes and names a buffer of `name_len` bytes, which outlives the call
    let said = unsafe { sys::bpf_btf_get_info_by_fd(types.as_raw_fd(), &raw mut info, &raw mut length) };
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    name.truncate(if said == 0 { end } else { 0 });
    name
}

/// A descriptor that libbpf has returned, or the error that it stands for.
fn owned(descriptor: RawFd) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(-descriptor));
    }
    // SAFETY: it was opened for us just now
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
