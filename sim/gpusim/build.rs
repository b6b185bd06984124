//! Compiles the C parts, and links one program to the shared runtime.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

const SOURCES: [&str; 3] = ["kernels", "escape", "leak"];

fn main() -> Result<(), Box<dyn Error>> {
    let out = env::var("OUT_DIR")?;
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let archive = format!("{out}/libgpusim_c.a");
    let _ = fs::remove_file(&archive);
    let mut objects = Vec::new();
    for name in SOURCES {
        let source = format!("c/{name}.c");
        let object = format!("{out}/{name}.o");
        println!("cargo:rerun-if-changed={source}");
        let flags = [
            "-O1",
            "-fPIE",
            "-fvisibility=hidden",
            "-fno-omit-frame-pointer",
            "-Wall",
            "-Wextra",
            "-pthread",
        ];
        run(Command::new(&compiler).args(flags).args(["-c", &source, "-o", &object]))?;
        objects.push(object);
    }
    run(Command::new("ar").arg("crs").arg(&archive).args(&objects))?;
    println!("cargo:rustc-link-search=native={out}");
    println!("cargo:rustc-link-lib=static=gpusim_c");

    // build.sh sets this to where it put the libraries.
    println!("cargo:rerun-if-env-changed=GPUSIM_LINK_DIR");
    let libraries = env::var("GPUSIM_LINK_DIR").unwrap_or_else(|_| "../out".into());
    let runtime = fs::canonicalize(Path::new(&libraries).join("libcudart.so.13"))?;
    println!("cargo:rustc-link-arg-bin=gpusim={}", runtime.display());
    println!("cargo:rustc-link-arg-bins=-Wl,-rpath,$ORIGIN,--enable-new-dtags");
    Ok(())
}

fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = command.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{command:?} failed").into())
    }
}
