//! What the kernel program does at one row of the catalogue.
//!
//! Owns the row's own flags and how much of a call is captured. What is told of launches, work and memory, and what a
//! hook computes, is laid out beside the records that come of it.

use super::hook::Hook;
use super::launch::Launch;
use super::memory::{CONTEXT_STAYS, PARTS};
use super::word::{Factor, Read, TEXTS, VALUES, WORD_NONE};
use super::work::Work;

pub const FACTORS: usize = 4;

pub const GROUND_KERNEL: u32 = 1;
pub const GROUND_ANY_TASK: u32 = 2;

pub const SIZE_SMALL: u8 = 0;
pub const SIZE_MEDIUM: u8 = 1;
pub const SIZE_LARGE: u8 = 2;

pub const SPEC_STREAM: u8 = 1;
pub const SPEC_RETURN: u8 = 2;
pub const SPEC_FALLIBLE: u8 = 4;
pub const SPEC_MEMORY: u8 = 8;
pub const SPEC_SITE: u8 = 16;
pub const SPEC_OUTER: u8 = 32;
/// Value 1 becomes the id of the kernel that is launched.
pub const SPEC_KERNEL: u8 = 64;
pub const SPEC_UNLOAD: u8 = 128;

/// What the kernel program does at one row of the catalogue.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    pub flags: u8,
    pub size: u8,
    pub stack_words: u8,
    pub values: u8,
    pub texts: u8,
    pub factors: u8,
    pub block_word: u8,
    pub block_qwords: u8,
    pub block_offset: u16,
    pub text_word: [u8; TEXTS],
    pub variant: [Factor; 2],
    pub factor: [Factor; FACTORS],
    pub value: [Read; VALUES],
    pub ok: i32,
    pub ground: u32,
    pub scale: u64,
    pub part: [Factor; PARTS],
    pub parts: u8,
    pub context_move: u8,
    /// Its calls are remembered while they are open, even if they are only counted.
    pub keep_open: u8,
    pub pad1: u8,
    pub ended: i32,
    pub launch: Launch,
    pub work: Work,
    pub hook: Hook,
}

impl Spec {
    /// Captures nothing.
    pub const EMPTY: Spec = Spec {
        flags: 0,
        size: SIZE_SMALL,
        stack_words: 0,
        values: 0,
        texts: 0,
        factors: 0,
        block_word: WORD_NONE,
        block_qwords: 0,
        block_offset: 0,
        text_word: [WORD_NONE; TEXTS],
        variant: [Factor::NONE; 2],
        factor: [Factor::NONE; FACTORS],
        value: [Read::NONE; VALUES],
        ok: 0,
        ground: 0,
        scale: 0,
        part: [Factor::NONE; PARTS],
        parts: 0,
        context_move: CONTEXT_STAYS,
        keep_open: 0,
        pad1: 0,
        ended: 0,
        launch: Launch::NONE,
        work: Work::NONE,
        hook: Hook::NONE,
    };

    /// Counts calls (with `returns`: failures and durations, too) and captures nothing.
    pub fn counting(returns: bool) -> Spec {
        Spec {
            flags: if returns { SPEC_RETURN | SPEC_FALLIBLE } else { 0 },
            ..Spec::EMPTY
        }
    }
}
