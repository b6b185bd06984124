//! What the kernel says of the functions and tracepoints of a name: asked once, when somebody wants to know.
//!
//! Owns which of its lists are read, and when. What they say is [`super::lists`]', [`super::symbols`]' and
//! [`super::types`]' business; what follows for a hook that of [`super::ways`].

use super::lists::{self, Hookable};
use super::place::{self, Resolved};
use super::symbols::{self, Symbol};
use super::types::Types;
use super::ways::{Choice, Ways};
use crate::catalog::{Arguments, InKernel, SiteKind, glob_matches};
use crate::probe::trampoline::Target;
use anyhow::{Context, Result, anyhow};

/// Nothing of that name is there.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Absent(&'static str);

/// What the kernel says, asked once.
#[derive(Default)]
pub(super) struct Look {
    types: Option<Types>,
    hookable: Option<Hookable>,
    kallsyms: Option<String>,
}

impl Look {
    pub(super) fn types(&mut self) -> &Types {
        self.types.get_or_insert_with(Types::read)
    }

    fn hookable(&mut self) -> &Hookable {
        self.hookable.get_or_insert_with(Hookable::read)
    }

    pub(super) fn choice(&mut self, ways: &Ways, same: &[Symbol]) -> Result<Choice> {
        let types = self.types.get_or_insert_with(Types::read);
        let hookable = self.hookable.get_or_insert_with(Hookable::read);
        ways.choice(same, types, hookable).map_err(|why| anyhow!(why))
    }

    pub(super) fn target(&mut self, ways: &Ways, target: &Symbol) -> Result<Target, String> {
        let types = self.types.get_or_insert_with(Types::read);
        let hookable = self.hookable.get_or_insert_with(Hookable::read);
        ways.target(target, types, hookable)
    }

    pub(super) fn probe(&mut self, ways: &Ways, target: &Symbol) -> Result<(), String> {
        ways.probe(target, self.hookable())
    }

    pub(super) fn matches(&mut self, site: SiteKind, name: &str) -> Result<Vec<Symbol>> {
        match site {
            SiteKind::Tracepoint => tracepoints(name),
            _ => self.functions(name),
        }
    }

    /// Where the arguments lie, as far as the kernel says.
    pub(super) fn resolve(&mut self, site: SiteKind, row: &InKernel, same: &[Symbol]) -> Result<Option<Resolved>> {
        let target = same.first().context("nothing has that name")?;
        if site == SiteKind::Tracepoint {
            let (group, name) = target.name.split_once(':').context("is no tracepoint")?;
            let format = lists::format_of(group, name)?;
            return place::resolve(row, &format).map_err(|why| anyhow!(why));
        }
        if target.is_changed() {
            let note = "the compiler made this of a function: its arguments may be others and are not shown";
            return Ok(Some(Resolved::without_arguments(note.to_owned())));
        }
        if same.len() > 1 && row.arguments != Arguments::Ordered {
            let note = format!(
                "{} functions have that name; arguments by name are not shown",
                same.len()
            );
            return Ok(Some(Resolved::without_arguments(note)));
        }
        let module = target.module.as_deref();
        let found = self
            .types()
            .names_of(module, &target.name, |names| place::resolve(row, names));
        found.map_err(|why| anyhow!(why))
    }

    /// Functions of that name or pattern, and what the compiler has made of them.
    fn functions(&mut self, name: &str) -> Result<Vec<Symbol>> {
        if self.kallsyms.is_none() {
            self.kallsyms = Some(lists::kallsyms()?);
        }
        let text = self.kallsyms.as_deref().unwrap_or_default();
        let found = symbols::functions(text, &|known| glob_matches(name, known));
        if found.is_empty() {
            let words = "the kernel and its modules have no function of that name (absent, or inlined)";
            return Err(Absent(words).into());
        }
        Ok(found)
    }
}

/// Functions of one name side by side: `found` is in the order of names.
pub(super) fn by_name(found: &[Symbol]) -> Vec<&[Symbol]> {
    found.chunk_by(|one, next| one.name == next.name).collect()
}

fn tracepoints(name: &str) -> Result<Vec<Symbol>> {
    let found = lists::tracepoints(&|known| glob_matches(name, known))?;
    if found.is_empty() {
        return Err(Absent("this kernel has no such tracepoint, or its module is not loaded").into());
    }
    let symbol = |name| Symbol {
        name,
        address: 0,
        module: None,
    };
    Ok(found.into_iter().map(symbol).collect())
}
