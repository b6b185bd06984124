//! `gpuscope functions`: the catalogue, and what of it a library or process has.

use super::prepare::{self, HookTexts};
mod kernel;

use super::stdout::{finish, line};
use super::{explain, rights};
use crate::catalog::{Arg, Catalog, Kind, Layer, LibraryId, Pass, Row};
use crate::cli::FunctionsArgs;
use crate::decode::class_is;
use crate::discover;
use crate::elf::{Cost, ElfFile, Site, SiteRefusal, StaticProbe, Unread, find_runtime, probe_site};
use crate::filter::known_class;
use crate::foreign::ForeignFile;
use crate::probe::static_probe::site_of;
use crate::refusal::Usage;
use crate::text::quantity::escaped;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Lists functions.
///
/// # Errors
/// A file or process cannot be read, or nothing matches.
pub(crate) fn run(args: &FunctionsArgs) -> Result<ExitCode> {
    if let Some(class) = args.pattern.as_deref().and_then(|pattern| pattern.strip_prefix('@')) {
        known_class(class).map_err(|error| Usage(error.to_string()))?;
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if let Some(file) = &args.explain {
        let status = explain::run(file, args, &mut out)?;
        finish(out)?;
        return Ok(status);
    }
    let hooks = prepare::hook_texts(&args.hooks)?;
    let listed = match args.kernel {
        true => kernel::run(&hooks.catalog()?, args, &mut out)?,
        false => list(&hooks, args, &mut out)?,
    };
    finish(out)?;
    if listed == 0 {
        bail!(nothing(args));
    }
    Ok(ExitCode::SUCCESS)
}

/// Why nothing is listed.
fn nothing(args: &FunctionsArgs) -> String {
    let place = match (&args.lib, args.pid) {
        (Some(path), _) => Some(path.display().to_string()),
        (None, Some(pid)) => Some(format!("what process {pid} maps")),
        (None, None) => None,
    };
    match (&args.pattern, place) {
        (Some(pattern), None) => format!("nothing matches {pattern:?}\nhint: a glob such as 'cudaMemcpy*', or @copy"),
        (Some(pattern), Some(place)) => {
            format!("nothing in {place} matches {pattern:?}\nhint: without a pattern all is listed that is known there")
        }
        (None, place) => format!(
            "{} has no function that is known\nhint: --lib is for libraries of CUDA, and for programs that have its \
             runtime in them; gpuscope doctor -p PID says what a process has",
            place.as_deref().unwrap_or("the catalogue")
        ),
    }
}

/// Where functions are looked for, open and unread.
enum Found {
    Nowhere,
    File(PathBuf, Unread),
    Process(Vec<(PathBuf, ForeignFile)>),
}

fn found(args: &FunctionsArgs) -> Result<Found> {
    if let Some(path) = &args.lib {
        let file = Unread::open(path).with_context(|| format!("failed to read {}", path.display()))?;
        return Ok(Found::File(path.clone(), file));
    }
    let Some(pid) = args.pid else { return Ok(Found::Nowhere) };
    let mappings = discover::mappings(pid).with_context(|| {
        format!("failed to look at process {pid}\nhint: does it exist, and is it yours? (sudo helps)")
    })?;
    let open = |mapping: discover::Mapping| Some((mapping.path.clone(), mapping.open(pid).ok()?));
    Ok(Found::Process(mappings.into_iter().filter_map(open).collect()))
}

/// Opens all that is read, gives up its rights, and reads.
fn list(hooks: &HookTexts, args: &FunctionsArgs, out: &mut dyn Write) -> Result<usize> {
    let found = found(args)?;
    rights::for_reading();
    let catalog = hooks.catalog()?;
    match found {
        Found::Nowhere => list_catalog(&catalog, args, out),
        Found::File(path, file) => {
            let elf = file
                .read()
                .with_context(|| format!("failed to read {}", path.display()))?;
            list_file(&catalog, &elf, &path, args, out)
        }
        Found::Process(files) => list_process(&catalog, &files, args, out),
    }
}

fn matches(pattern: Option<&str>, name: &str, row: Option<&Row>) -> bool {
    match (pattern, row) {
        (None, _) => true,
        (Some(pattern), row) if pattern.starts_with('@') => row.is_some_and(|row| class_is(row.class, &pattern[1..])),
        (Some(pattern), row) => {
            crate::catalog::glob_matches(pattern, name)
                || row.is_some_and(|row| crate::catalog::glob_matches(pattern, &row.api))
        }
    }
}

fn list_catalog(catalog: &Catalog, args: &FunctionsArgs, out: &mut dyn Write) -> Result<usize> {
    let rows: Vec<&Row> = catalog
        .rows
        .iter()
        .filter(|row| matches(args.pattern.as_deref(), &row.symbol, Some(row)))
        .collect();
    for row in &rows {
        let text = if args.json {
            row_json(catalog, row).to_string()
        } else {
            row_text(catalog, row)
        };
        line(out, &text)?;
    }
    Ok(rows.len())
}

fn library_name(catalog: &Catalog, row: &Row) -> String {
    catalog
        .library_with(row.library)
        .map(|library| library.name.clone())
        .unwrap_or_default()
}

fn row_text(catalog: &Catalog, row: &Row) -> String {
    let chatty = if row.chatty { " (counted, shown on request)" } else { "" };
    format!(
        "{:<8} {:<8} {}{}{chatty}",
        library_name(catalog, row),
        row.class.name(),
        row.symbol,
        prototype(catalog, row)
    )
}

fn prototype(catalog: &Catalog, row: &Row) -> String {
    if row.raw {
        return "(raw registers)".to_owned();
    }
    let args: Vec<String> = row.args.iter().map(|arg| argument(catalog, arg)).collect();
    format!("({})", args.join(", "))
}

fn argument(catalog: &Catalog, arg: &Arg) -> String {
    let kind = match arg.kind {
        Kind::Enum(id) => catalog.enums.get(usize::from(id.0)).map(|table| table.name.clone()),
        Kind::Struct(id) => catalog.structs.get(usize::from(id.0)).map(|table| table.name.clone()),
        kind => Some(kind.text(catalog)),
    };
    let kind = kind.unwrap_or_default();
    match arg.pass {
        Pass::Out if arg.kind == Kind::Text => format!("{}: {kind} (out)", arg.name),
        Pass::Value => format!("{}: {kind}", arg.name),
        Pass::In => format!("{}: *{kind}", arg.name),
        Pass::Out => format!("{}: *{kind} (out)", arg.name),
        Pass::InOut => format!("{}: *{kind} (inout)", arg.name),
    }
}

fn row_json(catalog: &Catalog, row: &Row) -> serde_json::Value {
    serde_json::json!({
        "layer": library_name(catalog, row),
        "name": row.symbol,
        "api": row.api,
        "class": row.class.name(),
        "category": row.class.category(),
        "chatty": row.chatty,
        "args": row.args.iter().map(|arg| argument(catalog, arg)).collect::<Vec<_>>(),
    })
}

fn list_process(
    catalog: &Catalog,
    files: &[(PathBuf, ForeignFile)],
    args: &FunctionsArgs,
    out: &mut dyn Write,
) -> Result<usize> {
    let mut listed = 0;
    for (path, file) in files {
        // a process maps many files that have nothing to do with CUDA
        let Ok(elf) = ElfFile::of_foreign(file) else { continue };
        listed += list_file(catalog, &elf, path, args, out).unwrap_or(0);
    }
    Ok(listed)
}

/// A function or static probe of a file.
struct Entry {
    name: String,
    /// In the file.
    offset: u64,
    probe: Option<StaticProbe>,
}

impl Entry {
    fn function(name: String, offset: u64) -> Entry {
        Entry {
            name,
            offset,
            probe: None,
        }
    }

    fn row<'a>(&self, catalog: &'a Catalog, library: LibraryId, major: Option<u32>) -> Option<&'a Row> {
        let id = match self.probe {
            Some(_) => catalog.find_probe(library, &self.name, major),
            None => catalog.find(library, &self.name, major),
        };
        catalog.row(id?)
    }

    fn site(&self, elf: &ElfFile) -> Result<Site, SiteRefusal> {
        let Some(probe) = &self.probe else {
            return probe_site(elf, self.offset);
        };
        probe.site(elf).map(|offset| Site {
            offset,
            moved_by: 0,
            cost: Cost::Emulated,
        })
    }

    /// Why the arguments that `row` names cannot be read.
    fn mismatch(&self, row: Option<&Row>) -> Option<String> {
        let (probe, row) = (self.probe.as_ref()?, row?);
        site_of(probe, row).err().map(|error| error.to_string())
    }
}

