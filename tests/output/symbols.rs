//! Names of native functions: what they cost, and files that change while they are read.
//!
//! A process names the functions of files that it maps itself, as it would those of another.

use crate::support::{compile, large_library};
use gpuscope::stack::wire::SiteEvent;
use gpuscope::stack::{Kept, Resolver, Stack};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// A run of this program that names functions of these files, separated by colons, and says what it cost.
const FILES: &str = "GPUSCOPE_NAME_FUNCTIONS_OF";
const STACKS: u64 = 50;
const DEPTH: u64 = 20;
const MOST_GROWTH_KB: u64 = 30 << 10;

/// Maps a file as code; it stays so.
fn map(file: &File) -> u64 {
    let bytes = file.metadata().expect("a file").len() as usize;
    let (read, kind) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE);
    // SAFETY: a new mapping, which is not looked at
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, read, kind, file.as_raw_fd(), 0) };
    assert_ne!(start, libc::MAP_FAILED);
    start as u64
}

/// Stacks whose addresses lie all over a file from `first` on.
fn keep(resolver: &mut Resolver, path: &Path, first: u64) -> (Vec<Kept>, Vec<u64>) {
    let file = File::open(path).expect("a file");
    let (start, bytes) = (map(&file), file.metadata().expect("a file").len());
    let step = (bytes - first) / (STACKS * DEPTH);
    let offsets: Vec<u64> = (0..STACKS * DEPTH).map(|number| first + number * step).collect();
    let stacks = offsets.chunks(DEPTH as usize).map(|offsets| {
        let event = SiteEvent {
            tgid: std::process::id(),
            // where a call returns to: the byte after it
            native: offsets.iter().map(|offset| start + offset + 1).collect(),
            ..SiteEvent::default()
        };
        resolver.keep(&event)
    });
    (stacks.collect(), offsets)
}

fn names(stacks: &[Stack]) -> Vec<&str> {
    let frames = stacks.iter().flat_map(|stack| &stack.frames);
    frames.map(|frame| frame.function.as_str()).collect()
}

fn memory_kb(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with(field)).expect("a field");
    line.split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .expect("a number")
}

/// The part of the child: says how much memory the naming took beyond what was there.
fn name_functions_of(files: &str) {
    let mut resolver = Resolver::default();
    let paths = files.split(':').map(Path::new);
    let (kept, offsets): (Vec<_>, Vec<_>) = paths.map(|path| keep(&mut resolver, path, 0x1000)).unzip();
    std::fs::write("/proc/self/clear_refs", "5").expect("a new peak");
    let (before, start) = (memory_kb("VmRSS"), Instant::now());
    let stacks = resolver.name_all(kept.iter().flatten());
    let (growth, first) = (memory_kb("VmHWM").saturating_sub(before), start.elapsed());
    let start = Instant::now();
    assert_eq!(resolver.name_all(kept.iter().flatten()), stacks);
    let again = start.elapsed();
    let told = names(&stacks);
    let unnamed = told.iter().filter(|name| name.starts_with("0x")).count();
    println!(
        "{} addresses, {unnamed} without a name: {first:?}, again {again:?}",
        told.len()
    );
    println!("growth {growth} KiB");
    for name in offsets.iter().flatten().zip(told) {
        println!("name {} {}", name.0, name.1);
    }
}

#[test]
fn names_in_a_huge_library_take_little_memory() {
    if let Ok(files) = std::env::var(FILES) {
        return name_functions_of(&files);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("liblarge.so");
    large_library::write(&library);
    let test = "symbols::names_in_a_huge_library_take_little_memory";
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program);
    child.args([test, "--nocapture"]).env(FILES, &library);
    let output = child.output().expect("a child");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let growth = said
        .lines()
        .find_map(|line| line.strip_prefix("growth ")?.strip_suffix(" KiB"));
    let growth: u64 = growth.and_then(|growth| growth.parse().ok()).expect("a number");
    assert!(growth < MOST_GROWTH_KB, "{growth} KiB");
    let mut named = 0;
    for line in said.lines().filter_map(|line| line.strip_prefix("name ")) {
        let (offset, name) = line.split_once(' ').expect("a name");
        let offset: u64 = offset.parse().expect("a number");
        if offset < 0x1000 + large_library::FUNCTIONS * large_library::SPACING {
            assert_eq!(name, large_library::function_at(offset));
            named += 1;
        }
    }
    assert!(named > STACKS * DEPTH / 2, "{named}");
}

