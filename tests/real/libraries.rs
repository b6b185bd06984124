//! The probe sites and the hidden runtimes of NVIDIA's own libraries.
//!
//! `scripts/fetch-libraries.sh DIR`, then `GPUSCOPE_LIBRARIES=DIR cargo test --test real -- --ignored libraries::`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gpuscope::catalog::Catalog;
use gpuscope::elf::{
    Cost, ElfFile, Method, Semaphore, Symbol, SymbolTable, find_by_name_strings, find_runtime, probe_site,
};
use gpuscope::probe::static_probe::site_of;

/// A runtime release: its directory, its major version, its exported functions, those found by name strings.
const RUNTIMES: [(&str, u32, usize, usize); 5] = [
    ("11.8.89", 11, 395, 382),
    ("12.1.105", 12, 393, 378),
    ("12.4.127", 12, 416, 401),
    ("12.9.79", 12, 435, 420),
    ("13.0.96", 13, 422, 406),
];

/// A driver branch, and how many of its functions have their site at +10.
const DRIVERS: [(&str, usize); 4] = [("470", 521), ("535", 589), ("550", 625), ("555", 632)];

/// Releases of PyTorch: the first with these probes, and what `fetch-libraries.sh` has of those after it.
const PYTORCH: [&str; 3] = ["2.2.2", "2.6.0", "2.11.0"];

/// `mov $801,%eax; ret` and the like: there is nothing to move to.
const NEVER_EMULATED: [&str; 4] = [
    "__cudaGetProcAddress",
    "cuMemGetAttribute",
    "cuMemGetAttribute_v2",
    "cuEGLApiInit",
];

/// Libraries with a stripped static runtime, and how many functions are found.
const STRIPPED: [(&str, usize); 3] = [("nvjpeg", 420), ("npp", 420), ("curand", 420)];

/// Runtime functions which do not mention their own name.
const NAMELESS: [&str; 1] = ["cudaGetExportTable"];

fn libraries() -> Option<PathBuf> {
    let directory = std::env::var_os("GPUSCOPE_LIBRARIES").map(PathBuf::from);
    if directory.is_none() {
        println!("not run: set GPUSCOPE_LIBRARIES");
    }
    directory
}

/// Every library below `DIR/kind/<prefix>…`, of which there must be one.
fn found(directory: &Path, kind: &str, prefix: &str) -> (PathBuf, ElfFile) {
    let entries = std::fs::read_dir(directory.join(kind)).expect("a directory of fetch-libraries.sh");
    let version = entries
        .map(|entry| entry.expect("an entry").path())
        .find(|path| {
            path.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with(prefix))
        })
        .unwrap_or_else(|| panic!("{kind}/{prefix} was not fetched"));
    let mut files = std::fs::read_dir(&version).expect("a directory");
    let path = files.next().expect("a library").expect("an entry").path();
    let file = ElfFile::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    (path, file)
}

fn exported(file: &ElfFile, is_name: fn(&str) -> bool) -> Vec<Symbol> {
    let symbols = file.symbols_where(&is_name).expect("symbols");
    symbols
        .into_iter()
        .filter(|s| s.table == SymbolTable::Dynamic)
        .collect()
}

fn is_runtime(name: &str) -> bool {
    name.starts_with("cuda") || name.starts_with("__cuda")
}

fn is_driver(name: &str) -> bool {
    name.starts_with("cu") && !name.starts_with("cudbg")
}

/// How many sites there are for each distance; panics on one that is not emulated and not known.
fn distances(path: &Path, file: &ElfFile, symbols: &[Symbol]) -> BTreeMap<u8, usize> {
    let mut counts = BTreeMap::new();
    for symbol in symbols {
        let site =
            probe_site(file, symbol.file_offset).unwrap_or_else(|e| panic!("{}: {}: {e}", path.display(), symbol.name));
        assert_eq!(site.offset, symbol.file_offset + u64::from(site.moved_by));
        if NEVER_EMULATED.contains(&symbol.name.as_str()) {
            assert_eq!(site.moved_by, 0, "{}", symbol.name);
            continue;
        }
        assert_eq!(site.cost, Cost::Emulated, "{}: {}", path.display(), symbol.name);
        *counts.entry(site.moved_by).or_default() += 1;
    }
    println!("{}: {} functions, sites {counts:?}", path.display(), symbols.len());
    counts
}

/// What the strings say must be what the symbols say, but for functions that never say their name.
fn same_by_name_strings(path: &Path, file: &ElfFile, known: &BTreeMap<String, u64>) -> usize {
    let found = find_by_name_strings(file, &is_runtime)
        .expect("readable")
        .expect("a runtime");
    for (name, offset) in &found.functions {
        assert_eq!(known.get(name), Some(offset), "{}: {name}", path.display());
    }
    let names: BTreeMap<_, _> = found.functions.iter().cloned().collect();
    for name in known.keys().filter(|name| !name.starts_with("__")) {
        let nameless = NAMELESS.contains(&name.as_str());
        assert!(
            names.contains_key(name) || nameless,
            "{}: {name} not found",
            path.display()
        );
    }
    println!(
        "{}: {} by name strings, version {:?}",
        path.display(),
        names.len(),
        found.major
    );
    names.len()
}

