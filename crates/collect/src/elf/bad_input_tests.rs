//! Files that are not usable, each with its reason.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::elf_builder::{CODE_AT, Function, library};
use super::static_runtime::runtime_of;
use super::symbol::Binding;
use super::{ElfFile, SymbolTable, by_offset, find_by_name_strings, probe_site};

const CODE: [u8; 4] = [0x55, 0x31, 0xc0, 0xc3];

fn good() -> Vec<u8> {
    library(&CODE, &[Function::new("cudaMalloc", 0, 4)])
}

/// Everything that reads the file, in the manner of the program. Returns the first reason against it.
fn read_all(file: Result<ElfFile, super::ElfError>) -> Result<usize, String> {
    let file = file.map_err(|e| e.to_string())?;
    let symbols = file.symbols().map_err(|e| e.to_string())?;
    for symbol in symbols.iter().take(100) {
        let _ = probe_site(&file, symbol.file_offset);
    }
    for probe in file.static_probes(&|_| true).map_err(|e| e.to_string())? {
        let _ = (probe.site(&file), probe.operand(0));
    }
    runtime_of(&file, &|_| true).map_err(|e| e.to_string())?;
    find_by_name_strings(&file, &|_| true).map_err(|e| e.to_string())?;
    let stubs = file.kernel_stubs().map_err(|e| e.to_string())?;
    let _ = (stubs.name(&file, 0), file.kernels_by_symbol(&[CODE_AT]));
    Ok(symbols.len())
}

fn reason_for_bytes(bytes: Vec<u8>) -> String {
    read_all(ElfFile::from_bytes(bytes)).expect_err("a refusal")
}

fn reason_for_path(path: &Path) -> String {
    let start = Instant::now();
    let error = ElfFile::open(path).expect_err("a refusal");
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{} took {:?}",
        path.display(),
        start.elapsed()
    );
    match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

fn patched(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = good();
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn paths_that_are_no_usable_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let fifo = CString::new(at("fifo").as_os_str().as_bytes()).expect("a path");
    // SAFETY: the path is a NUL-terminated string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    symlink("loop", at("loop")).expect("a link");
    symlink("fifo", at("to-fifo")).expect("a link");
    std::fs::write(at("empty"), b"").expect("a file");
    std::fs::write(at("text"), b"#!/bin/sh\n").expect("a file");
    let cases = [
        (at("absent"), "No such file"),
        (at("."), "a directory"),
        (at("fifo"), "a FIFO"),
        (at("to-fifo"), "a FIFO"),
        (at("loop"), "symbolic links"),
        (at("empty"), "empty"),
        (at("text"), "not an ELF file"),
        ("/dev/zero".into(), "a device"),
        ("/proc/self/mem".into(), "empty"),
    ];
    for (path, reason) in cases {
        let message = reason_for_path(&path);
        assert!(
            message.starts_with("not usable: ") && message.contains(reason),
            "{}: {message}",
            path.display()
        );
    }
}

#[test]
fn a_sparse_file_of_2_gib_is_read_in_bounded_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("sparse");
    let mut bytes = good();
    let sections = usize::try_from(u64::from_le_bytes(bytes[40..48].try_into().expect("8 bytes"))).expect("small");
    // The symbols' names become the whole file.
    bytes[sections + 128 + 24..sections + 128 + 40].copy_from_slice(&[[0; 8], (2_u64 << 30).to_le_bytes()].concat());
    std::fs::write(&path, &bytes).expect("a file");
    std::fs::File::options()
        .write(true)
        .open(&path)
        .expect("open")
        .set_len(2 << 30)
        .expect("a sparse file");
    let start = Instant::now();
    let message = read_all(ElfFile::open(&path)).expect_err("a refusal");
    assert!(
        message.contains("symbol names is too large: 2147483648 bytes"),
        "{message}"
    );
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[test]
fn bytes_that_are_no_usable_elf() {
    let sections = u64::from_le_bytes(good()[40..48].try_into().expect("8 bytes")) as usize;
    let mut short = good();
    short.truncate(CODE_AT as usize + 2);
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("cut at 63 bytes", good()[..63].to_vec(), "cut off"),
        ("cut at 64 bytes", good()[..64].to_vec(), "cut off: the segment table"),
        ("cut inside the code", short, "cut off: a segment"),
        (
            "cut before the sections",
            good()[..sections].to_vec(),
            "cut off: the section table",
        ),
        ("32-bit", patched(4, &[1]), "32-bit"),
        ("unknown class", patched(4, &[7]), "class"),
        ("big-endian", patched(5, &[2]), "big-endian"),
        ("aarch64", patched(18, &[183, 0]), "aarch64"),
        ("a GPU program", patched(18, &[190, 0]), "an NVIDIA GPU"),
        ("an object file", patched(16, &[1, 0]), "not linked"),
        ("a core dump", patched(16, &[4, 0]), "core dump"),
        ("no segments", patched(56, &[0, 0]), "segment table"),
        (
            "huge segment table offset",
            patched(32, &[0xff; 8]),
            "cut off: the segment table",
        ),
        (
            "huge section table offset",
            patched(40, &[0xff; 8]),
            "cut off: the section table",
        ),
        (
            "a segment past the end",
            patched(64 + 32, &[0xff; 8]),
            "cut off: a segment",
        ),
        ("no code", patched(64 + 4, &[4, 0, 0, 0]), "no code"),
        (
            "symbols past the end",
            patched(sections + 64 + 24, &[0xff; 7]),
            "cut off",
        ),
        (
            "names of symbols past the end",
            patched(sections + 128 + 32, &[0xff; 5]),
            "cut off: symbol names",
        ),
        (
            "the names of symbols are themselves",
            patched(sections + 64 + 40, &[1, 0, 0, 0]),
            "without its names",
        ),
        (
            "the names of symbols are absent",
            patched(sections + 64 + 40, &[9, 0, 0, 0]),
            "without its names",
        ),
    ];
    for (what, bytes, reason) in cases {
        let message = reason_for_bytes(bytes);
        assert!(
            message.starts_with("not usable: ") && message.contains(reason),
            "{what}: {message}"
        );
    }
}

