//! How numbers, times and names of others are written and read: units, words, text that cannot harm a terminal, lines as
//! wide as one.
//!
//! Knows no other module and what nothing is about. Pure.

pub mod fit;
pub mod json;
pub mod object;
pub mod parse;
pub mod quantity;
