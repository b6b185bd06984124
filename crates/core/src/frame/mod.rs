//! Frames of call stacks: as they are shown, in words and in JSON.
//!
//! How they are found is `stack`'s business.

pub mod json;
pub mod lines;
pub mod path;

use std::cell::OnceCell;

/// A call stack that many lines may show.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// Innermost first.
    pub frames: Vec<Frame>,
    text: OnceCell<String>,
}

impl Shown {
    /// Of `frames`, innermost first.
    #[must_use]
    pub fn new(frames: Vec<Frame>) -> Shown {
        Shown {
            frames,
            text: OnceCell::new(),
        }
    }

    /// What `render` makes of the frames; it is asked once.
    pub fn text(&self, render: impl FnOnce(&[Frame]) -> String) -> &str {
        self.text.get_or_init(|| render(&self.frames))
    }
}

/// What a frame runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    Native,
    Python,
}

impl Language {
    /// The name in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Language::Native => "native",
            Language::Python => "python",
        }
    }
}

/// One frame. Names come from the traced program: escape them before they are shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Demangled; an address in hexadecimal where no name is known.
    pub function: String,
    /// Base name of the file that holds the code.
    pub module: Option<String>,
    /// Of the address in that file.
    pub offset: Option<u64>,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub language: Language,
    /// The compiler put it into the next outer frame.
    pub inlined: bool,
}