fn list_file(
    catalog: &Catalog,
    elf: &ElfFile,
    shown: &Path,
    args: &FunctionsArgs,
    out: &mut dyn Write,
) -> Result<usize> {
    let (library, entries) = entries(catalog, elf, shown)?;
    let major = elf.soname_major();
    let mut listed = 0;
    for entry in entries {
        let row = entry.row(catalog, library, major);
        if !matches(args.pattern.as_deref(), &entry.name, row) {
            continue;
        }
        if listed == 0 && !args.json {
            line(out, &escaped(&shown.display().to_string()))?;
        }
        listed += 1;
        line(out, &describe(catalog, elf, &entry, row, args.json))?;
    }
    Ok(listed)
}

fn entries(catalog: &Catalog, elf: &ElfFile, shown: &Path) -> Result<(LibraryId, Vec<Entry>)> {
    let text = shown.to_string_lossy();
    let soname = elf.soname().unwrap_or_default();
    let by_name = catalog
        .libraries
        .iter()
        .rposition(|library| library.matches(&text) || library.matches(soname));
    let runtime = catalog
        .library("runtime")
        .context("the catalogue has no runtime library")?;
    let Some(index) = by_name else {
        let found = find_runtime(elf, &|name| catalog.find(runtime, name, None).is_some())?;
        let functions = found.map(|found| found.functions).unwrap_or_default();
        return Ok((
            runtime,
            functions
                .into_iter()
                .map(|(name, offset)| Entry::function(name, offset))
                .collect(),
        ));
    };
    let library = LibraryId(index as u16);
    let prefix = match catalog.libraries[index].layer {
        Layer::Driver => "cu",
        Layer::Runtime => "cuda",
        Layer::Kernel | Layer::Custom => "\0",
    };
    let known = |name: &str| catalog.find(library, name, elf.soname_major()).is_some();
    let mut symbols = elf.symbols_where(&|name| known(name) || name.starts_with(prefix))?;
    symbols.sort_by(|a, b| a.name.cmp(&b.name));
    let functions = symbols
        .into_iter()
        .map(|symbol| Entry::function(symbol.name, symbol.file_offset));
    // those without a row, too: who writes one needs to see their arguments
    let probes = elf.static_probes(&|_| true)?.into_iter().map(|probe| Entry {
        name: probe.name.clone(),
        offset: probe.offset.unwrap_or_default(),
        probe: Some(probe),
    });
    Ok((library, functions.chain(probes).collect()))
}

