//! What is known to be unseen, and why.

use super::Attacher;

/// Something that is not seen, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap(pub String);

impl Gap {
    /// Whether it is about one file, as any user can bring; such a sentence begins with its path.
    #[must_use]
    pub fn is_of_file(&self) -> bool {
        self.0.starts_with('/') || self.0 == MORE_FILES
    }
}

/// Sentences about what is not seen.
const MOST_GAPS: usize = 1000;
const MORE_FILES: &str = "more files are not seen than are listed here";

impl Attacher {
    /// What is known to be unseen.
    pub fn gaps(&self) -> impl Iterator<Item = &Gap> {
        self.gaps.iter()
    }

    /// Notes something that is not seen.
    pub fn gap(&mut self, text: String) {
        let gap = Gap(text);
        // whoever brings many files takes no place from what concerns all
        if self.gaps.len() < MOST_GAPS || !gap.is_of_file() {
            self.gaps.insert(gap);
        } else {
            self.gaps.insert(Gap(MORE_FILES.to_owned()));
        }
    }

    /// Whether a process may have given work to a device through functions that could not be hooked.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.blind
    }

    /// Functions that give work are not seen everywhere.
    pub fn be_blind(&mut self) {
        self.blind = true;
    }
}
