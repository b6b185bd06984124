//! What of the kernel can be hooked, how, and why not: for people.

use super::lists::{self, Hookable, Tracepoints};
use super::look::by_name;
use super::place::Names;
use super::symbols::{self, Symbol};
use super::types::Types;
use super::ways::{Way, Ways};
use crate::catalog::{Catalog, Kind, glob_matches};
use anyhow::Result;

/// A function of the kernel or a tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    pub module: Option<String>,
    /// `fentry`, `kprobe` or `tracepoint`.
    pub how: &'static str,
    /// Why it is not by fentry.
    pub no_fentry: Option<String>,
    /// Arguments that can be shown by name, `name: KIND`.
    pub args: Vec<String>,
    /// Why it cannot be hooked.
    pub refused: Option<String>,
}

/// What the kernel says of itself, asked once: listing opens nothing and asks for nothing more.
pub struct Lister<'c> {
    catalog: &'c Catalog,
    kallsyms: String,
    types: Types,
    hookable: Hookable,
    ways: Ways,
    tracepoints: Tracepoints,
}

impl<'c> Lister<'c> {
    /// Asks for all that [`Lister::list`] may be asked of `patterns`. What could not be looked at, or cannot be hooked at all, is
    /// said by `say`.
    ///
    /// # Errors
    /// The kernel does not list its functions, or not for us.
    pub fn new(catalog: &'c Catalog, patterns: &[&str], say: &mut dyn FnMut(String)) -> Result<Lister<'c>> {
        let wanted = |name: &str| patterns.iter().any(|pattern| glob_matches(pattern, name));
        let tracepoints = Tracepoints::read(&wanted).unwrap_or_else(|error| {
            say(format!("tracepoints are not listed: {error:#}"));
            Tracepoints::none()
        });
        let types = Types::read();
        let ways = Ways::here(Way::forced()?, &types);
        if let Some(why) = ways.refusal() {
            say(format!("functions of the kernel cannot be hooked here: {why}"));
        }
        Ok(Lister {
            catalog,
            kallsyms: lists::kallsyms()?,
            types: types.with_modules(),
            hookable: Hookable::read(),
            ways,
            tracepoints,
        })
    }

    /// Everything whose name matches `pattern`; with `:`, tracepoints.
    #[must_use]
    pub fn list(&self, pattern: &str) -> Vec<Listed> {
        let names = self.tracepoints.names().filter(|name| glob_matches(pattern, name));
        let mut listed: Vec<Listed> = names.map(|name| self.tracepoint(name.clone())).collect();
        if !pattern.contains(':') {
            let found = symbols::functions(&self.kallsyms, &|name| glob_matches(pattern, name));
            listed.extend(by_name(&found).into_iter().filter_map(|same| self.function(same)));
        }
        listed
    }

    fn tracepoint(&self, name: String) -> Listed {
        let (args, refused) = match self.tracepoints.format_of(&name) {
            Ok(format) => (described(&format, self.catalog), None),
            Err(error) => (Vec::new(), Some(format!("{error:#}"))),
        };
        Listed {
            name,
            module: None,
            how: "tracepoint",
            no_fentry: None,
            args,
            refused,
        }
    }

    /// The functions of one name.
    fn function(&self, same: &[Symbol]) -> Option<Listed> {
        let symbol = same.first()?;
        let chosen = match self.ways.refusal() {
            Some(_) => Err("as all functions of this kernel".to_owned()),
            None => self.ways.choice(same, &self.types, &self.hookable),
        };
        let (way, no_fentry) = chosen.clone().unwrap_or((Way::Kprobe, None));
        let args = (same.len() == 1).then(|| args_of(symbol, &self.types, self.catalog));
        Some(Listed {
            name: symbol.name.clone(),
            module: symbol.module.clone(),
            how: way.name(),
            no_fentry,
            args: args.unwrap_or_default(),
            refused: chosen.err(),
        })
    }
}

fn args_of(symbol: &Symbol, types: &Types, catalog: &Catalog) -> Vec<String> {
    if symbol.is_changed() {
        return Vec::new();
    }
    types.names_of(symbol.module.as_deref(), &symbol.name, |names| {
        described(names, catalog)
    })
}

fn described(names: &dyn Names, catalog: &Catalog) -> Vec<String> {
    let kind = |name: &String| {
        names
            .place(std::slice::from_ref(name))
            .map_or(Kind::U64, |placed| placed.kind)
    };
    let all = names.all().into_iter();
    all.map(|name| format!("{name}: {}", kind(&name).text(catalog)))
        .collect()
}
