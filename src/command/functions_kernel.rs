//! `gpuscope functions --kernel`: what of the running kernel can be hooked, and how.

use super::functions::line;
use crate::catalog::{Catalog, KERNEL_GROUPS};
use crate::cli::FunctionsArgs;
use crate::output::say;
use crate::probe::kernel::listing::{Listed, Lister};
use crate::text::quantity::escaped;
use anyhow::Result;
use std::collections::BTreeSet;
use std::io::Write;

/// Lists what the pattern matches; without one, what the groups of `--kernel` name.
///
/// # Errors
/// The kernel does not list its functions, or the output cannot be written.
pub fn run(catalog: &Catalog, args: &FunctionsArgs, out: &mut dyn Write) -> Result<usize> {
    let lister = Lister::new(catalog, &mut |words| say(format_args!("gpuscope: {words}")))?;
    if let Some(pattern) = args.pattern.as_deref() {
        return listed(pattern, &lister, args.json, out);
    }
    let mut count = 0;
    for group in KERNEL_GROUPS {
        let mut of_group = Catalog::default();
        of_group.add_kernel_group(group.name).map_err(anyhow::Error::msg)?;
        let words = group.text.lines().next().unwrap_or_default().trim_start_matches("# ");
        if !args.json {
            line(out, words)?;
        }
        let names = of_group.rows.iter().filter_map(|row| row.in_kernel.as_ref());
        let names: BTreeSet<&str> = names.map(|row| row.target.as_str()).collect();
        for name in names {
            let found = listed(name, &lister, args.json, out)?;
            if found == 0 && !args.json {
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