#[test]
fn a_file_that_is_cut_off_costs_its_names_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "int answer(int x) { return x + 42; }";
    for (name, flags) in [
        ("plain.so", &["-shared", "-fPIC"][..]),
        ("debug.so", &["-shared", "-fPIC", "-g"]),
    ] {
        for left in [0, 64, 0x800, 0x1080] {
            let library = compile(folder.path(), name, source, flags);
            let mut resolver = Resolver::default();
            let (kept, _) = keep(&mut resolver, &library, 0x1000);
            let file = OpenOptions::new().write(true).open(&library).expect("a file");
            file.set_len(left).expect("a file");
            let stacks = resolver.name_all(&kept);
            assert!(names(&stacks).iter().all(|name| name.starts_with("0x")), "{left}");
            std::fs::remove_file(&library).expect("a file");
        }
    }
}

#[test]
fn debug_information_is_read_where_it_is_compressed_or_lies_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "int answer(int x) { return x + 42; }";
    let flags = ["-shared", "-fPIC", "-g", "-Wl,--build-id"];
    let plain = compile(folder.path(), "plain.so", source, &flags);
    let compressed = compile(
        folder.path(),
        "compressed.so",
        source,
        &[&flags[..], &["-gz=zlib"]].concat(),
    );
    let stripped = compile(folder.path(), "stripped.so", source, &flags);
    let apart = folder.path().join("stripped.so.debug");
    run(Command::new("objcopy")
        .arg("--only-keep-debug")
        .args([&stripped, &apart]));
    run(Command::new("strip").arg(&stripped));
    run(Command::new("objcopy")
        .arg("--add-gnu-debuglink")
        .arg(&apart)
        .arg(&stripped));
    for library in [&plain, &compressed, &stripped] {
        let lines = lines_of_answer(library);
        assert_eq!(lines, [Some(1)], "{}", library.display());
    }
    // of another build: what it says is not true of this one
    std::fs::copy(&plain, &apart).expect("a file");
    run(Command::new("objcopy")
        .args(["--remove-section", ".note.gnu.build-id"])
        .arg(&apart));
    assert_eq!(lines_of_answer(&stripped), [None]);
}

#[test]
fn debug_information_that_is_too_large_is_left_out_and_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = compile(
        folder.path(),
        "large.so",
        "int answer(int x) { return x + 42; }",
        &["-shared", "-fPIC", "-g"],
    );
    let strings = folder.path().join("strings");
    let file = File::create(&strings).expect("a file");
    file.set_len(65 << 20).expect("a file");
    let section = format!(".debug_str={}", strings.display());
    run(Command::new("objcopy")
        .args(["--update-section", &section])
        .arg(&library));
    let mut resolver = Resolver::default();
    let (kept, _) = keep(&mut resolver, &library, 0x1000);
    let stacks = resolver.name_all(&kept);
    assert!(
        stacks
            .iter()
            .flat_map(|stack| &stack.frames)
            .all(|frame| frame.line.is_none())
    );
    let note = "large.so: 65 MiB of debug information, of which at most 64 MiB are read: source lines and inlined functions are not shown";
    assert_eq!(resolver.take_notes(), [note]);
}

fn run(command: &mut Command) {
    assert!(command.status().expect("a program").success(), "{command:?}");
}

/// The line of each frame at the function `answer`.
fn lines_of_answer(library: &Path) -> Vec<Option<u32>> {
    let elf = gpuscope::elf::ElfFile::open(library).expect("a library");
    let symbols = elf.symbols_where(&|name| name == "answer").expect("symbols");
    let mut resolver = Resolver::default();
    let file = File::open(library).expect("a file");
    let event = SiteEvent {
        tgid: std::process::id(),
        native: vec![map(&file) + symbols[0].file_offset + 1],
        ..SiteEvent::default()
    };
    let kept = resolver.keep(&event);
    let stack = resolver.name(&kept);
    assert_eq!(names(std::slice::from_ref(&stack)), ["answer"]);
    stack.frames.iter().map(|frame| frame.line).collect()
}
