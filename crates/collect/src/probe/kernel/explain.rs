//! What a row would hook here, for those who write one. Hooks nothing.

use super::look::{Look, by_name};
use super::symbols::Symbol;
use super::ways::{Way, Ways};
use crate::catalog::{InKernel, Row, SiteKind};
use anyhow::{Context, Result};

/// What becomes of a row at one name of the kernel: how it is hooked and what of it is not shown, or why it cannot be.
pub type Explained = (String, Result<(String, Vec<String>)>);

/// What `row` would hook here, without hooking it.
///
/// # Errors
/// Nothing has its name, or the kernel does not say.
pub fn explain(row: &Row) -> Result<Vec<Explained>> {
    let mut look = Look::default();
    let described = row.in_kernel.as_ref().context("is no row of the kernel")?;
    let found = look.matches(row.site, &row.symbol)?;
    let ways = match row.site {
        SiteKind::KernelFunction => Some(Ways::here(Way::forced()?, look.types())),
        _ => None,
    };
    let explained = by_name(&found).into_iter().filter_map(|same| {
        let outcome = explain_one(row, described, same, ways.as_ref(), &mut look);
        Some((same.first()?.name.clone(), outcome))
    });
    Ok(explained.collect())
}

fn explain_one(
    row: &Row,
    described: &InKernel,
    same: &[Symbol],
    ways: Option<&Ways>,
    look: &mut Look,
) -> Result<(String, Vec<String>)> {
    let how = match ways {
        None => row.site.name().to_owned(),
        Some(ways) => {
            let (way, why) = look.choice(ways, same)?;
            let why = why.map(|why| format!(" (no fentry: {why})")).unwrap_or_default();
            format!("{} by {}{why}", row.site.name(), way.name())
        }
    };
    let resolved = look.resolve(row.site, described, same)?;
    Ok((how, resolved.map(|resolved| resolved.notes).unwrap_or_default()))
}
