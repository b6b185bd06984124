//! Compiles what of the agent is fuzzed. Where this is built with libFuzzer's instrumentation, that is, too.

use std::path::Path;
use std::process::Command;

const AGENT: &str = "../crates/collect/src/agent";
const BPF: &str = "../crates/collect/src/bpf";
const SOURCE: &str = "src/inside/agent.c";

fn main() {
    for path in [AGENT, BPF, SOURCE] {
        println!("cargo:rerun-if-changed={path}");
    }
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("x86_64") {
        return;
    }
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    let object = Path::new(&out).join("agent.o");
    let clang = std::env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let mut command = Command::new(clang);
    command
        .args([
            "-c",
            "-O2",
            "-fPIC",
            "-ffreestanding",
            "-fno-strict-aliasing",
            "-fno-stack-protector",
        ])
        .args([
            "-mgeneral-regs-only",
            "-ftls-model=initial-exec",
            "-Wall",
            "-Wextra",
            "-Werror",
        ])
        .args([
            "-Wno-unused-parameter",
            "-Wno-unused-function",
            "-Wno-ignored-attributes",
            "-Wno-unknown-attributes",
        ])
        // those of the agent would be everybody's here
        .args([
            "-Dmemcpy=agent_memcpy",
            "-Dmemset=agent_memset",
            "-Dmemcmp=agent_memcmp",
        ])
        .args([format!("-I{AGENT}/shim"), format!("-I{AGENT}"), format!("-I{BPF}")])
        .arg(SOURCE)
        .arg("-o")
        .arg(&object);
    if std::env::var_os("CARGO_CFG_FUZZING").is_some() {
        command.arg("-fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp");
    }
    let built = command.status();
    assert!(
        built.as_ref().is_ok_and(std::process::ExitStatus::success),
        "failed to compile {SOURCE}: {built:?}\nhint: install clang"
    );
    println!("cargo:rustc-link-arg={}", object.display());
}
