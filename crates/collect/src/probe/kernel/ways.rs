//! The ways in which this kernel lets a function of its own be hooked, and which of them is taken for a function.
//!
//! Owns the choice; the hooks themselves are those of [`crate::probe::kernel_hooks`].

use super::lists::{self, Hookable};
use super::symbols::Symbol;
use super::types::Types;
use crate::probe::privilege;
use crate::probe::trampoline::{self, TRIAL, Target};
use anyhow::{Context, Result};

/// A way of hooking a function of the kernel, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The function calls a program by itself: any number of calls can be open at once.
    Fentry,
    /// A probe; returns of as many calls as the kernel has room for.
    Kprobe,
}

impl Way {
    pub(crate) const ALL: [Way; 2] = [Way::Fentry, Way::Kprobe];

    /// The name used in output and by `GPUSCOPE_KERNEL_HOOKS`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Way::Fentry => "fentry",
            Way::Kprobe => "kprobe",
        }
    }

    /// `GPUSCOPE_KERNEL_HOOKS` is for tests, and for machines on which one of both does harm.
    ///
    /// # Errors
    /// It is wrong.
    pub fn forced() -> Result<Option<Way>> {
        let Some(name) = std::env::var_os("GPUSCOPE_KERNEL_HOOKS") else {
            return Ok(None);
        };
        let way = Way::ALL.into_iter().find(|way| name.to_str() == Some(way.name()));
        way.map(Some)
            .with_context(|| format!("GPUSCOPE_KERNEL_HOOKS={name:?} is neither fentry nor kprobe"))
    }
}

/// Of each way, why it cannot be taken here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ways {
    pub fentry: Result<(), String>,
    pub kprobe: Result<(), String>,
}

impl Ways {
    /// Finds out by trying; `forced` leaves the other out.
    #[must_use]
    pub fn here(forced: Option<Way>, types: &Types) -> Ways {
        let allowed = |way: Way| match forced {
            Some(other) if other != way => Err(format!("GPUSCOPE_KERNEL_HOOKS={}", other.name())),
            _ => Ok(()),
        };
        Ways {
            fentry: allowed(Way::Fentry).and_then(|()| fentry(types)),
            kprobe: allowed(Way::Kprobe).and_then(|()| lists::kprobes()),
        }
    }

    /// Why no function of the kernel can be hooked at all.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        match (&self.fentry, &self.kprobe) {
            (Err(fentry), Err(kprobe)) => Some(both(fentry, kprobe)),
            _ => None,
        }
    }

    /// Of a session that no row of the kernel is in.
    #[must_use]
    pub(crate) fn none() -> Ways {
        let none = || Err("not asked for".to_owned());
        Ways {
            fentry: none(),
            kprobe: none(),
        }
    }

    /// What a trampoline's program has to be loaded for, or why `symbol` cannot have one.
    ///
    /// # Errors
    /// It cannot have one.
    pub(crate) fn target(&self, symbol: &Symbol, types: &Types, hookable: &Hookable) -> Result<Target, String> {
        self.fentry.clone()?;
        if symbol.is_changed() {
            return Err("the compiler made this of a function".to_owned());
        }
        if hookable.traceable.is_some() && !hookable.is_traceable(&symbol.name) {
            return Err("the function is not prepared for tracers (notrace, or of a part built without)".to_owned());
        }
        Ok(Target {
            function: types.id_of(symbol.module.as_deref(), &symbol.name)?,
            module: symbol.module.clone(),
        })
    }

    /// Why `symbol` cannot have a probe.
    ///
    /// # Errors
    /// It cannot have one.
    pub fn probe(&self, symbol: &Symbol, hookable: &Hookable) -> Result<(), String> {
        self.kprobe.clone()?;
        hookable.refusal(&symbol.name).map_or(Ok(()), |why| Err(why.to_owned()))
    }

    /// The way that will be tried first for the functions of one name, and why not the better one.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn choice(&self, same: &[Symbol], types: &Types, hookable: &Hookable) -> Result<Choice, String> {
        let symbol = match same {
            [] => return Err("nothing has that name".to_owned()),
            [symbol] => symbol,
            several => return self.choice_of_several(several, hookable),
        };
        let Err(no_fentry) = self.target(symbol, types, hookable) else {
            return Ok((Way::Fentry, None));
        };
        match self.probe(symbol, hookable) {
            Ok(()) => Ok((Way::Kprobe, Some(no_fentry))),
            Err(no_kprobe) => Err(both(&no_fentry, &no_kprobe)),
        }
    }

    /// A probe can be told an address, where a name does not say which is meant.
    fn choice_of_several(&self, same: &[Symbol], hookable: &Hookable) -> Result<Choice, String> {
        let hidden = same.iter().any(|symbol| symbol.address == 0);
        let no_fentry = format!("{} functions have that name ({})", same.len(), places(same));
        let probed = same.iter().try_for_each(|symbol| self.probe(symbol, hookable));
        let hint = "the kernel hides where they are; hint: run with sudo, and with sysctl kernel.kptr_restrict below 2";
        match probed {
            Ok(()) if hidden => Err(both(&no_fentry, hint)),
            Ok(()) => Ok((Way::Kprobe, Some(no_fentry))),
            Err(no_kprobe) => Err(both(&no_fentry, &no_kprobe)),
        }
    }
}

