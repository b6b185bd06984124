// Build-script code shared by the libraries that export a long list of functions.
//
// `symbols.txt` names every function the real library exports. Those written by hand are the
// ones introduced by `fn NAME(` or `fn NAME / TWIN(` in the sources; each other one becomes a stub that answers
// NOT_SUPPORTED. A number after a name is the first CUDA version with that variant, as
// cuGetProcAddress counts versions. The generated file also holds what the ledger needs: a number
// per name.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::{env, fs, path::Path};

pub fn generate(soname: &str) -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{soname}");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN");
    println!("cargo:rerun-if-changed=symbols.txt");
    println!("cargo:rerun-if-changed=../exports.rs");
    println!("cargo:rerun-if-changed=src");
    let symbols = fs::read_to_string("symbols.txt")?;
    let lines: Vec<(&str, &str)> = symbols
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| line.split_once(' ').unwrap_or((line, "0")))
        .collect();
    let symbols: Vec<&str> = lines.iter().map(|(name, _)| *name).collect();
    let written = written_by_hand(Path::new("src"))?;

    let mut out = String::new();
    let count = symbols.len();
    writeln!(out, "pub const COUNT: usize = {count};")?;
    writeln!(out, "pub static NAMES: [&core::ffi::CStr; COUNT] = [")?;
    for name in &symbols {
        writeln!(out, "    c\"{name}\",")?;
    }
    writeln!(
        out,
        "];\n#[allow(dead_code, reason = \"only the driver looks versions up\")]\npub static SINCE: [u32; COUNT] = ["
    )?;
    for (_, since) in &lines {
        writeln!(out, "    {since},")?;
    }
    writeln!(out, "];\npub mod id {{")?;
    for (number, name) in symbols.iter().enumerate() {
        writeln!(out, "    pub const {name}: usize = {number};")?;
    }
    writeln!(out, "}}\nmod linked {{\n    unsafe extern \"C\" {{")?;
    for name in &symbols {
        writeln!(out, "        pub fn {name}();")?;
    }
    writeln!(
        out,
        "    }}\n}}\npub static ADDRESSES: [unsafe extern \"C\" fn(); COUNT] = ["
    )?;
    for name in &symbols {
        writeln!(out, "    linked::{name},")?;
    }
    writeln!(out, "];")?;
    for name in symbols.iter().filter(|name| !written.contains(**name)) {
        writeln!(out, "stub!({name});")?;
    }
    let path = Path::new(&env::var("OUT_DIR")?).join("exports.rs");
    fs::write(path, out)?;
    Ok(())
}

fn written_by_hand(folder: &Path) -> Result<BTreeSet<String>, std::io::Error> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        for line in fs::read_to_string(entry?.path())?.lines() {
            let found = line.split_once("fn ").or_else(|| line.split_once("tail_launch!("));
            let Some((_, rest)) = found else {
                continue;
            };
            // `fn NAME(`, or `fn NAME / TWIN(` for a function that has a per-thread twin.
            let end = rest
                .find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | ' ' | '/'))
                .unwrap_or(rest.len());
            names.extend(rest[..end].split('/').map(|name| name.trim().to_owned()));
        }
    }
    Ok(names)
}
