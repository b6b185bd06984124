//! The messages of an Arrow stream: where each begins and ends. Decodes nothing of what they hold.
//!
//! Lengths come from the stream and are not believed: memory is taken as bytes arrive, and up to a limit.

use arrow_ipc::{Message, MessageHeader, root_as_message};
use std::io::{self, Read};
use std::ops::Range;

/// Before each message but in streams of Arrow before 0.15, which gpuscope never wrote.
const MARK: [u8; 4] = [0xff; 4];
/// Mark and length.
const PREFIX: usize = 8;
/// What stands behind the last message.
pub(super) const END: [u8; PREFIX] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
/// Of what describes a message; the longest is that of the schema, with the command line in it.
const LARGEST_HEAD: usize = 16 << 20;
/// Of the data of a message, as they are and unpacked.
pub(super) const LARGEST_BODY: usize = 256 << 20;

/// A message: its bytes in the stream, and those of its parts in them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub bytes: Vec<u8>,
    pub head: Range<usize>,
    pub body: Range<usize>,
    pub holds: Holds,
}

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Schema,
    /// The texts of a column, by the number of its dictionary.
    Texts(i64),
    /// So many rows.
    Rows(i64),
}

/// What comes next in a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Message(Frame),
    /// The mark of its end.
    End,
    /// Nothing, and no mark.
    Missing,
    /// A part of a message.
    Part,
    /// Something else, or longer than any message is.
    Foreign(String),
}

/// Reads the next message of `from`.
///
/// # Errors
/// `from` cannot be read.
pub(super) fn next(from: &mut impl Read) -> io::Result<Next> {
    let mut bytes = Vec::with_capacity(1 << 12);
    match fill(from, &mut bytes, PREFIX)? {
        0 => return Ok(Next::Missing),
        PREFIX => {}
        _ if MARK.starts_with(&bytes[..bytes.len().min(4)]) => return Ok(Next::Part),
        _ => return Ok(foreign("no message begins there")),
    }
    if bytes == END {
        return Ok(Next::End);
    }
    let Some(length) = head_length(&bytes) else {
        return Ok(foreign("no message begins there"));
    };
    if fill(from, &mut bytes, length)? < length {
        return Ok(Next::Part);
    }
    let head = PREFIX..bytes.len();
    let (holds, length) = match described(&bytes[head.clone()]) {
        Ok(described) => described,
        Err(why) => return Ok(Next::Foreign(why)),
    };
    if fill(from, &mut bytes, length)? < length {
        return Ok(Next::Part);
    }
    Ok(Next::Message(Frame {
        body: head.end..bytes.len(),
        head,
        bytes,
        holds,
    }))
}

fn foreign(why: &str) -> Next {
    Next::Foreign(why.to_owned())
}

fn head_length(prefix: &[u8]) -> Option<usize> {
    let (mark, length) = prefix.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length.first_chunk()?) as usize;
    (*mark == MARK && length <= LARGEST_HEAD).then_some(length)
}

/// What a message holds, and the length of its body.
fn described(head: &[u8]) -> Result<(Holds, usize), String> {
    let message = root_as_message(head).map_err(|_| "a message is damaged".to_owned())?;
    let holds = holds(message)?;
    let length = usize::try_from(message.bodyLength()).ok();
    let length = length.filter(|length| *length <= LARGEST_BODY);
    length
        .map(|length| (holds, length))
        .ok_or_else(|| format!("a message says that it has {} bytes", message.bodyLength()))
}

fn holds(message: Message<'_>) -> Result<Holds, String> {
    match message.header_type() {
        MessageHeader::Schema => Ok(Holds::Schema),
        MessageHeader::RecordBatch => {
            let rows = message.header_as_record_batch().ok_or("a message has no rows")?;
            Ok(Holds::Rows(rows.length()))
        }
        MessageHeader::DictionaryBatch => message
            .header_as_dictionary_batch()
            .filter(|texts| !texts.isDelta())
            .map(|texts| Holds::Texts(texts.id()))
            .ok_or_else(|| "texts are not whole".to_owned()),
        other => Err(format!("a message is of kind {}, which no recording has", other.0)),
    }
}

/// Appends up to `length` bytes; how many there were.
fn fill(from: &mut impl Read, bytes: &mut Vec<u8>, length: usize) -> io::Result<usize> {
    from.by_ref().take(length as u64).read_to_end(bytes)
}
