//! Compiles `src/bpf/calls.bpf.c` and generates its skeleton, which only `probe` includes; and the agent out of `src/agent/`,
//! a library that needs no other, which `inside` carries; and out of `src/activity/` what CUDA loads.
use libbpf_cargo::SkeletonBuilder;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "src/bpf/calls.bpf.c";

fn main() {
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-changed=src/agent");
    println!("cargo:rerun-if-changed=src/activity");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let built = SkeletonBuilder::new()
        .source(SOURCE)
        .obj(out.join("calls.bpf.o"))
        .clang_args(clang_arguments())
        .build_and_generate(out.join("calls.skel.rs"));
    if let Err(error) = built {
        panic!("failed to build {SOURCE}: {error:#}\nhint: install clang (apt install clang, dnf install clang)");
    }
    let build = digest_of(&["src/agent", "src/bpf"]);
    println!("cargo:rustc-env=GPUSCOPE_AGENT_BUILD={build}");
    let agent = out.join("libgpuscope_agent.so");
    if target() == "x86_64" {
        let options = format!("{AGENT} -DAGENT_BUILD={build}ull");
        build_library(&agent, &options, &["src/agent/agent.c", "src/agent/enter.S"]);
    } else if let Err(error) = std::fs::write(&agent, []) {
        panic!("failed to write {}: {error}", agent.display());
    }
    build_library(
        &out.join("libgpuscope_activity.so"),
        ACTIVITY,
        &["src/activity/activity.c"],
    );
}

/// The agent touches no vector register, has its thread's words where no call is needed to find them, and asks nobody for a
/// function.
const AGENT: &str = "-O2 -fPIC -ffreestanding -fno-strict-aliasing -fno-stack-protector -fvisibility=hidden \
    -mgeneral-regs-only -ftls-model=initial-exec -Wall -Wextra -Werror -Wno-unused-parameter -Wno-unused-function \
    -Wno-ignored-attributes -Wno-unknown-attributes -Isrc/agent/shim -Isrc/agent -Isrc/bpf -shared -nostdlib \
    -Wl,-z,initfirst,-z,now,-z,relro,-z,noseparate-code,-z,noexecstack,-z,shstk,--hash-style=gnu,-soname,libgpuscope_agent.so";

/// What CUDA loads needs glibc, of any version; where that had libraries for threads and for loading, it needs these, too.
const ACTIVITY: &str = "-O2 -fPIC -fvisibility=hidden -Wall -Wextra -Werror -Wno-unused-parameter -shared \
    -Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 \
    -Wl,-z,now,-z,relro,-z,noexecstack,-z,nodelete,--hash-style=gnu,-soname,libgpuscope_activity.so";

/// The processor that is built for, as Rust calls it.
fn target() -> String {
    std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default()
}

fn build_library(to: &Path, options: &str, sources: &[&str]) {
    let clang = std::env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let built = Command::new(&clang)
        .args(sources)
        .args(options.split_whitespace())
        .arg(format!("--target={}-linux-gnu", target()))
        .arg("-o")
        .arg(to)
        .status();
    let hint = "hint: install clang (apt install clang, dnf install clang)";
    match built {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("failed to build {sources:?}: {clang:?}: {status}"),
        Err(error) => panic!("failed to build {sources:?}: {clang:?}: {error}\n{hint}"),
    }
}

/// What tells an agent of these sources from one of others, FNV-1a: a program may carry one for months.
fn digest_of(folders: &[&str]) -> u64 {
    let mut files = BTreeMap::new();
    for folder in folders {
        collect(Path::new(folder), &mut files);
    }
    let bytes = files
        .iter()
        .flat_map(|(path, text)| path.as_os_str().as_encoded_bytes().iter().chain(text));
    bytes.fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("failed to read {}: {error}", folder.display()));
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.insert(path.clone(), std::fs::read(&path).unwrap_or_default());
        }
    }
}

/// Debian keeps `asm/types.h` in a directory of its own, which clang's bpf target does not search; another processor's, in
/// that of its cross compiler. Lines of the programs are named by
/// their place in the crate, so that the object is the same wherever it is built.
fn clang_arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
        .map(Into::into)
        .into();
    let triple = format!("{}-linux-gnu", target());
    let folders = [format!("/usr/include/{triple}"), format!("/usr/{triple}/include")];
    if let Some(folder) = folders.iter().find(|folder| Path::new(folder).is_dir()) {
        arguments.extend(["-isystem".into(), folder.into()]);
    }
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    arguments.push(format!("-ffile-prefix-map={here}=gpuscope-collect").into());
    arguments
}
