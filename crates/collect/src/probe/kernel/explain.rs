//! What a row would hook here, for those who write one. Hooks nothing.

use super::look::{Look, by_name};
use super::symbols::Symbol;
use super::ways::{Way, Ways};
use crate::catalog::{InKernel, Row, SiteKind};
use anyhow::{Context, Result};

/// What becomes of a row at one name of the kernel: how it is hooked and what of it is not shown, or why it cannot be.
pub type Explained = (String, Result<(String, Vec<String>)>);

/// What the kernel says of some rows, asked before any of it is looked at: explaining opens nothing and tries nothing.
pub struct Explainer {
    look: Look,
    /// How functions are hooked; `None`: no row is one.
    ways: Option<Ways>,
}

impl Explainer {
    /// Asks the kernel, and tries what it takes.
    ///
    /// # Errors
    /// `GPUSCOPE_KERNEL_HOOKS` is wrong.
    pub fn of<'r>(rows: impl Iterator<Item = &'r Row>) -> Result<Explainer> {
        let (functions, others): (Vec<&Row>, Vec<&Row>) = rows
            .filter(|row| row.in_kernel.is_some())
            .partition(|row| row.site == SiteKind::KernelFunction);
        let tracepoints: Vec<&str> = others.iter().map(|row| row.symbol.as_str()).collect();
        let mut look = Look::ahead(!functions.is_empty(), &tracepoints);
        let ways = match functions.is_empty() {
            true => None,
            false => Some(Ways::here(Way::forced()?, look.types())),
        };
        Ok(Explainer { look, ways })
    }

    /// What `row`, one of those rows, would hook here, without hooking it.
    ///
    /// # Errors
    /// Nothing has its name, or the kernel does not say.
    pub fn explain(&mut self, row: &Row) -> Result<Vec<Explained>> {
        let described = row.in_kernel.as_ref().context("is no row of the kernel")?;
        let found = self.look.matches(row.site, &row.symbol)?;
        let ways = self.ways.as_ref().filter(|_| row.site == SiteKind::KernelFunction);
        let explained = by_name(&found).into_iter().filter_map(|same| {
            let outcome = explain_one(row, described, same, ways, &mut self.look);
            Some((same.first()?.name.clone(), outcome))
        });
        Ok(explained.collect())
    }
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
