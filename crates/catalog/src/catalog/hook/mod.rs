//! What only a user's file says of a row: where else than at a symbol it lies, which of its calls count, and what is
//! summed up of them in the kernel.
//!
//! Owns whether these agree with each other and with the row; their little languages are one file each.

mod aggregate;
mod condition;
mod number;

pub(crate) use aggregate::Aggregate;
pub use aggregate::{Fold, Group};
pub(crate) use condition::{Comparison, Condition};
pub use number::{Number, Operand};

use super::Catalog;
use super::arg::Arg;
use super::form::{RawFunction, Text};
use super::id::EnumId;
use super::kind::Kind;
use super::returns::Returns;

/// What a user's row asks for beside its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hook {
    /// Bytes from the start of the file, or from the row's symbol.
    pub offset: Option<u64>,
    /// The symbol that `offset` counts from.
    pub from: Option<String>,
    /// Whether a return probe is wanted; `None`: as rows are otherwise.
    pub returns: Option<bool>,
    /// All have to hold.
    pub filter: Vec<Condition>,
    /// As written.
    pub filter_text: String,
    /// Summed up in the kernel.
    pub aggregate: Option<Aggregate>,
    /// The stack of each call is shown.
    pub stack: bool,
    /// Calls become lines.
    pub stream: Option<bool>,
}

impl Hook {
    /// Whether calls become lines.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.stream.unwrap_or(self.aggregate.is_none())
    }

    /// Whether the kernel sums calls up: those that pass a filter are counted, too.
    #[must_use]
    pub fn sums_up(&self) -> bool {
        self.aggregate.is_some() || !self.filter.is_empty()
    }

    /// Whether the kernel takes stacks for it.
    #[must_use]
    pub fn takes_stacks(&self) -> bool {
        self.stack || self.aggregate.as_ref().is_some_and(|sums| sums.by == Group::Stack)
    }

    /// Every number that it needs.
    pub fn numbers(&self) -> impl Iterator<Item = Number> + '_ {
        let sums = self.aggregate.as_ref();
        let by = sums.and_then(|sums| match sums.by {
            Group::Number(number) => Some(number),
            _ => None,
        });
        let filter = self.filter.iter().map(|condition| condition.number);
        filter.chain(sums.and_then(|sums| sums.of)).chain(by)
    }

    /// What it cannot do where its function is seen at entry only.
    #[must_use]
    pub fn needs_return(&self, args: &[Arg]) -> bool {
        self.numbers().any(|number| number.needs_return(args))
    }
}

/// What the numbers of a row mean.
pub(super) struct Scope<'a> {
    pub args: &'a [Arg],
    pub catalog: &'a Catalog,
    pub returns: Returns,
    /// Enum of the library's error codes.
    pub errors: Option<EnumId>,
    pub has_bytes: bool,
}

/// Reads what `raw` says; the text that is wrong comes with the complaint.
///
/// # Errors
/// Names what was found and what was expected.
pub(super) fn parse<'a>(raw: &'a RawFunction, named: &'a Text, scope: &Scope<'_>) -> Result<Hook, (&'a Text, String)> {
    let filter = raw.filter.as_ref();
    let conditions = filter.map(|text| condition::conditions(text.get_ref(), scope).map_err(|why| (text, why)));
    let sums = raw.aggregate.as_ref();
    let aggregate = sums.map(|text| aggregate::aggregate(text.get_ref(), scope).map_err(|why| (text, why)));
    let hook = Hook {
        offset: raw.offset.as_ref().map(|offset| *offset.get_ref()),
        from: raw
            .symbol
            .as_ref()
            .filter(|_| raw.offset.is_some())
            .map(|symbol| symbol.get_ref().clone()),
        returns: raw.at_return,
        filter: conditions.transpose()?.unwrap_or_default(),
        filter_text: filter.map(|text| text.get_ref().clone()).unwrap_or_default(),
        aggregate: aggregate.transpose()?,
        stack: raw.stack,
        stream: raw.stream,
    };
    consistent(raw, &hook, scope).map_err(|why| (filter.or(sums).unwrap_or(named), why))?;
    Ok(hook)
}

fn consistent(raw: &RawFunction, hook: &Hook, scope: &Scope<'_>) -> Result<(), String> {
    let inside = hook.offset.is_some() && hook.from.is_some();
    if raw.kprobe.is_some() || raw.tracepoint.is_some() {
        in_kernel(raw, hook)?;
    }
    let never =
        raw.probe.is_some() || raw.tracepoint.is_some() || raw.entry_only || inside || hook.returns == Some(false);
    if hook.returns == Some(true) && never {
        return Err("`return = true` at a place that does not return".to_owned());
    }
    let by_default = hook.returns.is_none() && hook.offset.is_some();
    if hook.needs_return(scope.args) && (never || by_default) {
        let hint = if by_default && !inside {
            "; hint: return = true"
        } else {
            ""
        };
        return Err(format!(
            "what a call returns, fills in or takes as time is known at its return, which this row does not see{hint}"
        ));
    }
    if hook.stack && !hook.streams() {
        return Err("`stack` is shown with lines, which this row has none of; write `by stack` to sum up by stack, or `stream = true`".to_owned());
    }
    if hook.stream == Some(false) && hook.aggregate.is_none() && raw.memory.is_none() {
        return Err("`stream = false` needs `aggregate`; a row that is only counted is `chatty = true`".to_owned());
    }
    Ok(())
}

fn in_kernel(raw: &RawFunction, hook: &Hook) -> Result<(), String> {
    let text = |number: Number| number.kind == Kind::CStr;
    let by_text = hook
        .aggregate
        .as_ref()
        .is_some_and(|sums| matches!(sums.by, Group::Number(number) if text(number)));
    let given = [
        ("offset", raw.offset.is_some()),
        ("return", raw.at_return.is_some()),
        ("stack", hook.takes_stacks()),
        ("by TEXT", by_text),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((key, _)) => Err(format!("`{key}` is not for `kprobe` or `tracepoint`")),
        None => Ok(()),
    }
}

/// The name of a place that is no symbol.
pub(super) fn place_name(raw: &RawFunction, offset: u64) -> String {
    let from = raw.symbol.as_ref().or(raw.library.as_ref());
    format!("{}+{offset:#x}", from.map_or("", |from| from.get_ref()))
}

#[cfg(test)]
mod tests;
