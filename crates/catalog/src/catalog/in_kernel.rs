//! Rows of the kernel: its functions and tracepoints, whose arguments are also found by name.
//!
//! Owns how such a row is written. Where a name leads in the running kernel is told by `probe::kernel`.

use super::Catalog;
use super::arg::{Arg, Pass};
use super::form::{RawFunction, Text};
use super::kind::Kind;
use super::static_probe;

/// Pointers that can be followed from an argument.
const MOST_STEPS: usize = 6;
/// Bytes of a text that can be asked for.
const LONGEST_TEXT: usize = 15;

/// What a row of the kernel says beyond others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InKernel {
    /// The function, `GROUP:NAME` of the tracepoint, or a pattern for them.
    pub target: String,
    /// Part of gpuscope: that a kernel lacks it is nothing to speak of for itself.
    pub builtin: bool,
    /// Counted whoever is current, and ascribed to nobody.
    pub any_task: bool,
    /// Which arguments are shown.
    pub arguments: Arguments,
    /// Which calls are meant; `None`: all.
    pub only: Option<Only>,
}

/// How the arguments of a row of the kernel are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arguments {
    /// As those of other functions, by their order.
    Ordered,
    /// By what the kernel calls them.
    Named(Vec<Named>),
    /// All that the kernel names.
    All,
}

/// An argument that is found by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// As it is shown.
    pub name: String,
    /// As it is shown; `None`: as the kernel declares it.
    pub kind: Option<Kind>,
    /// The argument or field of the record, then fields of the structures that it leads to.
    pub path: Vec<String>,
}

impl Named {
    /// As an argument before it is known where the kernel has it: word `index`.
    ///
    /// # Errors
    /// There are too many.
    pub fn at_word(&self, index: usize) -> Result<Arg, String> {
        word_arg(&self.name, self.kind.unwrap_or(Kind::U64), 8, index)
    }
}

/// An argument that is `bytes` of word `index`.
///
/// # Errors
/// There are too many.
pub fn word_arg(name: &str, kind: Kind, bytes: u8, index: usize) -> Result<Arg, String> {
    Ok(Arg {
        name: name.to_owned(),
        kind,
        pass: Pass::Value,
        loc: static_probe::word(u16::try_from(index).unwrap_or(u16::MAX), bytes)?,
    })
}

/// A condition on an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Only {
    /// As in [`Named::path`].
    pub path: Vec<String>,
    /// What it has to be.
    pub value: OnlyValue,
}

/// What an argument has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnlyValue {
    /// This number.
    Number(u64),
    /// This text.
    Text(String),
}

/// What a row of the kernel says; `None`: it is of a file.
///
/// # Errors
/// It says what only rows of files, or of the kernel, can say.
pub(super) fn of_row(raw: &RawFunction, catalog: &Catalog, builtin: bool) -> Result<Option<InKernel>, String> {
    let Some(target) = raw.kprobe.as_ref().or(raw.tracepoint.as_ref()) else {
        let given = [
            ("process", raw.process.is_some()),
            ("only", raw.only.is_some()),
            ("name", raw.name.is_some()),
        ];
        return match given.iter().find(|(_, given)| *given) {
            Some((key, _)) => Err(format!("`{key}` is for `kprobe` and `tracepoint`")),
            None => Ok(None),
        };
    };
    let target = target.get_ref().clone();
    if raw.name.is_some() && target.contains(['*', '?']) {
        return Err("`name` is for one function, not for a pattern".to_owned());
    }
    let of_files = [
        ("memory", raw.memory.is_some()),
        ("work", raw.work.is_some()),
        ("kernel", raw.kernel.is_some()),
        ("names", raw.names.is_some()),
        ("stub", raw.stub.is_some()),
        ("majors", raw.majors.is_some()),
        ("forwards", raw.forwards.is_some()),
        ("raw", raw.raw),
        ("returns", raw.returns.is_some() && raw.tracepoint.is_some()),
        ("ok", !raw.ok.is_empty() && raw.tracepoint.is_some()),
    ];
    if let Some((key, _)) = of_files.iter().find(|(_, given)| *given) {
        return Err(format!("`{key}` is not for `kprobe` or `tracepoint`"));
    }
    let texts = raw.args.as_deref();
    let arguments = match texts {
        None => Arguments::All,
        Some(texts) if is_ordered(raw, texts) => Arguments::Ordered,
        Some(texts) => Arguments::Named(
            texts
                .iter()
                .map(|text| named(text.get_ref(), catalog))
                .collect::<Result<_, _>>()?,
        ),
    };
    let only = raw.only.as_ref().map(|text| only(text.get_ref())).transpose()?;
    Ok(Some(InKernel {
        target,
        builtin,
        any_task: raw.process == Some(false),
        arguments,
        only,
    }))
}

