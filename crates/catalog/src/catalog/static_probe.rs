//! Rows of static probes (SDT, USDT), which differ from functions: each argument is one word, wherever it lies, and
//! nothing returns.

use super::arg::Written;
use super::form::{RawFunction, Text};
use super::location::{Loc, Shape};
use super::site::{SiteKind, check_tracepoint};

/// As many as `sys/sdt.h` can write.
const MOST_ARGS: u16 = 12;

/// The name of what a row is about, and what that is.
///
/// # Errors
/// None or several are named, or the row says of a probe what only a function has.
pub(super) fn what_is_named(raw: &RawFunction) -> Result<(&Text, SiteKind), String> {
    let named = [
        (&raw.symbol, SiteKind::Function),
        (&raw.probe, SiteKind::StaticProbe),
        (&raw.kprobe, SiteKind::KernelFunction),
        (&raw.tracepoint, SiteKind::Tracepoint),
    ];
    let mut given = named
        .into_iter()
        .filter_map(|(text, kind)| Some((text.as_ref()?, kind)));
    let place = raw.library.as_ref().filter(|_| raw.offset.is_some());
    let place = place.map(|library| (library, SiteKind::Function));
    let (text, kind) = given.next().or(place).ok_or(
        "missing field `symbol`, or `probe` for a static probe, `kprobe` for a function of the kernel, `tracepoint`",
    )?;
    if given.next().is_some() {
        return Err("a function has one of `symbol`, `probe`, `kprobe` and `tracepoint`".to_owned());
    }
    match kind {
        SiteKind::StaticProbe => probe_row(raw, text.get_ref())?,
        SiteKind::Tracepoint => check_tracepoint(text.get_ref())?,
        SiteKind::Function | SiteKind::KernelFunction => {}
    }
    Ok((text, kind))
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
    word(index, bytes)
}

/// `bytes` of word `index`.
///
/// # Errors
/// There are too many.
pub(super) fn word(index: u16, bytes: u8) -> Result<Loc, String> {
    match index {
        MOST_ARGS.. => Err(format!("at most {MOST_ARGS} arguments can be read here")),
        _ => Ok(Loc::of_word(index, bytes)),
    }
}
