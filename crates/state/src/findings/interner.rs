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

/// Names of functions and call sites by number.
#[derive(Debug)]
pub struct Interner {
    names: Texts,
    sites: Texts,
}

impl Default for Interner {
    fn default() -> Interner {
        Interner {
            names: Texts::new(),
            sites: Texts::new(),
        }
    }
}

impl Interner {
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
        let mut interner = Interner::default();
        let (one, other) = (interner.name_id("cuMemAlloc_v2"), interner.name_id("cuMemFree_v2"));
        assert!(one != other && one != 0 && interner.name_id("cuMemAlloc_v2") == one);
        assert_eq!(interner.name(other), "cuMemFree_v2");
        assert_eq!((interner.site_id(None), interner.site(0)), (0, None));
    }

    #[test]
    fn texts_beyond_the_bound_have_none() {
        let mut interner = Interner::default();
        for number in 0..2 * MOST {
            interner.site_id(Some(&number.to_string()));
        }
        assert_eq!(interner.site_id(Some("one more")), 0);
        let known = interner.site_id(Some("7"));
        assert_eq!(interner.site(known), Some("7"));
    }
}
