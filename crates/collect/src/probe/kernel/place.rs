//! From the names that a row gives to where the running kernel has them. Pure.

use crate::catalog::{Arg, Arguments, InKernel, Kind, Loc, Named, OnlyValue, word_arg};
use crate::wire::{self, KernelPlace, KernelSite};

/// Where something lies, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    pub place: KernelPlace,
    pub kind: Kind,
}

/// What the kernel says of the arguments of a function or tracepoint.
pub trait Names {
    /// Where `path` leads.
    ///
    /// # Errors
    /// Nothing is called so, or it is no number, address or text.
    fn place(&self, path: &[String]) -> Result<Placed, String>;

    /// Everything that can be shown, in the kernel's order.
    fn all(&self) -> Vec<String>;
}

/// What names a function of which the kernel says nothing.
pub(crate) struct Nameless(pub String);

impl Names for Nameless {
    fn place(&self, _path: &[String]) -> Result<Placed, String> {
        Err(self.0.clone())
    }

    fn all(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What a row shows of each call, and which calls it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub args: Vec<Arg>,
    pub site: KernelSite,
    /// Why some arguments are not shown.
    pub notes: Vec<String>,
}

impl Resolved {
    /// Any call, without arguments, and why.
    #[must_use]
    pub(crate) fn without_arguments(why: String) -> Resolved {
        Resolved {
            notes: vec![why],
            ..Resolved::nothing()
        }
    }

    /// Any call, without arguments.
    #[must_use]
    pub(crate) fn nothing() -> Resolved {
        Resolved {
            args: Vec::new(),
            site: KernelSite::EMPTY,
            notes: Vec::new(),
        }
    }
}

/// Finds the arguments of a row; `None`: they lie where their order says.
///
/// # Errors
/// There are too many, or what tells which calls are meant cannot be found.
pub(crate) fn resolve(row: &InKernel, names: &dyn Names) -> Result<Option<Resolved>, String> {
    let named = match &row.arguments {
        Arguments::Ordered => return Ok(None),
        Arguments::Named(named) => named.clone(),
        Arguments::All => everything(names),
    };
    let mut resolved = Resolved::nothing();
    for (index, arg) in named.iter().enumerate() {
        let placed = names.place(&arg.path);
        let place = placed.as_ref().map_or(KernelPlace::default(), |placed| placed.place);
        add(&mut resolved.site, place)?;
        resolved.args.push(shown(arg, &placed, index)?);
        if let Err(why) = placed {
            resolved.notes.push(format!("{} is not shown: {why}", arg.name));
        }
    }
    if let Some(only) = &row.only {
        let placed = names.place(&only.path)?;
        resolved.site.only = add(&mut resolved.site, placed.place)?;
        set_only(&mut resolved.site, &only.value, placed.kind)?;
    }
    Ok(Some(resolved))
}

/// An argument where it was found; one that was not is shown as something that cannot be read.
fn shown(arg: &Named, placed: &Result<Placed, String>, index: usize) -> Result<Arg, String> {
    let Ok(placed) = placed else {
        let lost = arg.at_word(index)?;
        return Ok(Arg {
            loc: Loc::Float { index: 0 },
            ..lost
        });
    };
    let kind = arg.kind.unwrap_or(placed.kind);
    let bytes = if kind == Kind::CStr {
        8
    } else {
        value_bytes(&placed.place)
    };
    word_arg(&arg.name, kind, bytes, index)
}

/// As many as can be read, with as many texts as an event holds.
fn everything(names: &dyn Names) -> Vec<Named> {
    let mut texts = 0;
    let mut shown = names.all();
    shown.retain(|name| {
        let is_text = names
            .place(std::slice::from_ref(name))
            .is_ok_and(|placed| placed.kind == Kind::CStr);
        texts += usize::from(is_text);
        !is_text || texts <= wire::TEXTS
    });
    let named = shown.into_iter().map(|name| Named {
        path: vec![name.clone()],
        name,
        kind: None,
    });
    named.take(wire::PLACES - 1).collect()
}

/// Bytes of what a place yields. Where its last pointer leads is an address.
fn value_bytes(place: &KernelPlace) -> u8 {
    if place.flags & (wire::KERNEL_ADDRESS | wire::KERNEL_IN_RECORD) != 0 {
        8
    } else {
        place.bytes
    }
}

fn add(site: &mut KernelSite, place: KernelPlace) -> Result<u32, String> {
    let index = site.places;
    let free = site.place.get_mut(index as usize).ok_or("too many arguments")?;
    *free = place;
    site.places += 1;
    Ok(index)
}

fn set_only(site: &mut KernelSite, value: &OnlyValue, kind: Kind) -> Result<(), String> {
    match (value, kind) {
        (OnlyValue::Number(number), kind) if kind != Kind::CStr => site.only_value = *number,
        (OnlyValue::Text(text), Kind::CStr) => {
            let bytes = text.as_bytes();
            site.only_text
                .get_mut(..bytes.len())
                .ok_or("`only`: the text is too long")?
                .copy_from_slice(bytes);
            site.only_bytes = bytes.len() as u32 + 1;
        }
        _ => return Err("`only` compares a number with a text".to_owned()),
    }
    Ok(())
}

/// The kind of an integer.
#[must_use]
pub(crate) fn number_kind(bytes: u8, signed: bool) -> Kind {
    match (bytes, signed) {
        (1, false) => Kind::U8,
        (1, true) => Kind::I8,
        (2, false) => Kind::U16,
        (2, true) => Kind::I16,
        (4, false) => Kind::U32,
        (4, true) => Kind::I32,
        (_, false) => Kind::U64,
        (_, true) => Kind::I64,
    }
}
