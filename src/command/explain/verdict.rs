//! What becomes of a row of a hook file in one file: decided by the same functions as when attaching.

use crate::capture::{Use, plan};
use crate::catalog::{Catalog, Row, RowId, SiteKind, glob_matches, nearest};
use crate::elf::{Cost, ElfFile, Site, by_offset, is_trampoline, probe_site};
use crate::probe::{machine, place, returns, static_probe};
use crate::wire;
use anyhow::Result;

/// What becomes of a row at one place of one file.
pub(super) struct Finding {
    /// As it will be called.
    pub(super) name: String,
    /// Where, and how; or why not.
    pub(super) verdict: Result<String, String>,
}

impl Finding {
    pub(super) fn of(name: &str, verdict: Result<String, String>) -> Finding {
        Finding {
            name: name.to_owned(),
            verdict,
        }
    }

    fn good(name: &str, how: String) -> Finding {
        Finding::of(name, Ok(how))
    }

    pub(super) fn bad(name: &str, why: String) -> Finding {
        Finding::of(name, Err(why))
    }
}

/// What becomes of row `id` in a file.
pub(super) fn findings(catalog: &Catalog, elf: &ElfFile, id: RowId) -> Result<Vec<Finding>> {
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
            found.push(Finding::of(
                name,
                site.and_then(|site| entry(catalog, elf, row, name, site)),
            ));
        }
    }
    Ok(found)
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
    Ok(Finding::of(&row.symbol, verdict))
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

/// What is made of the calls of a row.
pub(super) fn computed(row: &Row) -> String {
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
    Ok(probes
        .iter()
        .map(|probe| Finding::of(&probe.name, one(probe)))
        .collect())
}