/// Whether arguments are written as a prototype has them. What tells which calls are meant is found by name, as then
/// are all.
fn is_ordered(raw: &RawFunction, texts: &[Text]) -> bool {
    let plain = |text: &Text| text.get_ref().contains(':') && !text.get_ref().contains('=');
    raw.kprobe.is_some() && raw.only.is_none() && !texts.is_empty() && texts.iter().all(plain)
}

/// Reads `name`, `name: KIND`, `name = path`, `name: KIND = path`.
fn named(text: &str, catalog: &Catalog) -> Result<Named, String> {
    let (left, right) = text
        .split_once('=')
        .map_or((text, None), |(left, right)| (left, Some(right)));
    let (name, kind) = left
        .split_once(':')
        .map_or((left, None), |(name, kind)| (name, Some(kind.trim())));
    let name = name.trim();
    if !is_word(name) {
        return Err(format!(
            "argument \"{text}\" is not of the form `name`, `name = argument->field` or `name: KIND = argument->field`"
        ));
    }
    let kind = kind.map(|kind| Kind::parse(kind, catalog)).transpose();
    let kind = kind.map_err(|why| format!("argument `{name}`: {why}"))?;
    let shown_whole = |kind: Kind| {
        matches!(
            kind,
            Kind::Dim3 | Kind::Struct(_) | Kind::Bytes(_) | Kind::Chars(_) | Kind::F32 | Kind::F64 | Kind::Text
        )
    };
    if kind.is_some_and(shown_whole) {
        return Err(format!(
            "argument `{name}`: arguments by name are numbers, addresses and `cstr`"
        ));
    }
    Ok(Named {
        name: name.to_owned(),
        kind,
        path: path(right.unwrap_or(name))?,
    })
}

/// Reads `argument->field.field`; both signs mean the same, the kernel's types say which it is.
fn path(text: &str) -> Result<Vec<String>, String> {
    let parts: Vec<String> = text
        .replace("->", ".")
        .split('.')
        .map(|part| part.trim().to_owned())
        .collect();
    if parts.len() > MOST_STEPS + 1 || !parts.iter().all(|part| is_word(part)) {
        return Err(format!(
            "\"{}\" is not of the form `argument` or `argument->field.field`, {MOST_STEPS} fields at most",
            text.trim()
        ));
    }
    Ok(parts)
}

/// Reads `path == 7` or `path == "text"`.
fn only(text: &str) -> Result<Only, String> {
    let form = || format!("only \"{text}\" is not of the form `argument == 7` or `argument == 'text'`");
    let (left, right) = text.split_once("==").ok_or_else(form)?;
    let right = right.trim();
    let quoted = |quote: char| right.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    let value = match quoted('\'').or_else(|| quoted('"')) {
        Some(text) if text.len() <= LONGEST_TEXT => OnlyValue::Text(text.to_owned()),
        Some(text) => return Err(format!("only: \"{text}\" is longer than {LONGEST_TEXT} bytes")),
        None => OnlyValue::Number(number(right).ok_or_else(form)?),
    };
    Ok(Only {
        path: path(left)?,
        value,
    })
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text
            .parse()
            .ok()
            .or_else(|| text.parse::<i64>().ok().map(i64::cast_unsigned)),
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The library that rows of the kernel belong to where they name none.
pub(super) const LIBRARY: &str = "linux";
