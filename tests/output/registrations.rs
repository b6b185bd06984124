//! Which function of the host stands for which kernel, read from files as compilers make them.

use crate::support::{assert_same, compile, sim};
use gpuscope::elf::{ElfFile, kernel_of_stub};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("../support/registering.c");
const STUBS: [&str; 5] = [
    "_Z6vecAddPKfS0_Pfi",
    "_Z7softmaxPKfPfi",
    "_ZN5flash9fwd_innerEPKfS1_Pfi",
    "plain",
    "_ZN4deepL4gemmIfEEvPT_",
];

/// The kernel of each stub, by its offset in the file.
fn registered(path: &Path, offsets: &[u64]) -> BTreeMap<u64, String> {
    let file = ElfFile::open(path).expect("an ELF file");
    let stubs = file.kernel_stubs().expect("stubs");
    assert_eq!(stubs.len(), offsets.len(), "{}", path.display());
    let named = offsets.iter().map(|offset| {
        let name = stubs.name(&file, *offset);
        (
            *offset,
            name.unwrap_or_else(|| panic!("{}: {offset:#x}", path.display())),
        )
    });
    named.collect()
}

fn expected(path: &Path, stubs: &[&str]) -> BTreeMap<u64, String> {
    let file = ElfFile::open(path).expect("an ELF file");
    let symbols = file.symbols_where(&|name| stubs.contains(&name)).expect("symbols");
    let named = symbols
        .iter()
        .map(|symbol| (symbol.file_offset, kernel_of_stub(&symbol.name)));
    named.collect()
}

fn stripped(path: &Path) -> PathBuf {
    let bare = path.with_extension("stripped");
    let status = Command::new("strip").arg("-o").arg(&bare).arg(path).status();
    assert!(status.expect("strip").success());
    bare
}

#[test]
fn the_kernels_that_a_file_registers_are_found_with_and_without_symbols() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, options) in [
        ("plain", &["-O0"][..]),
        ("optimised", &["-O2"]),
        ("small", &["-Os"]),
        ("fixed", &["-O2", "-no-pie", "-fno-pie"]),
        ("fixed_plain", &["-O0", "-no-pie", "-fno-pie"]),
        ("library", &["-O2", "-shared", "-fPIC", "-DSHARED"]),
        ("plain_library", &["-O0", "-shared", "-fPIC", "-DSHARED"]),
        (
            "bound_library",
            &["-O2", "-shared", "-fPIC", "-DSHARED", "-Wl,-Bsymbolic"],
        ),
    ] {
        let path = compile(folder.path(), name, SOURCE, options);
        let expected = expected(&path, &STUBS);
        assert_eq!(expected.len(), STUBS.len(), "{name}");
        let offsets: Vec<u64> = expected.keys().copied().collect();
        assert_same(name, &expected, &registered(&path, &offsets));
        assert_same(name, &expected, &registered(&stripped(&path), &offsets));
    }
}

#[test]
fn symbols_name_the_kernels_of_stubs_that_nothing_registers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = compile(folder.path(), "named", SOURCE, &["-O1"]);
    let expected = expected(&path, &STUBS);
    let file = ElfFile::open(&path).expect("an ELF file");
    let offsets: Vec<u64> = expected.keys().copied().chain([1]).collect();
    let found: BTreeMap<u64, String> = file.kernels_by_symbol(&offsets).into_iter().collect();
    assert_same("by symbol", &expected, &found);
    let bare = ElfFile::open(stripped(&path)).expect("an ELF file");
    assert!(bare.kernels_by_symbol(&offsets).is_empty());
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_simulated_programs_register_eight_kernels() {
    let kernels = [
        "vecAdd",
        "sgemm",
        "layernorm",
        "softmax",
        "reluGrad",
        "adam_step",
        "fwd_inner",
        "reduceSum",
    ];
    let file = ElfFile::open(sim("gpusim")).expect("an ELF file");
    let symbols = file.symbols().expect("symbols");
    let is_kernel = |name: &str| name.starts_with("_Z") && kernels.iter().any(|kernel| name.contains(kernel));
    let names: Vec<&str> = symbols
        .iter()
        .map(|symbol| symbol.name.as_str())
        .filter(|name| is_kernel(name))
        .collect();
    let expected = expected(&sim("gpusim"), &names);
    let offsets: Vec<u64> = expected.keys().copied().collect();
    assert_eq!(offsets.len(), kernels.len());
    assert_same("gpusim", &expected, &registered(&sim("gpusim"), &offsets));
}
