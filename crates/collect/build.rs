//! Compiles `src/bpf/calls.bpf.c` and generates its skeleton, which only `probe` includes.
use libbpf_cargo::SkeletonBuilder;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const SOURCE: &str = "src/bpf/calls.bpf.c";

fn main() {
    println!("cargo:rerun-if-changed=src/bpf");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let built = SkeletonBuilder::new()
        .source(SOURCE)
        .obj(out.join("calls.bpf.o"))
        .clang_args(clang_arguments())
        .build_and_generate(out.join("calls.skel.rs"));
    if let Err(error) = built {
        panic!("failed to build {SOURCE}: {error:#}\nhint: install clang (apt install clang, dnf install clang)");
    }
}

/// Debian keeps `asm/types.h` in a directory of its own, which clang's bpf target does not search.
fn clang_arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
        .map(Into::into)
        .into();
    let multiarch = Path::new("/usr/include/x86_64-linux-gnu");
    if multiarch.is_dir() {
        arguments.extend(["-isystem".into(), multiarch.into()]);
    }
    arguments
}
