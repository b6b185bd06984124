//! The event of one call: its header, and how long each size of it is.

use super::bytes::{bytes_of, read, zero};
use super::generated::*;
use std::mem::offset_of;

/// By text.
pub const UNREADABLE_TEXT: [u8; TEXTS] = [UNREADABLE_TEXT_1, UNREADABLE_TEXT_2];

pub const HEADER_BYTES: usize = size_of::<CallHeader>();
pub const SMALL_BYTES: usize = offset_of!(CallEvent, stack);
pub const MEDIUM_BYTES: usize = offset_of!(CallEvent, block);
pub const LARGE_BYTES: usize = size_of::<CallEvent>();

impl CallHeader {
    /// Reads the header of an event; `None` when `bytes` is too short for the size it claims.
    pub fn parse(bytes: &[u8]) -> Option<CallHeader> {
        let header: CallHeader = read(bytes)?;
        let claimed = match header.size {
            SIZE_SMALL => SMALL_BYTES,
            SIZE_MEDIUM => MEDIUM_BYTES,
            SIZE_LARGE => LARGE_BYTES,
            _ => return None,
        };
        (bytes.len() >= claimed).then_some(header)
    }
}

/// The event of a call of which only the words at its entry are known: registers, then stack.
pub fn entered_event(header: &CallHeader, words: &[u64]) -> Vec<u8> {
    let mut event = CallEvent {
        head: *header,
        ..zero()
    };
    let places = event.regs.iter_mut().chain(&mut event.stack);
    for (place, word) in places.zip(words) {
        *place = *word;
    }
    bytes_of(&event).to_vec()
}

/// Puts a text into an event of the largest size where the kernel could not read it.
pub fn put_text(event: &mut [u8], index: usize, text: &[u8]) {
    let start = offset_of!(CallEvent, text) + index * TEXT;
    let (Some(place), Some(flag)) = (event.get_mut(start..start + TEXT), UNREADABLE_TEXT.get(index)) else {
        return;
    };
    let length = text.len().min(TEXT - 1);
    place[..length].copy_from_slice(&text[..length]);
    place[length] = 0;
    event[offset_of!(CallEvent, head.unreadable)] &= !flag;
}
