//! What the kernel says of the functions and tracepoints of a name: asked once, when somebody wants to know.
//!
//! Owns which of its lists are read, and when. What they say is [`super::lists`]', [`super::symbols`]' and
//! [`super::types`]' business; what follows for a hook that of [`super::ways`].

use super::format::Format;
use super::lists::{self, Hookable, Tracepoints};
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
pub(in crate::probe) struct Absent(&'static str);

/// What the kernel says, asked once.
#[derive(Default)]
pub(in crate::probe) struct Look {
    types: Option<Types>,
    hookable: Option<Hookable>,
    kallsyms: Option<Result<String, String>>,
    /// Those that may be asked for later; `None`: the kernel is asked each time.
    tracepoints: Option<Result<Tracepoints, String>>,
}

impl Look {
    /// Asks for all that may be asked of functions and of `tracepoints`, names or patterns: later nothing is opened.
    pub(super) fn ahead(functions: bool, tracepoints: &[&str]) -> Look {
        let wanted = |name: &str| tracepoints.iter().any(|pattern| glob_matches(pattern, name));
        let asked = (!tracepoints.is_empty()).then(|| Tracepoints::read(&wanted));
        let mut look = Look {
            tracepoints: asked.map(|asked| asked.map_err(|error| format!("{error:#}"))),
            ..Look::default()
        };
        if functions {
            look.types = Some(Types::read().with_modules());
            look.hookable();
            let _ = look.kallsyms();
        }
        look
    }

    pub(super) fn types(&mut self) -> &Types {
        self.types.get_or_insert_with(Types::read)
    }

    fn hookable(&mut self) -> &Hookable {
        self.hookable.get_or_insert_with(Hookable::read)
    }

    pub(in crate::probe) fn choice(&mut self, ways: &Ways, same: &[Symbol]) -> Result<Choice> {
        let types = self.types.get_or_insert_with(Types::read);
        let hookable = self.hookable.get_or_insert_with(Hookable::read);
        ways.choice(same, types, hookable).map_err(|why| anyhow!(why))
    }

    pub(in crate::probe) fn target(&mut self, ways: &Ways, target: &Symbol) -> Result<Target, String> {
        let types = self.types.get_or_insert_with(Types::read);
        let hookable = self.hookable.get_or_insert_with(Hookable::read);
        ways.target(target, types, hookable)
    }

    pub(in crate::probe) fn probe(&mut self, ways: &Ways, target: &Symbol) -> Result<(), String> {
        ways.probe(target, self.hookable())
    }

    pub(in crate::probe) fn matches(&mut self, site: SiteKind, name: &str) -> Result<Vec<Symbol>> {
        match site {
            SiteKind::Tracepoint => self.tracepoints(name),
            _ => self.functions(name),
        }
    }

    /// Where the arguments lie, as far as the kernel says.
    pub(in crate::probe) fn resolve(
        &mut self,
        site: SiteKind,
        row: &InKernel,
        same: &[Symbol],
    ) -> Result<Option<Resolved>> {
        let target = same.first().context("nothing has that name")?;
        if site == SiteKind::Tracepoint {
            let format = self.format_of(&target.name)?;
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
        let found = symbols::functions(self.kallsyms()?, &|known| glob_matches(name, known));
        if found.is_empty() {
            let words = "the kernel and its modules have no function of that name (absent, or inlined)";
            return Err(Absent(words).into());
        }
        Ok(found)
    }

    fn kallsyms(&mut self) -> Result<&str> {
        let read = || lists::kallsyms().map_err(|error| format!("{error:#}"));
        let text = self.kallsyms.get_or_insert_with(read);
        text.as_deref().map_err(|why| anyhow!("{why}"))
    }

    fn tracepoints(&self, name: &str) -> Result<Vec<Symbol>> {
        let wanted = |known: &str| glob_matches(name, known);
        let found: Vec<String> = match &self.tracepoints {
            None => lists::tracepoints(&wanted)?,
            Some(Ok(known)) => known.names().filter(|name| wanted(name)).cloned().collect(),
            Some(Err(why)) => return Err(anyhow!("{why}")),
        };
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

    fn format_of(&self, tracepoint: &str) -> Result<Format> {
        match &self.tracepoints {
            Some(Ok(known)) => known.format_of(tracepoint),
            _ => lists::format_of(tracepoint),
        }
    }
}

/// Functions of one name side by side: `found` is in the order of names.
pub(in crate::probe) fn by_name(found: &[Symbol]) -> Vec<&[Symbol]> {
    found.chunk_by(|one, next| one.name == next.name).collect()
}