#[test]
#[ignore = "needs GPUSCOPE_LIBRARIES"]
fn every_runtime_function_is_probed_at_its_entry() {
    let Some(directory) = libraries() else { return };
    for (version, major, functions, named) in RUNTIMES {
        let (path, file) = found(&directory, "runtime", version);
        assert_eq!(file.soname_major(), Some(major));
        assert!(file.build_id().is_some_and(|id| id.len() == 40));
        let symbols = exported(&file, is_runtime);
        assert_eq!(symbols.len(), functions, "{}", path.display());
        assert_eq!(distances(&path, &file, &symbols).into_keys().collect::<Vec<_>>(), [0]);
        let known = symbols.into_iter().map(|s| (s.name, s.file_offset)).collect();
        assert_eq!(same_by_name_strings(&path, &file, &known), named);
        let by_strings = find_by_name_strings(&file, &is_runtime)
            .expect("readable")
            .expect("a runtime");
        assert_eq!(by_strings.major, Some(major));
        assert_eq!(
            find_runtime(&file, &is_runtime).expect("readable"),
            None,
            "it exports its functions"
        );
    }
}

#[test]
#[ignore = "needs GPUSCOPE_LIBRARIES"]
fn every_driver_function_has_a_cheap_site() {
    let Some(directory) = libraries() else { return };
    for (branch, at_10) in DRIVERS {
        let (path, file) = found(&directory, "driver", branch);
        assert_eq!(file.soname(), Some("libcuda.so.1"));
        let symbols = exported(&file, is_driver);
        let counts = distances(&path, &file, &symbols);
        assert_eq!(counts.get(&10), Some(&at_10), "{}", path.display());
        assert_eq!(at_10 + 3, symbols.len(), "{}: only three are not there", path.display());
    }
}

#[test]
#[ignore = "needs GPUSCOPE_LIBRARIES"]
fn the_static_runtime_of_nccl_is_found_in_both_ways() {
    let Some(directory) = libraries() else { return };
    let (path, file) = found(&directory, "static", "nccl");
    let runtime = find_runtime(&file, &is_runtime).expect("readable").expect("a runtime");
    assert_eq!((runtime.method, runtime.major), (Method::SymbolTable, Some(12)));
    let known = runtime.functions.into_iter().collect();
    assert_eq!(same_by_name_strings(&path, &file, &known), 420);
}

#[test]
#[ignore = "needs GPUSCOPE_LIBRARIES"]
fn the_static_runtime_of_a_stripped_library_is_found() {
    let Some(directory) = libraries() else { return };
    for (library, functions) in STRIPPED {
        let (path, file) = found(&directory, "static", library);
        let runtime = find_runtime(&file, &is_runtime).expect("readable").expect("a runtime");
        assert_eq!((runtime.method, runtime.major), (Method::NameStrings, Some(12)));
        assert_eq!(runtime.functions.len(), functions, "{}", path.display());
        for (name, offset) in &runtime.functions {
            let site = probe_site(&file, *offset).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(
                (site.moved_by, site.cost),
                (0, Cost::Emulated),
                "{}: {name}",
                path.display()
            );
        }
    }
}

#[test]
#[ignore = "needs GPUSCOPE_LIBRARIES"]
fn a_damaged_library_is_refused_or_read() {
    let Some(directory) = libraries() else { return };
    let (path, file) = found(&directory, "runtime", "12.4");
    let good = std::fs::read(&path).expect("readable");
    let sections = u64::from_le_bytes(good[40..48].try_into().expect("8 bytes"));
    let symbols = exported(&file, is_runtime);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut refused = 0;
    for round in 0..1500 {
        let mut bytes = good.clone();
        for _ in 0..=random(6) {
            let at = match random(4) {
                0 => random(64 + 56 * 8),
                1 => sections + random(good.len() as u64 - sections),
                2 => random(0x20000),
                _ => random(good.len() as u64),
            };
            bytes[usize::try_from(at).expect("small")] = random(256) as u8;
        }
        if round % 4 == 0 {
            bytes.truncate(usize::try_from(random(good.len() as u64)).expect("small"));
        }
        let Ok(damaged) = ElfFile::from_bytes(bytes) else {
            refused += 1;
            continue;
        };
        let _ = (damaged.symbols(), find_runtime(&damaged, &is_runtime));
        let _ = find_by_name_strings(&damaged, &is_runtime);
        for symbol in symbols.iter().step_by(40) {
            let _ = probe_site(&damaged, symbol.file_offset);
        }
    }
    println!("1500 damaged copies: {refused} refused, the others read");
}

/// The rows that are shipped for PyTorch's allocator fit all of its releases.
#[test]
#[ignore = "needs GPUSCOPE_LIBRARIES"]
fn pytorch_allocators_have_the_static_probes_that_the_shipped_rows_describe() {
    let Some(directory) = libraries() else { return };
    let mut catalog = Catalog::builtin().expect("the built-in catalogue");
    let hooks = include_str!("../../hooks/pytorch.toml");
    catalog
        .add_hooks("hooks/pytorch.toml", hooks)
        .expect("the shipped rows");
    let library = catalog.library("pytorch").expect("its library");
    for version in PYTORCH {
        let (path, file) = found(&directory, "torch", version);
        let mut places = BTreeMap::new();
        for probe in file.static_probes(&|_| true).expect("probes") {
            let row = catalog.find_probe(library, &probe.name, None).expect("a row");
            site_of(&probe, &catalog.rows[row.0 as usize]).expect("its arguments");
            let offset = probe.site(&file).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            assert!(
                matches!(probe.semaphore, Semaphore::At(_)),
                "{}: {offset:#x}",
                path.display()
            );
            *places.entry(probe.name).or_insert(0) += 1;
        }
        let expected = BTreeMap::from([("pytorch:free".to_owned(), 2), ("pytorch:malloc".to_owned(), 1)]);
        assert_eq!(places, expected, "{}", path.display());
    }
}
