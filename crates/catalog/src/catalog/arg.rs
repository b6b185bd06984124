//! The little language of arguments: `pitch: *size (out)`.

use super::Catalog;
use super::kind::Kind;
use super::location::{Loc, Shape};

/// Whether the argument is the value or points to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// The argument is the value.
    Value,
    /// Points to a value that the callee reads.
    In,
    /// Points to a place that the callee fills; read it at return.
    Out,
    /// Points to a value that the callee reads and changes.
    InOut,
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    /// Its C name.
    pub name: String,
    /// What it, or what it points to, is.
    pub kind: Kind,
    /// Value or pointer.
    pub pass: Pass,
    /// Where it lies at entry.
    pub loc: Loc,
}

impl Arg {
    /// Whether it is a pointer whose target is worth reading at return.
    #[must_use]
    pub(crate) fn is_out(&self) -> bool {
        matches!(self.pass, Pass::Out | Pass::InOut)
    }
}

/// An argument as written, before it has a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub name: String,
    pub kind: Kind,
    pub pass: Pass,
    pub shape: Shape,
}

impl Written {
    /// The caller passes the address of a copy, which the callee may read.
    pub(super) fn by_address(&mut self) {
        self.pass = Pass::In;
        self.shape = Shape::Integer(8);
    }
}

const FLOAT: &str = "floating-point arguments travel in xmm registers, which a BPF program \
     cannot read; remove the function or write";

/// Reads `name: KIND`, `name: *KIND (in|out|inout)`.
///
/// # Errors
/// Says what is wrong and what was expected.
pub(super) fn parse_arg(text: &str, catalog: &Catalog) -> Result<Written, String> {
    let form = || format!("argument \"{text}\" is not of the form `name: KIND` or `name: *KIND (out)`");
    let (name, rest) = text.split_once(':').ok_or_else(form)?;
    let name = name.trim();
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(word) {
        return Err(form());
    }
    let rest = rest.trim();
    let (body, mark) = match rest.split_once('(') {
        Some((body, mark)) => {
            let mark = mark.strip_suffix(')').ok_or_else(form)?;
            (body.trim(), Some(mark.trim()))
        }
        None => (rest, None),
    };
    let (pointer, body) = match body.strip_prefix('*') {
        Some(body) => (true, body),
        None => (false, body),
    };
    let kind = Kind::parse(body, catalog).map_err(|why| format!("argument `{name}`: {why}"))?;
    let float = matches!(kind, Kind::F32 | Kind::F64) && !pointer;
    let pass = match (pointer || kind == Kind::Text, mark) {
        (true, Some("in")) => Pass::In,
        (true, Some("out")) => Pass::Out,
        (true, Some("inout")) => Pass::InOut,
        (true, _) => {
            return Err(format!("argument `{name}`: a pointer needs (in), (out) or (inout)"));
        }
        (false, None) if float => {
            return Err(format!("argument `{name}`: {FLOAT} `{name}: {body} (unreadable)`"));
        }
        (false, Some("unreadable")) if float => Pass::Value,
        (false, None) => Pass::Value,
        (false, Some(mark)) => {
            return Err(format!(
                "argument `{name}`: ({mark}) needs a pointer: `{name}: *{body} ({mark})`"
            ));
        }
    };
    let size = kind.bytes(catalog).ok_or_else(form)?;
    let scalar = |size: u16| u8::try_from(size).map(Shape::Integer).map_err(|_| form());
    let shape = match kind {
        _ if pass != Pass::Value => Shape::Integer(8),
        Kind::F32 => Shape::Float(4),
        Kind::F64 => Shape::Float(8),
        Kind::Dim3 | Kind::Struct(_) | Kind::Bytes(_) | Kind::Chars(_) => Shape::Aggregate(size),
        _ => scalar(size)?,
    };
    Ok(Written {
        name: name.to_owned(),
        kind,
        pass,
        shape,
    })
}
