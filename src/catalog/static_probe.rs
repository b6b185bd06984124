//! Rows of static probes (SDT, USDT), which differ from functions: each argument is one word, wherever it lies, and
//! nothing returns.

use super::arg::Written;
use super::form::{RawFunction, Text};
use super::location::{Loc, Shape};

/// As many as `sys/sdt.h` can write.
const MOST_ARGS: u16 = 12;
/// Words that are shown as registers; those after them are shown as words of the stack.
const REGISTERS: u16 = 6;

/// The name of what a row is about, and whether that is a static probe.
///
/// # Errors
/// Neither or both are named, or the row says of a probe what only a function has.
pub(super) fn what_is_named(raw: &RawFunction) -> Result<(&Text, bool), String> {
    match (&raw.symbol, &raw.probe) {
        (Some(symbol), None) => Ok((symbol, false)),
        (None, Some(probe)) => probe_row(raw, probe.get_ref()).map(|()| (probe, true)),
        (None, None) => Err("missing field `symbol`, or `probe` for a static probe".to_owned()),
        (Some(_), Some(_)) => Err("a function has either `symbol` or `probe`, not both".to_owned()),
    }
}

fn probe_row(raw: &RawFunction, name: &str) -> Result<(), String> {
    let named = name.split_once(':');
    if !named.is_some_and(|(provider, name)| !provider.is_empty() && !name.is_empty()) {
        return Err(format!("probe \"{name}\" is not of the form \"PROVIDER:NAME\""));
    }
    let of_functions = [
        ("returns", raw.returns.is_some()),
        ("ok", !raw.ok.is_empty()),
        ("forwards", raw.forwards.is_some()),
        ("raw", raw.raw),
    ];
    if let Some((key, _)) = of_functions.iter().find(|(_, given)| *given) {
        return Err(format!(
            "probe \"{name}\": `{key}` is for functions; a static probe does not return"
        ));
    }
    if raw.args.is_none() {
        return Err(format!(
            "probe \"{name}\": missing field `args`; hint: gpuscope functions --lib FILE shows what it has"
        ));
    }
    Ok(())
}

/// The word of argument `index`.
///
/// # Errors
/// It is no single word, or there are too many.
pub(super) fn place(written: &Written, index: u16) -> Result<Loc, String> {
    let Shape::Integer(bytes) = written.shape else {
        return Err(format!(
            "argument `{}`: arguments of a static probe are integers and addresses of up to 8 bytes",
            written.name
        ));
    };
    match index {
        MOST_ARGS.. => Err(format!("a static probe has at most {MOST_ARGS} arguments")),
        REGISTERS.. => Ok(Loc::Stack {
            offset: (index - REGISTERS + 1) * 8,
            bytes: bytes.into(),
        }),
        _ => Ok(Loc::Reg {
            index: u8::try_from(index).unwrap_or_default(),
            bytes,
        }),
    }
}
