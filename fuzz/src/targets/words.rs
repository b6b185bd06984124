//! How many words above a return address the agent copies: never one that is not there.
//!
//! The first two bytes say where the stack ends, the next one how many words are wanted, the last one how many pages are known
//! to be there.

#[cfg(target_arch = "x86_64")]
pub fn run(input: &[u8]) {
    use crate::inside::{Island, PAGE, fuzz_words_above};

    let Some((&[low, high, words, pages], _)) = input.split_first_chunk() else {
        return;
    };
    let island = Island::shared();
    let words = u32::from(words);
    let beside = u64::from(u16::from_le_bytes([low, high])) & !7;
    let sp = (island.end() - 8).saturating_sub(beside).max(island.begin());
    let there = (island.end() - sp) / 8 - 1;
    // the page that the pointer is on is known at the most, or the next one where that is there, too
    let next = island.end() - (sp & !(PAGE as u64 - 1)) > PAGE as u64;
    let pages = u32::from(pages % 3).min(1 + u32::from(next));
    // SAFETY: a number of words is asked for; none is copied
    let may = unsafe { fuzz_words_above(sp, words, pages) };
    assert!(
        may <= words && u64::from(may) <= there,
        "{may} of {words}, where {there} are"
    );
    // a stack is no longer than what is mapped, and the map says how long that is
    assert!(
        may == words || u64::from(may) == there,
        "{may} of {words}, where {there} are"
    );
}

#[cfg(not(target_arch = "x86_64"))]
pub fn run(_input: &[u8]) {}
