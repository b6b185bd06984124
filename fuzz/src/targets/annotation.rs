//! Texts that a program hands to an annotation (NVTX), as the agent copies them: they may end where its memory does.
//!
//! The first byte says of what kind of characters they are, and what is known of the memory; the second how much there is room
//! for; the third how far from the end of the memory the text lies.

use gpuscope::wire::{RANGE_CUT, RANGE_UNREAD};

#[cfg(target_arch = "x86_64")]
pub fn run(input: &[u8]) {
    use crate::inside::{Copied, Island, fuzz_copy_text};

    let Some((&[how, room, beside], text)) = input.split_first_chunk() else {
        return;
    };
    let (wide, knows, most) = (how & 1 != 0, how & 2 != 0, usize::from(room) + 1);
    let island = Island::shared();
    let (at, text) = island.place(text, usize::from(beside));
    let mut to = vec![0xee_u8; most + 8];
    // SAFETY: `to` has that room; what lies at the address is what is tried
    let copied = unsafe { fuzz_copy_text(to.as_mut_ptr(), most as u32, at, wide, knows) };
    let mut memory = text.to_vec();
    memory.resize((island.end() - at) as usize, 0xa5);
    let (letters, flags) = match wide {
        true => wide_text(&memory, most),
        false => plain_text(&memory, most),
    };
    assert_eq!(
        copied,
        Copied {
            bytes: letters.len() as u32,
            flags
        }
    );
    assert_eq!(to[..letters.len()], letters);
    assert!(to[most..].iter().all(|byte| *byte == 0xee), "there was no room for it");
}

fn plain_text(memory: &[u8], most: usize) -> (Vec<u8>, u8) {
    let end = memory.iter().take(most).position(|byte| *byte == 0);
    match end {
        Some(end) => (memory[..end].to_vec(), 0),
        None if memory.len() < most => (memory.to_vec(), RANGE_UNREAD),
        None => (memory[..most].to_vec(), RANGE_CUT),
    }
}

fn wide_text(memory: &[u8], most: usize) -> (Vec<u8>, u8) {
    let mut have = String::new();
    let mut letters = memory.chunks(4);
    while have.len() + 4 <= most {
        let letter = letters
            .next()
            .and_then(|letter| letter.try_into().ok())
            .map(u32::from_le_bytes);
        match letter {
            None => return (have.into_bytes(), RANGE_UNREAD),
            Some(0) => return (have.into_bytes(), 0),
            Some(letter) => have.push(char::from_u32(letter).unwrap_or('\u{fffd}')),
        }
    }
    (have.into_bytes(), RANGE_CUT)
}

#[cfg(not(target_arch = "x86_64"))]
pub fn run(_input: &[u8]) {}
