//! Names that come often are written once, and then by number.

use super::event::Value;
use super::proto::{Interned, Name};
use crate::export::Map;
use crate::text::quantity::escaped;

/// Beyond so many names of a kind each is written where it is used: memory stays bounded.
const MOST: usize = 1 << 16;

/// What arguments are called.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Key {
    Layer,
    Kernel,
    Error,
    Direction,
    Host,
    Size,
    Stream,
    Args,
    Stack,
}

/// In order.
const KEYS: [&str; 9] = [
    "layer",
    "kernel",
    "error",
    "direction",
    "host",
    "size",
    "stream",
    "args",
    "stack",
];

/// Names of one kind.
#[derive(Default)]
struct Kind {
    known: Map<Box<str>, u64>,
}

impl Kind {
    /// Its number; `fresh` gets it if it is new. `None`: there are too many.
    fn number(&mut self, name: &str, fresh: &mut Vec<Name>) -> Option<u64> {
        if let Some(iid) = self.known.get(name) {
            return Some(*iid);
        }
        if self.known.len() >= MOST {
            return None;
        }
        let iid = self.known.len() as u64 + 1;
        self.known.insert(name.into(), iid);
        fresh.push(numbered(iid, name));
        Some(iid)
    }
}

/// All names of a trace.
#[derive(Default)]
pub(crate) struct Names {
    categories: Vec<&'static str>,
    events: Kind,
    keys: [Option<u64>; KEYS.len()],
    texts: Kind,
    fresh: Interned,
}

impl Names {
    /// Of an event; `None`: its name is to be written.
    pub(crate) fn event(&mut self, name: &str) -> Option<u64> {
        self.events.number(name, &mut self.fresh.events)
    }

    /// Of a category, which are few.
    pub(crate) fn category(&mut self, name: &'static str) -> u64 {
        let known = self.categories.iter().position(|known| *known == name);
        let index = known.unwrap_or_else(|| {
            self.categories.push(name);
            let iid = self.categories.len() as u64;
            self.fresh.categories.push(numbered(iid, name));
            self.categories.len() - 1
        });
        index as u64 + 1
    }

    /// Of an argument.
    pub(crate) fn key(&mut self, key: Key) -> u64 {
        if let Some(iid) = self.keys[key as usize] {
            return iid;
        }
        let iid = self.keys.iter().flatten().count() as u64 + 1;
        self.keys[key as usize] = Some(iid);
        self.fresh.annotations.push(numbered(iid, KEYS[key as usize]));
        iid
    }

    /// A value that comes often; `None`: it is to be written.
    pub(crate) fn text(&mut self, text: &str) -> Option<Value<'static>> {
        self.texts.number(text, &mut self.fresh.texts).map(Value::TextIid)
    }

    /// Those that were not written yet.
    pub(crate) fn fresh(&mut self) -> Option<Interned> {
        let fresh = &self.fresh;
        let kinds = [&fresh.categories, &fresh.events, &fresh.annotations, &fresh.texts];
        let some = kinds.into_iter().any(|names| !names.is_empty());
        some.then(|| std::mem::take(&mut self.fresh))
    }
}

fn numbered(iid: u64, name: &str) -> Name {
    Name {
        iid: Some(iid),
        name: Some(escaped(name)),
    }
}
