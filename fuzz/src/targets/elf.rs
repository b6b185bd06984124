//! A file that claims to be a program or library: symbols, probe sites, static probes and hidden runtimes.

use gpuscope::elf::{ElfFile, find_by_name_strings, find_runtime, probe_site};

pub fn run(bytes: &[u8]) {
    let Ok(file) = ElfFile::from_bytes(bytes) else {
        return;
    };
    if let Ok(symbols) = file.symbols_where(&|name| name.starts_with("cu")) {
        for symbol in symbols.iter().take(50) {
            assert!(symbol.file_offset < file.len());
            let _ = probe_site(&file, symbol.file_offset);
        }
    }
    let _ = file.symbols();
    for probe in file.static_probes(&|_| true).unwrap_or_default().iter().take(50) {
        if let Ok(offset) = probe.site(&file) {
            assert!(offset < file.len());
        }
        let _ = probe.operand(0);
    }
    let _ = find_runtime(&file, &|name| name.starts_with("cuda"));
    let _ = find_by_name_strings(&file, &|_| true);
}