fn describe(catalog: &Catalog, elf: &ElfFile, entry: &Entry, row: Option<&Row>, json: bool) -> String {
    let Entry { name, offset, probe } = entry;
    let site = entry.site(elf);
    let refusal = site.as_ref().err().map(ToString::to_string);
    let refusal = refusal.or_else(|| entry.mismatch(row));
    if json {
        return serde_json::json!({
            "name": name,
            "offset": format!("{offset:#x}"),
            "probe": site.as_ref().ok().map(|site| format!("{:#x}", site.offset)),
            "single_stepped": site.as_ref().is_ok_and(|site| site.cost == Cost::SingleStepped),
            "refused": refusal,
            "class": row.map(|row| row.class.name()),
            "known": row.is_some(),
            "static_probe": probe.as_ref().map(|probe| &probe.args),
        })
        .to_string();
    }
    let place = match (site, refusal) {
        (_, Some(refusal)) => format!("{offset:#x} {refusal}"),
        (Ok(site), _) if site.moved_by > 0 => format!("{offset:#x}+{}", site.moved_by),
        (Ok(site), _) if site.cost == Cost::SingleStepped => format!("{offset:#x} (slow)"),
        _ => format!("{offset:#x}"),
    };
    match (row, probe) {
        (None, Some(probe)) => format!(
            "  {place:<14} {:<8} {}(a static probe without a row: {})",
            "-",
            escaped(name),
            escaped(&probe.args.join(", "))
        ),
        (Some(row), _) => format!(
            "  {place:<14} {:<8} {}{}",
            row.class.name(),
            escaped(name),
            prototype(catalog, row)
        ),
        (None, None) => format!(
            "  {place:<14} {:<8} {}(not in the catalogue: raw registers, entry only)",
            "-",
            escaped(name)
        ),
    }
}
