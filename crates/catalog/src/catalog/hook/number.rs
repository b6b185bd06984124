//! Numbers of a call, by their names in `filter` and `aggregate`: arguments, fields, `result`, `duration`, `bytes`.

use super::Scope;
use crate::catalog::arg::Arg;
use crate::catalog::kind::Kind;
use crate::catalog::path::{Place, place};
use crate::catalog::returns::Returns;

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

pub(super) fn number(text: &str, scope: &Scope<'_>) -> Result<Number, String> {
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
