//! The language of `aggregate`: `hist(size) by kind`.

use super::Scope;
use super::number::{Number, Operand, number};
use crate::catalog::arg::Pass;
use crate::catalog::hint::unknown;
use crate::catalog::kind::Kind;

/// What is computed of the calls of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Their number.
    Count,
    /// The sum of a number.
    Sum,
    /// Its smallest.
    Min,
    /// Its largest.
    Max,
    /// All of these, and the mean.
    Stats,
    /// How many lie between two powers of two.
    Hist,
}

impl Fold {
    const NAMES: [(&'static str, Fold); 6] = [
        ("count", Fold::Count),
        ("sum", Fold::Sum),
        ("min", Fold::Min),
        ("max", Fold::Max),
        ("stats", Fold::Stats),
        ("hist", Fold::Hist),
    ];
}

/// What calls are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Group {
    /// Not at all.
    All,
    /// A number; a `cstr` argument: its text.
    Number(Number),
    /// Process.
    Process,
    /// Thread.
    Thread,
    /// Name of the thread.
    Comm,
    /// Call stack.
    Stack,
}

/// `hist(size) by kind`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Aggregate {
    /// What is computed.
    pub fold: Fold,
    /// Of what; `None` of a count.
    pub of: Option<Number>,
    /// For which calls together.
    pub by: Group,
    /// As written.
    pub text: String,
}

pub(super) fn aggregate(text: &str, scope: &Scope<'_>) -> Result<Aggregate, String> {
    let (what, by) = text
        .split_once(" by ")
        .map_or((text, None), |(what, by)| (what.trim(), Some(by.trim())));
    let (name, of) = match what.trim().split_once('(') {
        Some((name, rest)) => {
            let of = rest.strip_suffix(')');
            (
                name.trim(),
                Some(of.ok_or_else(|| format!("\"{what}\" lacks its `)`"))?.trim()),
            )
        }
        None => (what.trim(), None),
    };
    let names = || Fold::NAMES.iter().map(|(name, _)| *name);
    let fold = Fold::NAMES.iter().find(|(known, _)| *known == name);
    let fold = fold.ok_or_else(|| unknown("aggregate", name, names()))?.1;
    let of = match (fold, of.filter(|of| !of.is_empty())) {
        (Fold::Count, None) => None,
        (Fold::Count, Some(_)) => return Err("`count` counts calls; write `count`".to_owned()),
        (_, None) => return Err(format!("`{name}` needs a number, such as `{name}(size)`")),
        (_, Some(of)) => Some(summable(of, scope)?),
    };
    Ok(Aggregate {
        fold,
        of,
        by: by.map_or(Ok(Group::All), |by| group(by, scope))?,
        text: text.to_owned(),
    })
}

fn summable(text: &str, scope: &Scope<'_>) -> Result<Number, String> {
    let number = number(text, scope)?;
    match number.kind {
        Kind::CStr | Kind::Text => Err(format!("`{text}` is a text, no number")),
        _ => Ok(number),
    }
}

fn group(text: &str, scope: &Scope<'_>) -> Result<Group, String> {
    let is_argument = scope.args.iter().any(|arg| arg.name == text);
    match text {
        "process" if !is_argument => Ok(Group::Process),
        "thread" if !is_argument => Ok(Group::Thread),
        "comm" if !is_argument => Ok(Group::Comm),
        "stack" if !is_argument => Ok(Group::Stack),
        _ if text.contains(',') => Err("calls are grouped by one thing; write one row for each".to_owned()),
        _ => {
            let number = number(text, scope)
                .map_err(|why| format!("{why}; calls are also grouped by `process`, `thread`, `comm` and `stack`"))?;
            let behind = matches!(number.operand, Operand::Argument(place)
                if scope.args.get(place.arg).is_some_and(|arg| arg.pass != Pass::Value));
            match number.kind {
                Kind::Text => Err(format!("`{text}`: calls are not grouped by a text that they fill in")),
                Kind::CStr if behind => Err(format!("`{text}`: a text behind a pointer is not followed")),
                _ => Ok(Group::Number(number)),
            }
        }
    }
}
