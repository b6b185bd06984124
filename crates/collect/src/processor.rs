//! What the processor that this program is built for decides of names and formats: how files are marked, where libraries lie.
//!
//! How it hands over arguments is said by the catalogue's `Convention` and, for the kernel programs, by `registers.bpf.h`; what its
//! instructions are, by [`crate::elf`].

use object::elf;

/// One kind of processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Processor {
    /// As it is called in messages.
    pub name: &'static str,
    /// `e_machine` of its files.
    pub machine: u16,
    /// As filters of system calls are told of it, `AUDIT_ARCH_…`.
    pub audit: u32,
    /// The file of glibc's dynamic linker.
    pub linker: &'static str,
    /// Where dynamic linkers lie.
    pub linkers: [&'static str; 3],
    /// Where CUDA's libraries and the driver's lie without the dynamic linker's knowledge of it.
    pub libraries: [&'static str; 9],
    /// Where the driver's do, written by root alone.
    pub driver_libraries: [&'static str; 5],
    /// A relocation by where the file was loaded; the address of a symbol, in a table and in data.
    pub relative: u32,
    pub symbol_in_table: u32,
    pub symbol_in_data: u32,
}

macro_rules! libraries {
    ($multiarch:literal, $target:literal) => {
        [
            "/usr/local/cuda/lib64",
            concat!("/usr/local/cuda/targets/", $target, "/lib"),
            "/opt/cuda/lib64",
            concat!("/usr/lib/", $multiarch),
            "/usr/lib64",
            "/usr/local/nvidia/lib64",
            "/usr/lib/wsl/lib",
            "/run/opengl-driver/lib",
            concat!("/run/nvidia/driver/usr/lib/", $multiarch),
        ]
    };
}

macro_rules! driver_libraries {
    ($multiarch:literal) => {
        [
            concat!("/usr/lib/", $multiarch),
            "/usr/local/nvidia/lib64",
            "/usr/lib/wsl/lib",
            "/run/opengl-driver/lib",
            concat!("/run/nvidia/driver/usr/lib/", $multiarch),
        ]
    };
}

#[cfg(not(target_arch = "aarch64"))]
pub(crate) const HERE: Processor = Processor {
    name: "x86-64",
    machine: elf::EM_X86_64,
    audit: 0xc000_003e,
    linker: "ld-linux-x86-64.so.2",
    linkers: [
        "/lib64/ld-linux-x86-64.so.2",
        "/lib/ld-linux-x86-64.so.2",
        "/lib/ld-musl-x86_64.so.1",
    ],
    libraries: libraries!("x86_64-linux-gnu", "x86_64-linux"),
    driver_libraries: driver_libraries!("x86_64-linux-gnu"),
    relative: elf::R_X86_64_RELATIVE,
    symbol_in_table: elf::R_X86_64_GLOB_DAT,
    symbol_in_data: elf::R_X86_64_64,
};

#[cfg(target_arch = "aarch64")]
pub(crate) const HERE: Processor = Processor {
    name: "aarch64",
    machine: elf::EM_AARCH64,
    audit: 0xc000_00b7,
    linker: "ld-linux-aarch64.so.1",
    linkers: [
        "/lib/ld-linux-aarch64.so.1",
        "/lib64/ld-linux-aarch64.so.1",
        "/lib/ld-musl-aarch64.so.1",
    ],
    libraries: libraries!("aarch64-linux-gnu", "sbsa-linux"),
    driver_libraries: driver_libraries!("aarch64-linux-gnu"),
    relative: elf::R_AARCH64_RELATIVE,
    symbol_in_table: elf::R_AARCH64_GLOB_DAT,
    symbol_in_data: elf::R_AARCH64_ABS64,
};

/// Whether programs of it can be traced from inside.
pub(crate) const HAS_AGENT: bool = cfg!(not(target_arch = "aarch64"));
