//! Reads the tables: columns parted by blanks, those of the Xids by bars. Numbers are hexadecimal, Xids decimal.

use super::{Class, ClassKind, Entry, Named, XidMeaning};
use crate::driver::branch::Branch;
use crate::driver::layout::{Layout, Role, field, span};

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

pub(super) fn sorted<T>(text: &'static str, parse: fn(&'static str) -> Option<T>, key: fn(&T) -> u32) -> Vec<T> {
    let mut table: Vec<T> = lines(text).filter_map(parse).collect();
    table.sort_by_key(key);
    table
}

fn number(column: Option<&str>) -> Option<u32> {
    u32::from_str_radix(column?, 16).ok()
}

/// One entry for each number; its lines stand together.
pub(super) fn entries(text: &'static str) -> Vec<Entry> {
    let mut table: Vec<Entry> = Vec::new();
    for entry in lines(text).filter_map(entry_of) {
        match table.last_mut().filter(|last| last.nr == entry.nr) {
            Some(last) => last.layouts.extend(entry.layouts),
            None => table.push(entry),
        }
    }
    table.sort_by_key(|entry| entry.nr);
    table
}

fn entry_of(line: &'static str) -> Option<Entry> {
    let mut columns = line.split(' ');
    let nr = number(columns.next())?;
    let name = columns.next()?;
    let role = Role::of(columns.next()?)?;
    Some(Entry {
        nr,
        name,
        role,
        layouts: vec![Layout::parse(columns)?],
    })
}

pub(super) fn class_of(line: &'static str) -> Option<Class> {
    let mut columns = line.split(' ');
    let number = number(columns.next())?;
    let name = columns.next()?;
    let word = columns.next()?;
    let kind = ClassKind::ALL.into_iter().find(|kind| kind.word() == word)?;
    let behind = match columns.next() {
        Some(column) => Some(field(column)?),
        None => None,
    };
    Some(Class {
        number,
        name,
        kind,
        behind,
    })
}

pub(super) fn named_of(line: &'static str) -> Option<Named> {
    let mut columns = line.split(' ');
    let number = number(columns.next())?;
    let name = columns.next()?;
    let (first, last) = match columns.next() {
        Some(column) => span(column)?,
        None => (Branch::R535, Branch::R595),
    };
    Some(Named {
        number,
        name,
        first,
        last,
    })
}

pub(super) fn xid_of(line: &'static str) -> Option<XidMeaning> {
    let mut columns = line.split('|');
    let code = columns.next()?.parse().ok()?;
    let mut next = || columns.next();
    let (name, meaning, origin) = (next()?, next()?, next()?);
    Some(XidMeaning {
        code,
        name,
        meaning,
        origin,
        action: next()?,
        then: next()?,
        others: next()?,
    })
}
