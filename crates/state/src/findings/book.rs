//! Names of functions and call sites by number, so that rules need not keep texts.

use super::table::{Bounded, hash};

/// Different texts of either kind that are kept.
const MOST: usize = 4096;

/// Stands for a text; 0: none, or one of too many.
pub(crate) type Id = u32;

#[derive(Debug)]
struct Texts {
    ids: Bounded<Id>,
    texts: Vec<Box<str>>,
}

impl Texts {
    fn new() -> Texts {
        Texts {
            ids: Bounded::new(MOST),
            texts: vec!["".into()],
        }
    }

    fn id(&mut self, text: &str) -> Id {
        let fresh = self.texts.len() as Id;
        let Some(id) = self.ids.entry(hash(text)) else {
            return 0;
        };
        if *id == 0 {
            *id = fresh;
            self.texts.push(text.into());
        }
        *id
    }

    fn text(&self, id: Id) -> &str {
        self.texts.get(id as usize).map_or("", |text| text)
    }
}

/// See the module.
#[derive(Debug)]
pub struct Book {
    names: Texts,
    sites: Texts,
}

impl Default for Book {
    fn default() -> Book {
        Book {
            names: Texts::new(),
            sites: Texts::new(),
        }
    }
}

impl Book {
    /// The number of a name.
    pub(crate) fn name_id(&mut self, name: &str) -> Id {
        self.names.id(name)
    }

    /// The number of a stack.
    pub(crate) fn site_id(&mut self, stack: Option<&str>) -> Id {
        stack.map_or(0, |stack| self.sites.id(stack))
    }

    /// The name of a number.
    #[must_use]
    pub fn name(&self, id: Id) -> &str {
        self.names.text(id)
    }

    /// JSON array of frames; `None`: not known.
    #[must_use]
    pub fn site(&self, id: Id) -> Option<&str> {
        (id != 0).then(|| self.sites.text(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_number_and_reads_back() {
        let mut book = Book::default();
        let (one, other) = (book.name_id("cuMemAlloc_v2"), book.name_id("cuMemFree_v2"));
        assert!(one != other && one != 0 && book.name_id("cuMemAlloc_v2") == one);
        assert_eq!(book.name(other), "cuMemFree_v2");
        assert_eq!((book.site_id(None), book.site(0)), (0, None));
    }

    #[test]
    fn texts_beyond_the_bound_have_none() {
        let mut book = Book::default();
        for number in 0..2 * MOST {
            book.site_id(Some(&number.to_string()));
        }
        assert_eq!(book.site_id(Some("one more")), 0);
        let known = book.site_id(Some("7"));
        assert_eq!(book.site(known), Some("7"));
    }
}
