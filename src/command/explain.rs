//! `gpuscope functions --explain FILE`: what a hook file would hook, where, and what of it cannot be, without attaching.
//!
//! Owns what is looked at, and how it is written. Which files a library stands for is `files`' business, what becomes of a row in
//! one `verdict`'s.

mod files;
mod verdict;

use super::stdout::line;
use super::{prepare, rights};
use crate::catalog::{Catalog, Library, LibraryId, Row, RowId};
use crate::cli::FunctionsArgs;
use crate::probe::kernel;
use crate::text::quantity::escaped;
use anyhow::{Context, Result};
use files::{Opened, Source, files_of};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use verdict::{Finding, computed, findings};

/// Explains `file`; the status is 1 when something of it cannot be hooked. Opens and asks for all that is read, gives up its rights,
/// and reads.
///
/// # Errors
/// The hook file is wrong, or a file that was named cannot be read.
pub(crate) fn run(file: &Path, args: &FunctionsArgs, out: &mut dyn Write) -> Result<ExitCode> {
    let built_in = Catalog::builtin()
        .context("the built-in catalogue is wrong")?
        .rows
        .len();
    let catalog = prepare::catalog(&[file.to_owned()])?;
    let parts = parts(&catalog, built_in);
    let mut found = parts
        .iter()
        .map(|part| found(&catalog, part, args))
        .collect::<Result<Vec<_>>>()?;
    rights::for_reading();
    let mut wrong = parts.is_empty();
    for (part, found) in parts.iter().zip(&mut found) {
        wrong |= match found {
            Found::Kernel(kernel) => explain_kernel(&catalog, part, kernel, args.json, out)?,
            Found::Files(files) => explain_files(&catalog, part, std::mem::take(files), args.json, out)?,
        };
    }
    Ok(if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A library of the hook file, and its rows there.
struct Part<'c> {
    library: &'c Library,
    rows: Vec<RowId>,
}

fn parts(catalog: &Catalog, built_in: usize) -> Vec<Part<'_>> {
    let mut by_library: BTreeMap<LibraryId, Vec<RowId>> = BTreeMap::new();
    for (place, row) in catalog.rows.iter().enumerate().skip(built_in) {
        by_library.entry(row.library).or_default().push(RowId(place as u32));
    }
    let part = |(id, rows)| catalog.library_with(id).map(|library| Part { library, rows });
    by_library.into_iter().filter_map(part).collect()
}

/// Where a library's rows are looked for, open and unread.
enum Found {
    Kernel(Box<kernel::Explainer>),
    Files(Vec<Opened>),
}

fn found(catalog: &Catalog, part: &Part<'_>, args: &FunctionsArgs) -> Result<Found> {
    let rows = part.rows.iter().filter_map(|id| catalog.row(*id));
    if rows.clone().any(|row| row.in_kernel.is_some()) {
        return Ok(Found::Kernel(Box::new(kernel::Explainer::of(rows)?)));
    }
    files_of(part.library, args).map(Found::Files)
}

fn explain_files(
    catalog: &Catalog,
    part: &Part<'_>,
    files: Vec<Opened>,
    json: bool,
    out: &mut dyn Write,
) -> Result<bool> {
    let files = files.into_iter().map(|file| file.read(part.library));
    let files: Vec<Source> = files.filter_map(Result::transpose).collect::<Result<_>>()?;
    if files.is_empty() {
        let what = format!(
            "no file here matches {:?}; hint: --lib FILE, or -p PID of a process that maps it",
            part.library.pattern
        );
        write(out, json, &part.library.name, None, &Finding::bad("*", what))?;
    }
    let mut wrong = files.is_empty();
    for file in files {
        wrong |= explain_file(catalog, part, &file, json, out)?;
    }
    Ok(wrong)
}

/// Whether something of the kernel cannot be hooked.
fn explain_kernel(
    catalog: &Catalog,
    part: &Part<'_>,
    kernel: &mut kernel::Explainer,
    json: bool,
    out: &mut dyn Write,
) -> Result<bool> {
    let name = &part.library.name;
    if !json {
        line(out, &format!("{}: the running kernel", escaped(name)))?;
    }
    let mut wrong = false;
    for row in part.rows.iter().filter_map(|id| catalog.row(*id)) {
        for finding in of_kernel(kernel, row) {
            wrong |= finding.verdict.is_err();
            write(out, json, name, Some(Path::new("/proc/kallsyms")), &finding)?;
        }
    }
    Ok(wrong)
}

fn of_kernel(kernel: &mut kernel::Explainer, row: &Row) -> Vec<Finding> {
    let explained = match kernel.explain(row) {
        Ok(explained) => explained,
        Err(error) => return vec![Finding::bad(&row.symbol, format!("{error:#}"))],
    };
    let how = |(how, notes): (String, Vec<String>)| {
        let notes: String = notes.iter().map(|note| format!("; {note}")).collect();
        format!("{how}{}{notes}", computed(row))
    };
    let one =
        |(name, outcome): kernel::Explained| Finding::of(&name, outcome.map(how).map_err(|error| format!("{error:#}")));
    explained.into_iter().map(one).collect()
}

/// Whether something cannot be hooked.
fn explain_file(
    catalog: &Catalog,
    part: &Part<'_>,
    (shown, elf): &Source,
    json: bool,
    out: &mut dyn Write,
) -> Result<bool> {
    let name = &part.library.name;
    let elf = match elf {
        Ok(elf) => elf,
        Err(error) => {
            write(out, json, name, Some(shown), &Finding::bad("*", error.to_string()))?;
            return Ok(true);
        }
    };
    if !json {
        let shown = shown.display().to_string();
        line(out, &format!("{}: {}", escaped(name), escaped(&shown)))?;
    }
    let mut wrong = false;
    for id in &part.rows {
        for finding in findings(catalog, elf, *id)? {
            wrong |= finding.verdict.is_err();
            write(out, json, name, Some(shown), &finding)?;
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
