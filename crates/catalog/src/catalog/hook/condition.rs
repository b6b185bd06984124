//! The language of `filter`: `size > 1MiB && result == 0`.

use super::Scope;
use super::number::{Number, Operand, number};
use crate::catalog::Catalog;
use crate::catalog::kind::Kind;

/// Conditions of one row.
pub(crate) const MOST_CONDITIONS: usize = 2;

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

pub(super) fn conditions(text: &str, scope: &Scope<'_>) -> Result<Vec<Condition>, String> {
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
        let time = crate::text::parse::parse_duration(text)?;
        return u64::try_from(time.as_nanos()).map_err(|_| format!("{text:?} is too long"));
    }
    let value = match text {
        "true" => Some(1),
        "false" | "NULL" | "null" => Some(0),
        _ => integer(text).or_else(|| crate::text::parse::parse_size(text).ok().map(i128::from)),
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
