//! Texts of a trace by number: each is kept once, and found again fast.

use std::collections::HashMap;

/// Different texts that are told apart; what a hostile file has beyond them is one.
const LIMIT: usize = 1 << 14;
const RECENT: usize = 1 << 8;
/// What stands for all texts beyond the limit.
pub(super) const OTHERS: &str = "(others)";

/// Texts of a trace by number.
#[derive(Debug, Clone)]
pub(super) struct Texts {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
    /// By where the text lies: rows of one batch share it.
    recent: Box<[u32; RECENT]>,
}

impl Texts {
    /// The number of `text`.
    pub(super) fn number(&mut self, text: &str) -> u32 {
        let slot = place(text);
        let guess = self.recent[slot];
        if self.texts.get(guess as usize).is_some_and(|known| **known == *text) {
            return guess;
        }
        let number = self.look_up(text);
        self.recent[slot] = number;
        number
    }

    fn look_up(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        if self.texts.len() >= LIMIT && text != OTHERS {
            return self.look_up(OTHERS);
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    /// The text of a number that was given out.
    pub(super) fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", |text| text)
    }
}

impl Default for Texts {
    fn default() -> Texts {
        Texts {
            texts: Vec::new(),
            numbers: HashMap::new(),
            recent: Box::new([0; RECENT]),
        }
    }
}

/// A slot for what lies there.
pub(super) fn place(text: &str) -> usize {
    let address = text.as_ptr() as usize;
    (address ^ (address >> 8) ^ text.len()) % RECENT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_one_number_wherever_they_lie() {
        let mut texts = Texts::default();
        let (a, b) = (String::from("cudaMalloc"), String::from("cudaMalloc"));
        assert_eq!(texts.number(&a), texts.number(&b));
        assert_ne!(texts.number("cudaFree"), texts.number(&a));
        assert_eq!(texts.text(texts.clone().number("cudaFree")), "cudaFree");
    }

    #[test]
    fn a_place_that_now_holds_another_text_is_no_mistake() {
        let mut texts = Texts::default();
        let mut place = String::from("aaaa");
        let first = texts.number(&place);
        place.replace_range(.., "bbbb");
        assert_ne!(texts.number(&place), first);
        assert_eq!(texts.number("aaaa"), first);
    }

    #[test]
    fn there_is_no_end_of_memory_for_texts() {
        let mut texts = Texts::default();
        for number in 0..LIMIT + 10 {
            texts.number(&number.to_string());
        }
        assert!(texts.texts.len() <= LIMIT + 1);
        let late = texts.number("one more");
        assert_eq!(texts.text(late), OTHERS);
    }
}