#[test]
fn only_functions_with_code_are_symbols() {
    let functions = [
        Function::with_info(b"weak", 0, 0x22),
        Function::with_info(b"local", 1, 0x02),
        Function::with_info(b"versioned@@libcudart.so.12", 1, 0x12),
        Function::with_info(b"object", 1, 0x11),
        Function::with_info(b"indirect", 1, 0x1a),
        Function::with_info(b"past the end", 4, 0x12),
        Function::with_info(b"far past the end", u64::MAX / 2, 0x12),
        Function::with_info(b"", 1, 0x12),
        Function::with_info(b"steers\x1b[2J", 2, 0x12),
        Function::with_info(b"latin\xe9", 3, 0x12),
    ];
    let file = ElfFile::from_bytes(library(&CODE, &functions)).expect("a library");
    let symbols = file.symbols().expect("symbols");
    let names: Vec<&str> = symbols.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["weak", "local", "versioned", r"steers\x1b[2J", r"latin\xe9"]);
    assert_eq!(symbols[0].binding, Binding::Weak);
    assert_eq!(symbols[1].binding, Binding::Local);
    assert!(symbols.iter().all(|s| s.table == SymbolTable::Dynamic));
    assert_eq!(symbols[0].file_offset, CODE_AT);
    let groups = by_offset(&symbols);
    assert_eq!(groups.len(), 4);
    assert_eq!(groups[&(CODE_AT + 1)].len(), 2);
}

#[test]
fn a_file_without_facts_has_none() {
    let file = ElfFile::from_bytes(good()).expect("a library");
    assert_eq!(
        (file.soname(), file.soname_major(), file.build_id(), file.interpreter()),
        (None, None, None, None)
    );
}

#[test]
fn this_program_is_usable() {
    let file = ElfFile::open("/proc/self/exe").expect("this program");
    assert!(file.interpreter().is_some_and(|path| path.contains("ld-linux")));
    assert!(!file.is_empty());
    let symbols = file.symbols().expect("symbols");
    assert!(
        symbols.iter().any(|s| s.table == SymbolTable::Local),
        "{}",
        symbols.len()
    );
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_all(ElfFile::from_bytes(bytes.clone()));
        let _ = read_all(ElfFile::from_bytes([&good()[..16], &bytes].concat()));
    }

    #[test]
    fn a_library_with_any_damage_is_refused_or_read(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
        keep in any::<proptest::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = good();
        // The zeros between the headers and the code are of no use to damage.
        let places: Vec<usize> = (0..120).chain(CODE_AT as usize..bytes.len()).collect();
        for (place, byte) in changes {
            bytes[places[place.index(places.len())]] = byte;
        }
        if cut {
            bytes.truncate(keep.index(bytes.len()));
        }
        let _ = read_all(ElfFile::from_bytes(bytes));
    }
}

#[test]
fn a_segment_that_lies_past_the_end_of_all_files_holds_no_byte() {
    let (segment_offset, segment_size) = (64 + 8, 64 + 32);
    let mut bytes = patched(segment_offset, &(u64::MAX - 1).to_le_bytes());
    bytes[segment_size..segment_size + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    let len = bytes.len() as u64;
    assert!(super::DebugFile::read_from(Box::new(Elsewhere(bytes)), len).is_ok());
}

/// As somebody else reads it for us.
#[derive(Debug)]
struct Elsewhere(Vec<u8>);

impl super::ReadAt for Elsewhere {
    fn read_exact_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.0.get(from..).and_then(|rest| rest.get(..into.len()));
        into.copy_from_slice(bytes.ok_or(std::io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}
