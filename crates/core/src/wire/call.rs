//! The event of one call: its header, and how long each size of it is.

use super::bytes::{u32_at, u64_at};
use super::spec::{SIZE_LARGE, SIZE_MEDIUM, SIZE_SMALL};
use super::word::{BLOCK, REGS, STACK, TEXT, TEXTS, VALUES};

pub const EVENT_NO_RETURN: u8 = 1;
pub const EVENT_NO_ARGS: u8 = 2;
pub const EVENT_UNREADABLE: u8 = 4;
/// Not to be shown: it is none of those asked for.
pub const EVENT_HIDDEN: u8 = 8;

pub const UNREADABLE_BLOCK: u8 = 128;
pub const UNREADABLE_TEXT: [u8; TEXTS] = [64, 32];

/// Header of a call event; the words follow it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallHeader {
    pub entered: u64,
    pub duration: u64,
    pub caller: u64,
    pub result: u64,
    pub tgid: u32,
    pub tid: u32,
    pub row: u32,
    pub depth: u8,
    pub flags: u8,
    pub size: u8,
    pub unreadable: u8,
}

impl CallHeader {
    /// Reads the header of an event; `None` when `bytes` is too short for the size it claims.
    pub fn parse(bytes: &[u8]) -> Option<CallHeader> {
        if bytes.len() < SMALL_BYTES {
            return None;
        }
        let header = CallHeader {
            entered: u64_at(bytes, 0),
            duration: u64_at(bytes, 8),
            caller: u64_at(bytes, 16),
            result: u64_at(bytes, 24),
            tgid: u32_at(bytes, 32),
            tid: u32_at(bytes, 36),
            row: u32_at(bytes, 40),
            depth: bytes[44],
            flags: bytes[45],
            size: bytes[46],
            unreadable: bytes[47],
        };
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
    let mut event = vec![0; LARGE_BYTES];
    let mut put = |at: usize, bytes: &[u8]| event[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &header.entered.to_le_bytes());
    put(8, &header.duration.to_le_bytes());
    put(16, &header.caller.to_le_bytes());
    put(24, &header.result.to_le_bytes());
    put(32, &header.tgid.to_le_bytes());
    put(36, &header.tid.to_le_bytes());
    put(40, &header.row.to_le_bytes());
    put(44, &[header.depth, header.flags, header.size, header.unreadable]);
    for (index, word) in words.iter().take(REGS + STACK).enumerate() {
        let at = match index.checked_sub(REGS) {
            None => HEADER_BYTES + index * 8,
            Some(index) => SMALL_BYTES + index * 8,
        };
        put(at, &word.to_le_bytes());
    }
    event
}

/// Puts a text into an event of the largest size where the kernel could not read it.
pub fn put_text(event: &mut [u8], index: usize, text: &[u8]) {
    let start = MEDIUM_BYTES + BLOCK * 8 + index * TEXT;
    let (Some(place), Some(flag)) = (event.get_mut(start..start + TEXT), UNREADABLE_TEXT.get(index)) else {
        return;
    };
    let length = text.len().min(TEXT - 1);
    place[..length].copy_from_slice(&text[..length]);
    place[length] = 0;
    event[47] &= !flag;
}

pub const HEADER_BYTES: usize = size_of::<CallHeader>();
pub const SMALL_BYTES: usize = HEADER_BYTES + (REGS + 2) * 8;
pub const MEDIUM_BYTES: usize = SMALL_BYTES + (STACK + VALUES - 2) * 8;
pub const LARGE_BYTES: usize = MEDIUM_BYTES + BLOCK * 8 + TEXTS * TEXT;
