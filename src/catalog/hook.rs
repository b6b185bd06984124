//! What only a user's file says of a row: where else than at a symbol it lies, which of its calls count, and what is
//! summed up of them in the kernel.
//!
//! Owns the little languages of `filter` (`size > 1MiB && result == 0`) and `aggregate` (`hist(size) by kind`).

use super::Catalog;
use super::arg::{Arg, Pass};
use super::form::{RawFunction, Text};
use super::hint::unknown;
use super::kind::Kind;
use super::path::{Place, place};
use super::row::{EnumId, Returns};

/// Conditions of one row.
pub const MOST_CONDITIONS: usize = 2;

/// A number of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// Of an argument.
    Argument(Place),
    /// The row's `bytes`.
    Bytes,
    /// What the call returned.
    Result,
    /// How long it took, ns.
    Duration,
}

/// A number of a call, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Number {
    /// Where it comes from.
    pub operand: Operand,
    /// What it is; its size says how many bytes count.
    pub kind: Kind,
}

impl Number {
    /// Whether it may be less than 0.
    #[must_use]
    pub fn is_signed(self) -> bool {
        matches!(self.kind, Kind::I8 | Kind::I16 | Kind::I32 | Kind::I64 | Kind::Enum(_))
    }

    /// Whether it is known only once the call has returned.
    #[must_use]
    pub fn needs_return(self, args: &[Arg]) -> bool {
        match self.operand {
            Operand::Result | Operand::Duration => true,
            Operand::Argument(place) => args.get(place.arg).is_some_and(Arg::is_out),
            Operand::Bytes => false,
        }
    }
}

/// How a number is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `==`
    Equal,
    /// `!=`
    Different,
    /// `&`: at least one of these bits is set.
    AnyBit,
}

/// Longer signs come before those that they begin with.
const COMPARISONS: [(&str, Comparison); 7] = [
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("!=", Comparison::Different),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
    ("&", Comparison::AnyBit),
];

/// `size > 1MiB`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Condition {
    /// What is compared.
    pub number: Number,
    /// How.
    pub comparison: Comparison,
    /// With what; a signed one in two's complement.
    pub value: u64,
}

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
    let conditions = filter.map(|text| conditions(text.get_ref(), scope).map_err(|why| (text, why)));
    let sums = raw.aggregate.as_ref();
    let aggregate = sums.map(|text| aggregate(text.get_ref(), scope).map_err(|why| (text, why)));
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

fn conditions(text: &str, scope: &Scope<'_>) -> Result<Vec<Condition>, String> {
    if text.contains("||") {
        return Err("`||` is not known; write one row for each".to_owned());
    }
    let parts: Vec<&str> = text.split("&&").map(str::trim).collect();
    if parts.len() > MOST_CONDITIONS {
        return Err(format!("at most {MOST_CONDITIONS} conditions, found {}", parts.len()));
    }
    parts.into_iter().map(|part| condition(part, scope)).collect()
}

fn condition(text: &str, scope: &Scope<'_>) -> Result<Condition, String> {
    let form = || format!("condition \"{text}\" is not of the form `size > 1MiB`; signs are < <= > >= == != &");
    let at = text.find(['<', '>', '=', '!', '&']).ok_or_else(form)?;
    let (left, rest) = text.split_at(at);
    let sign = COMPARISONS.iter().find(|(sign, _)| rest.starts_with(sign));
    let (sign, comparison) = sign.copied().ok_or_else(form)?;
    let number = number(left.trim(), scope)?;
    if matches!(number.kind, Kind::CStr | Kind::Text) {
        return Err(format!("`{}` is a text; only numbers are compared", left.trim()));
    }
    let value = constant(rest.get(sign.len()..).unwrap_or_default().trim(), number, scope.catalog)?;
    if comparison == Comparison::AnyBit && number.is_signed() {
        return Err(format!("`&` needs an unsigned number, `{}` is signed", left.trim()));
    }
    Ok(Condition {
        number,
        comparison,
        value,
    })
}

