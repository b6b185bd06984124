//! Events on tracks, as bytes. They are nearly all of a trace: each is encoded once, field by field, into memory that
//! is used again. What comes seldom is encoded by `prost`, see `proto`.

use super::proto::Interned;
use prost::Message;

/// [`Event::kind`]
pub(crate) const BEGIN: u64 = 1;
/// [`Event::kind`]
pub(crate) const END: u64 = 2;
/// [`Event::kind`]
pub(crate) const INSTANT: u64 = 3;
/// [`Event::kind`]
pub(crate) const COUNTER: u64 = 4;

/// A `TrackEvent`. Its fields are to be added in the order of their numbers, in which they stand here.
#[derive(Debug, Default)]
pub(crate) struct Event(Vec<u8>);

/// Of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    Number(u64),
    Text(&'a str),
    Address(u64),
    Json(&'a str),
    TextIid(u64),
}

impl Event {
    /// Begins another one.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn category(&mut self, iid: u64) {
        number(3, iid, &mut self.0);
    }

    /// An argument. `key`: number of its name.
    pub(crate) fn note(&mut self, key: u64, value: Value<'_>) {
        let (tag, first, text) = value.parts();
        let length = 1 + varint_len(key) + varint_len(tag) + varint_len(first) + text.len();
        varint(length_delimited(4), &mut self.0);
        varint(length as u64, &mut self.0);
        number(1, key, &mut self.0);
        varint(tag, &mut self.0);
        varint(first, &mut self.0);
        self.0.extend_from_slice(text);
    }

    pub(crate) fn kind(&mut self, kind: u64) {
        number(9, kind, &mut self.0);
    }

    pub(crate) fn name_iid(&mut self, iid: u64) {
        number(10, iid, &mut self.0);
    }

    pub(crate) fn track(&mut self, uuid: u64) {
        number(11, uuid, &mut self.0);
    }

    pub(crate) fn name(&mut self, name: &str) {
        bytes(23, name.as_bytes(), &mut self.0);
    }

    /// What a counter is from now on.
    pub(crate) fn count(&mut self, value: u64) {
        number(30, value, &mut self.0);
    }

    pub(crate) fn flow(&mut self, id: u64) {
        fixed(47, id, &mut self.0);
    }
}

impl<'a> Value<'a> {
    /// Its tag; the number, or the length of the text; the text.
    fn parts(self) -> (u64, u64, &'a [u8]) {
        let text = |field: u64, text: &'a str| (length_delimited(field), text.len() as u64, text.as_bytes());
        match self {
            Value::Number(value) => (3 << 3, value, &[]),
            Value::Text(value) => text(6, value),
            Value::Address(value) => (7 << 3, value, &[]),
            Value::Json(value) => text(9, value),
            Value::TextIid(value) => (17 << 3, value, &[]),
        }
    }
}

/// Appends a packet with that event. `fresh`: names that were not written yet.
pub(crate) fn write(at_ns: u64, event: &Event, fresh: Option<&Interned>, out: &mut Vec<u8>) {
    // one sequence, which refers to names
    const SEQUENCE: [u8; 2] = [10 << 3, super::SEQUENCE as u8];
    const FLAGS: [u8; 2] = [13 << 3, super::proto::NEEDS_STATE as u8];
    let mut names = Vec::new();
    if let Some(fresh) = fresh {
        bytes(12, &fresh.encode_to_vec(), &mut names);
    }
    let event = event.0.as_slice();
    let own = 1 + varint_len(at_ns) + SEQUENCE.len() + 1 + varint_len(event.len() as u64) + event.len();
    varint(length_delimited(1), out);
    varint((own + names.len() + FLAGS.len()) as u64, out);
    number(8, at_ns, out);
    out.extend_from_slice(&SEQUENCE);
    bytes(11, event, out);
    out.extend_from_slice(&names);
    out.extend_from_slice(&FLAGS);
}

fn length_delimited(field: u64) -> u64 {
    field << 3 | 2
}

fn number(field: u64, value: u64, out: &mut Vec<u8>) {
    varint(field << 3, out);
    varint(value, out);
}

fn bytes(field: u64, value: &[u8], out: &mut Vec<u8>) {
    varint(length_delimited(field), out);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

fn fixed(field: u64, value: u64, out: &mut Vec<u8>) {
    varint(field << 3 | 1, out);
    out.extend_from_slice(&value.to_le_bytes());
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    if value < 0x80 {
        return out.push(value as u8);
    }
    let (mut all, mut length) = ([0; 10], 0);
    while value >= 0x80 {
        all[length] = value as u8 | 0x80;
        length += 1;
        value >>= 7;
    }
    all[length] = value as u8;
    out.extend_from_slice(&all[..=length]);
}

/// Bytes that [`varint`] takes.
fn varint_len(value: u64) -> usize {
    (value | 1).ilog2() as usize / 7 + 1
}
