//! `gpuscope functions --explain FILE`: what a hook file would hook, where, and what of it cannot be, without attaching.
//!
//! Owns the wording. What can be hooked is decided by the same functions as when attaching.

use super::prepare;
use crate::capture::{Use, plan};
use crate::catalog::{Catalog, Library, LibraryId, Row, RowId, SiteKind, glob_matches, nearest};
use crate::cli::FunctionsArgs;
use crate::discover;
use crate::discover::Mapping;
use crate::elf::{Cost, ElfError, ElfFile, Site, by_offset, is_trampoline, probe_site};
use crate::probe::machine::ldcache;
use crate::probe::{kernel, machine, place, returns, static_probe};
use crate::text::quantity::escaped;
use crate::wire;
use anyhow::{Context, Result};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What becomes of a row at one place of one file.
struct Finding {
    /// As it will be called.
    name: String,
    /// Where, and how; or why not.
    verdict: Result<String, String>,
}

impl Finding {
    fn good(name: &str, how: String) -> Finding {
        Finding {
            name: name.to_owned(),
            verdict: Ok(how),
        }
    }

    fn bad(name: &str, why: String) -> Finding {
        Finding {
            name: name.to_owned(),
            verdict: Err(why),
        }
    }
}

/// Explains `file`; the status is 1 when something of it cannot be hooked.
///
/// # Errors
/// The hook file is wrong, or a file that was named cannot be read.
pub fn run(file: &Path, args: &FunctionsArgs, out: &mut dyn Write) -> Result<ExitCode> {
    let built_in = Catalog::builtin()
        .context("the built-in catalogue is wrong")?
        .rows
        .len();
    let catalog = prepare::catalog(&[file.to_owned()])?;
    let own = |row: &usize| *row >= built_in;
    let mut libraries: Vec<LibraryId> = (0..catalog.rows.len())
        .filter(own)
        .map(|row| catalog.rows[row].library)
        .collect();
    libraries.dedup();
    libraries.sort_unstable();
    libraries.dedup();
    let mut wrong = libraries.is_empty();
    for id in libraries {
        let Some(library) = catalog.library_with(id) else {
            continue;
        };
        let rows: Vec<RowId> = (built_in..catalog.rows.len())
            .filter(|row| catalog.rows[*row].library == id)
            .map(|row| RowId(row as u32))
            .collect();
        let in_kernel = |id: &RowId| catalog.row(*id).is_some_and(|row| row.in_kernel.is_some());
        if rows.iter().any(in_kernel) {
            wrong |= explain_kernel(&catalog, library, &rows, args.json, out)?;
            continue;
        }
        let files = files_of(library, args)?;
        if files.is_empty() {
            wrong = true;
            let what = format!(
                "no file here matches {:?}; hint: --lib FILE, or -p PID of a process that maps it",
                library.pattern
            );
            write(out, args.json, &library.name, None, &Finding::bad("*", what))?;
        }
        for file in files {
            wrong |= explain_file(&catalog, library, &rows, &file, args.json, out)?;
        }
    }
    Ok(if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether something of the kernel cannot be hooked.
fn explain_kernel(
    catalog: &Catalog,
    library: &Library,
    rows: &[RowId],
    json: bool,
    out: &mut dyn Write,
) -> Result<bool> {
    if !json {
        line(out, &format!("{}: the running kernel", escaped(&library.name)))?;
    }
    let mut wrong = false;
    for row in rows.iter().filter_map(|id| catalog.row(*id)) {
        for finding in of_kernel(row) {
            wrong |= finding.verdict.is_err();
            write(out, json, &library.name, Some(Path::new("/proc/kallsyms")), &finding)?;
        }
    }
    Ok(wrong)
}

fn of_kernel(row: &Row) -> Vec<Finding> {
    let explained = match kernel::explain(row) {
        Ok(explained) => explained,
        Err(error) => return vec![Finding::bad(&row.symbol, format!("{error:#}"))],
    };
    let how = |(how, notes): (String, Vec<String>)| {
        let notes: String = notes.iter().map(|note| format!("; {note}")).collect();
        format!("{how}{}{notes}", computed(row))
    };
    let one =
        |(name, outcome): kernel::Explained| finding(&name, outcome.map(how).map_err(|error| format!("{error:#}")));
    explained.into_iter().map(one).collect()
}

/// A file that the library stands for: as people or a process name it, and what it holds.
type Source = (PathBuf, Result<ElfFile, ElfError>);

fn at_path(path: PathBuf) -> Source {
    let elf = ElfFile::open(&path);
    (path, elf)
}

fn mapped(pid: u32, mapping: Mapping) -> Source {
    let elf = mapping
        .open(pid)
        .map_err(ElfError::from)
        .and_then(|file| ElfFile::of_foreign(&file));
    (mapping.path, elf)
}

/// The files that the library stands for.
fn files_of(library: &Library, args: &FunctionsArgs) -> Result<Vec<Source>> {
    if let Some(path) = &args.lib {
        let elf = ElfFile::open(path).with_context(|| format!("failed to read {}", path.display()))?;
        let full = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let fits = library.matches(&full.to_string_lossy())
            || library.matches(&path.to_string_lossy())
            || elf.soname().is_some_and(|soname| library.matches(soname));
        return Ok(fits.then(|| at_path(path.clone())).into_iter().collect());
    }
    if let Some(pid) = args.pid {
        let mappings = discover::mappings(pid).with_context(|| format!("failed to look at process {pid}"))?;
        let wanted = mappings
            .into_iter()
            .filter(|mapping| library.matches(&mapping.path.to_string_lossy()));
        return Ok(wanted.map(|mapping| mapped(pid, mapping)).collect());
    }
    let named = PathBuf::from(&library.pattern);
    if named.is_absolute() && named.exists() {
        return Ok(vec![at_path(named)]);
    }
    let found = ldcache::find(&|name| library.matches(name));
    Ok(found.into_iter().map(at_path).collect())
}

/// Whether something cannot be hooked.
fn explain_file(
    catalog: &Catalog,
    library: &Library,
    rows: &[RowId],
    (shown, elf): &Source,
    json: bool,
    out: &mut dyn Write,
) -> Result<bool> {
    let elf = match elf {
        Ok(elf) => elf,
        Err(error) => {
            write(
                out,
                json,
                &library.name,
                Some(shown),
                &Finding::bad("*", error.to_string()),
            )?;
            return Ok(true);
        }
    };
    if !json {
        line(
            out,
            &format!("{}: {}", escaped(&library.name), escaped(&shown.display().to_string())),
        )?;
    }
    let mut wrong = false;
    for id in rows {
        for finding in findings(catalog, elf, *id)? {
            wrong |= finding.verdict.is_err();
            write(out, json, &library.name, Some(shown), &finding)?;
        }
    }
    Ok(wrong)
}

fn write(out: &mut dyn Write, json: bool, library: &str, file: Option<&Path>, finding: &Finding) -> Result<()> {
    if json {
        let object = json!({
            "layer": library,
            "file": file.map(|file| file.to_string_lossy()),
            "name": finding.name,
            "hooked": finding.verdict.as_ref().ok(),
            "refused": finding.verdict.as_ref().err(),
        });
        return line(out, &object.to_string());
    }
    let text = match &finding.verdict {
        Ok(how) => format!("  {:<32} {}", escaped(&finding.name), escaped(how)),
        Err(why) if file.is_none() => format!("{}: CANNOT: {}", escaped(library), escaped(why)),
        Err(why) => format!("  {:<32} CANNOT: {}", escaped(&finding.name), escaped(why)),
    };
    line(out, &text)
}

fn line(out: &mut dyn Write, text: &str) -> Result<()> {
    writeln!(out, "{text}").context("failed to write to stdout")
}

fn findings(catalog: &Catalog, elf: &ElfFile, id: RowId) -> Result<Vec<Finding>> {
    let Some(row) = catalog.row(id) else {
        return Ok(Vec::new());
    };
    if !row.majors.contains(elf.soname_major()) {
        return Ok(vec![Finding::good(
            &row.symbol,
            "not for this version of the library".to_owned(),
        )]);
    }
    if row.site == SiteKind::StaticProbe {
        return static_probes(elf, row);
    }
    if let Some(offset) = row.hook.offset {
        return Ok(vec![at_offset(catalog, elf, row, offset)?]);
    }
    functions(catalog, elf, id, row)
}

fn functions(catalog: &Catalog, elf: &ElfFile, id: RowId, row: &Row) -> Result<Vec<Finding>> {
    let symbols = elf.symbols_where(&|name| glob_matches(&row.symbol, name))?;
    if symbols.is_empty() {
        let all = elf.symbols()?;
        let hint = nearest(&row.symbol, all.iter().map(|symbol| symbol.name.as_str()));
        let hint = hint
            .map(|name| format!("; hint: did you mean \"{name}\"?"))
            .unwrap_or_default();
        return Ok(vec![Finding::bad(
            &row.symbol,
            format!("the file has no such function (it may be inlined){hint}"),
        )]);
    }
    let mut found = Vec::new();
    for (offset, names) in by_offset(&symbols) {
        let Some(name) = names.first().map(|symbol| symbol.name.as_str()) else {
            continue;
        };
        if catalog.find(row.library, name, elf.soname_major()) != Some(id) {
            found.push(Finding::good(
                name,
                "another row, which is more exact or comes later, describes it".to_owned(),
            ));
        } else if is_trampoline(elf, offset).unwrap_or(false) {
            found.push(Finding::good(
                name,
                "not hooked: it only jumps to another function".to_owned(),
            ));
        } else {
            let site = probe_site(elf, offset).map_err(|error| error.to_string());
            found.push(finding(
                name,
                site.and_then(|site| entry(catalog, elf, row, name, site)),
            ));
        }
    }
    Ok(found)
}

fn finding(name: &str, verdict: Result<String, String>) -> Finding {
    Finding {
        name: name.to_owned(),
        verdict,
    }
}

fn at_offset(catalog: &Catalog, elf: &ElfFile, row: &Row, offset: u64) -> Result<Finding> {
    let start = match &row.hook.from {
        None => 0,
        Some(from) => match elf.symbols_where(&|name| name == from)?.first() {
            Some(symbol) => symbol.file_offset,
            None => return Ok(Finding::bad(&row.symbol, format!("the file has no function {from}"))),
        },
    };
    let at = start.saturating_add(offset);
    let verdict = match place::site_at(elf, at) {
        Err(error) => Err(error.to_string()),
        Ok(found) if found.is_entry => {
            let names = elf.function_names(&[at]).pop().flatten();
            entry(catalog, elf, row, names.as_deref().unwrap_or_default(), found.site)
        }
        Ok(found) => inner(catalog, row, found.site),
    };
    Ok(finding(&row.symbol, verdict))
}

/// At the entry of a function.
fn entry(catalog: &Catalog, elf: &ElfFile, row: &Row, name: &str, site: Site) -> Result<String, String> {
    let wanted = returns_wanted(row);
    let refused = returns::refused(elf, name).map(str::to_owned);
    let refused = refused.or_else(machine::returns_refused).filter(|_| wanted);
    let legs = match &refused {
        Some(why) => format!("entry only: {why}"),
        None if wanted => "entry and return".to_owned(),
        None => "entry only".to_owned(),
    };
    described(catalog, row, site, &legs, wanted && refused.is_none())
}

/// Within a function.
fn inner(catalog: &Catalog, row: &Row, site: Site) -> Result<String, String> {
    if returns_wanted(row) {
        return Err("`return = true`, but no function begins there".to_owned());
    }
    place::readable_inside(row).map_err(|error| error.to_string())?;
    described(
        catalog,
        row,
        site,
        "inside a function: arguments are what their registers hold there",
        false,
    )
}

fn returns_wanted(row: &Row) -> bool {
    row.hook
        .returns
        .unwrap_or(row.may_return() && row.hook.offset.is_none())
}

fn described(catalog: &Catalog, row: &Row, site: Site, legs: &str, returns: bool) -> Result<String, String> {
    computable(catalog, row, returns, legs)?;
    let moved = if site.moved_by > 0 {
        format!(" ({} bytes in)", site.moved_by)
    } else {
        String::new()
    };
    let slow = if site.cost == Cost::SingleStepped {
        ", slow: single-stepped"
    } else {
        ""
    };
    Ok(format!("{:#x}{moved} {legs}{slow}{}", site.offset, computed(row)))
}

/// Whether what the row computes can be read.
fn computable(catalog: &Catalog, row: &Row, returns: bool, legs: &str) -> Result<(), String> {
    if !returns && row.hook.needs_return(&row.args) {
        return Err(format!(
            "its filter or aggregate needs what is known at the return, but: {legs}"
        ));
    }
    let planned = plan(catalog, row, Use::counting(row.hook.streams(), returns)).spec.hook;
    let tests = planned.test.iter().map(|test| test.of);
    let mut operands = tests.chain([planned.of, planned.by]);
    if operands.any(|operand| operand.word == wire::WORD_UNKNOWN) {
        return Err("its filter or aggregate needs an argument beyond what is captured".to_owned());
    }
    Ok(())
}

fn computed(row: &Row) -> String {
    let mut text = String::new();
    if !row.hook.filter_text.is_empty() {
        text.push_str(&format!("; filter {}", row.hook.filter_text));
    }
    match &row.hook.aggregate {
        Some(sums) => text.push_str(&format!("; {}", sums.text)),
        None => text.push_str("; a line for each call"),
    }
    if row.hook.stack {
        text.push_str(" with its stack");
    }
    text
}

fn static_probes(elf: &ElfFile, row: &Row) -> Result<Vec<Finding>> {
    let probes = elf.static_probes(&|name| glob_matches(&row.symbol, name))?;
    if probes.is_empty() {
        return Ok(vec![Finding::bad(
            &row.symbol,
            "the file has no such static probe".to_owned(),
        )]);
    }
    let one = |probe: &crate::elf::StaticProbe| -> Result<String, String> {
        let at = probe.site(elf).map_err(|error| error.to_string())?;
        static_probe::site_of(probe, row).map_err(|error| error.to_string())?;
        Ok(format!("{at:#x} static probe{}", computed(row)))
    };
    Ok(probes.iter().map(|probe| finding(&probe.name, one(probe))).collect())
}