/// Whether a function can call a program by itself: nothing but a trial tells.
///
/// # Errors
/// The kernel, or our privileges, do not allow it.
pub(crate) fn fentry(types: &Types) -> Result<(), String> {
    privilege::readable_kernel()?;
    trampoline::trial(types.id_of(None, TRIAL)?)
}

fn places(same: &[Symbol]) -> String {
    let place = |symbol: &Symbol| match &symbol.module {
        Some(module) => format!("{:#x} [{module}]", symbol.address),
        None => format!("{:#x}", symbol.address),
    };
    same.iter().map(place).collect::<Vec<_>>().join(", ")
}

/// A way, and why not a better one.
pub(crate) type Choice = (Way, Option<String>);

/// Why neither way can be taken; hints come last.
#[must_use]
pub(crate) fn both(no_fentry: &str, no_kprobe: &str) -> String {
    if no_fentry == no_kprobe {
        return no_fentry.to_owned();
    }
    let parts = |why| str::split_once(why, "; hint: ").unwrap_or((why, ""));
    let ((fentry, first), (kprobe, second)) = (parts(no_fentry), parts(no_kprobe));
    let hints = [first, second].into_iter().filter(|hint| !hint.is_empty());
    let hints: String = hints.map(|hint| format!("; hint: {hint}")).collect();
    format!("no fentry: {fentry}; no kprobe: {kprobe}{hints}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &str) -> Symbol {
        Symbol {
            name: name.to_owned(),
            address: 1,
            module: None,
        }
    }

    fn with(fentry: Result<(), String>, kprobe: Result<(), String>) -> Ways {
        Ways { fentry, kprobe }
    }

    #[test]
    fn a_function_without_a_trampoline_gets_a_probe_and_the_reason() {
        let ways = with(Ok(()), Ok(()));
        let (way, why) = ways
            .choice(&[symbol("helper.isra.0")], &Types::none(), &Hookable::default())
            .unwrap();
        assert_eq!(
            (way, why.as_deref()),
            (Way::Kprobe, Some("the compiler made this of a function"))
        );
    }

    #[test]
    fn a_function_that_tracers_are_not_let_into_is_refused_a_trampoline() {
        let hookable = Hookable {
            traceable: Some(["vfs_read".to_owned()].into()),
            ..Hookable::default()
        };
        let refused = with(Ok(()), Ok(())).target(&symbol("rm_ioctl"), &Types::none(), &hookable);
        assert!(refused.unwrap_err().contains("not prepared for tracers"));
    }

    #[test]
    fn functions_of_one_name_are_told_apart_by_where_they_are() {
        let ways = with(Ok(()), Ok(()));
        let at = |address| Symbol {
            address,
            ..symbol("seq_show")
        };
        let (way, why) = ways
            .choice(&[at(16), at(32)], &Types::none(), &Hookable::default())
            .unwrap();
        assert_eq!(
            (way, why.as_deref()),
            (Way::Kprobe, Some("2 functions have that name (0x10, 0x20)"))
        );
        let hidden = ways.choice(&[at(0), at(0)], &Types::none(), &Hookable::default());
        assert!(hidden.unwrap_err().contains("kptr_restrict"));
    }

    #[test]
    fn where_neither_works_both_reasons_are_told() {
        let hookable = Hookable {
            forbidden: ["f".to_owned()].into(),
            ..Hookable::default()
        };
        let ways = with(Err("refused".to_owned()), Ok(()));
        assert_eq!(ways.refusal(), None);
        assert_eq!(
            ways.choice(&[symbol("f")], &Types::none(), &hookable),
            Err("no fentry: refused; no kprobe: the kernel forbids probes there".to_owned())
        );
        let same = with(Err("locked".to_owned()), Err("locked".to_owned()));
        assert_eq!(same.refusal().unwrap(), "locked");
        let none = with(Err("a; hint: b".to_owned()), Err("c".to_owned()));
        assert_eq!(none.refusal().unwrap(), "no fentry: a; no kprobe: c; hint: b");
    }
}