/// Reads `12`, `-1`, `0x10`, `1MiB`, `10us`, `true`, `NULL`, or a name of the number's enum.
fn constant(text: &str, number: Number, catalog: &Catalog) -> Result<u64, String> {
    if number.operand == Operand::Duration {
        let time = crate::cli::parse_duration(text)?;
        return u64::try_from(time.as_nanos()).map_err(|_| format!("{text:?} is too long"));
    }
    let value = match text {
        "true" => Some(1),
        "false" | "NULL" | "null" => Some(0),
        _ => integer(text).or_else(|| crate::cli::parse_size(text).ok().map(i128::from)),
    };
    let named = || match number.kind {
        Kind::Enum(id) => {
            let values = catalog.enums.get(usize::from(id.0))?.values();
            let (value, _) = values.iter().find(|(_, name)| name == text)?;
            Some(i128::from(*value as i32))
        }
        _ => None,
    };
    let value = value.or_else(named).ok_or_else(|| {
        format!(
            "{text:?} is no number, such as 12, 0x10, 1MiB{}",
            names_of(number, catalog)
        )
    })?;
    let bits = 8 * u32::from(number.kind.bytes(catalog).unwrap_or(8).min(8));
    let range = if number.is_signed() {
        -(1i128 << (bits - 1))..1i128 << (bits - 1)
    } else {
        0..1i128 << bits
    };
    if !range.contains(&value) {
        return Err(format!("{text} is outside of what {bits} bits can hold here"));
    }
    Ok(value as u64)
}

fn names_of(number: Number, catalog: &Catalog) -> String {
    match number.kind {
        Kind::Enum(id) => {
            let name = catalog.enums.get(usize::from(id.0)).map(|table| table.name.as_str());
            format!(", or a name of enum {}", name.unwrap_or("?"))
        }
        _ => String::new(),
    }
}

fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let value = match digits.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok()?,
        None => digits.parse::<u64>().ok()?,
    };
    Some(sign * i128::from(value))
}

fn number(text: &str, scope: &Scope<'_>) -> Result<Number, String> {
    let is_argument = |name: &str| scope.args.iter().any(|arg| arg.name == name);
    match text {
        "result" if !is_argument(text) => result_kind(scope).map(|kind| Number {
            operand: Operand::Result,
            kind,
        }),
        "duration" if !is_argument(text) => Ok(Number {
            operand: Operand::Duration,
            kind: Kind::U64,
        }),
        "bytes" if !is_argument(text) && scope.has_bytes => Ok(Number {
            operand: Operand::Bytes,
            kind: Kind::Size,
        }),
        _ => {
            let place = place(text, scope.args, scope.catalog)
                .map_err(|why| format!("{why}; beside arguments there are `result`, `duration` and `bytes`"))?;
            let kind = kind_at(text, place, scope);
            if matches!(kind, Kind::F32 | Kind::F64) {
                return Err(format!(
                    "`{text}` is a floating-point number, which a BPF program cannot compare"
                ));
            }
            Ok(Number {
                operand: Operand::Argument(place),
                kind,
            })
        }
    }
}

fn result_kind(scope: &Scope<'_>) -> Result<Kind, String> {
    match scope.returns {
        Returns::Error => Ok(scope.errors.map_or(Kind::I32, Kind::Enum)),
        Returns::I32 => Ok(Kind::I32),
        Returns::U32 => Ok(Kind::U32),
        Returns::I64 => Ok(Kind::I64),
        Returns::U64 => Ok(Kind::U64),
        Returns::Size => Ok(Kind::Size),
        Returns::Ptr | Returns::CStr => Ok(Kind::Ptr),
        Returns::Void => Err("`result`: the function returns nothing".to_owned()),
    }
}

/// What lies at a place that was written as `text`.
fn kind_at(text: &str, place: Place, scope: &Scope<'_>) -> Kind {
    let arg = scope.args.get(place.arg);
    let kind = arg.map_or(Kind::U64, |arg| arg.kind);
    match (text.split_once('.'), kind) {
        _ if text.contains('@') => Kind::U64,
        (Some((_, path)), Kind::Struct(id)) => {
            let table = scope.catalog.structs.get(usize::from(id.0));
            let field = table.and_then(|table| table.field(path));
            field.map_or(Kind::U64, |field| field.kind)
        }
        (Some(_), _) => Kind::U32,
        (None, kind) => kind,
    }
}

fn aggregate(text: &str, scope: &Scope<'_>) -> Result<Aggregate, String> {
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

#[cfg(test)]
#[path = "hook_tests.rs"]
mod tests;
