//! `gpuscope functions --kernel`: what of the running kernel can be hooked, and how.

use super::line;
use crate::catalog::{Catalog, KERNEL_GROUPS};
use crate::cli::FunctionsArgs;
use crate::command::rights;
use crate::output::say;
use crate::probe::kernel::listing::{Listed, Lister};
use crate::text::quantity::escaped;
use anyhow::Result;
use std::collections::BTreeSet;
use std::io::Write;

/// Lists what the pattern matches; without one, what the groups of `--kernel` name. Asks the kernel, gives up its rights, and reads
/// what the kernel and its modules have said.
///
/// # Errors
/// The kernel does not list its functions, or the output cannot be written.
pub(crate) fn run(catalog: &Catalog, args: &FunctionsArgs, out: &mut dyn Write) -> Result<usize> {
    let groups = match args.pattern {
        Some(_) => Vec::new(),
        None => groups()?,
    };
    let of_groups = groups.iter().flat_map(|(_, names)| names);
    let patterns: Vec<&str> = args.pattern.iter().chain(of_groups).map(String::as_str).collect();
    let lister = Lister::new(catalog, &patterns, &mut |words| say(format_args!("gpuscope: {words}")))?;
    rights::for_reading();
    match &args.pattern {
        Some(pattern) => listed(pattern, &lister, args.json, out),
        None => list_groups(&groups, &lister, args.json, out),
    }
}

/// What a group is for, and what it names.
type Group = (&'static str, BTreeSet<String>);

fn groups() -> Result<Vec<Group>> {
    let groups = KERNEL_GROUPS.iter().map(|group| {
        let mut of_group = Catalog::default();
        of_group.add_kernel_group(group.name).map_err(anyhow::Error::msg)?;
        let words = group.text.lines().next().unwrap_or_default().trim_start_matches("# ");
        let names = of_group.rows.into_iter().filter_map(|row| row.in_kernel);
        Ok((words, names.map(|row| row.target).collect()))
    });
    groups.collect()
}

fn list_groups(groups: &[Group], lister: &Lister<'_>, json: bool, out: &mut dyn Write) -> Result<usize> {
    let mut count = 0;
    for (words, names) in groups {
        if !json {
            line(out, words)?;
        }
        for name in names {
            let found = listed(name, lister, json, out)?;
            if found == 0 && !json {
                line(out, &format!("  absent      {name}"))?;
            }
            count += found.max(1);
        }
    }
    Ok(count)
}

fn listed(pattern: &str, lister: &Lister<'_>, json: bool, out: &mut dyn Write) -> Result<usize> {
    let found = lister.list(pattern);
    for one in &found {
        line(out, &if json { as_json(one) } else { as_text(one) })?;
    }
    Ok(found.len())
}

fn as_text(one: &Listed) -> String {
    let module = one
        .module
        .as_deref()
        .map(|module| format!(" [{module}]"))
        .unwrap_or_default();
    let refused = one
        .refused
        .as_deref()
        .map(|why| format!(" refused: {why}"))
        .unwrap_or_default();
    let no_fentry = one
        .no_fentry
        .as_deref()
        .map(|why| format!(" no fentry: {why}"))
        .unwrap_or_default();
    let how = if one.refused.is_some() { "-" } else { one.how };
    escaped(&format!(
        "  {how:<11} {}({}){module}{no_fentry}{refused}",
        one.name,
        one.args.join(", ")
    ))
    .to_string()
}

fn as_json(one: &Listed) -> String {
    serde_json::json!({
        "name": one.name,
        "module": one.module,
        "how": one.how,
        "no_fentry": one.no_fentry,
        "args": one.args,
        "refused": one.refused,
    })
    .to_string()
}
