//! Objects by handle, where a handle may be given out again before the end of the object that had it is told of.

use std::collections::HashMap;

#[derive(Debug, Clone, Copy)]
struct Entry<T> {
    object: T,
    /// When the call that made it returned, CLOCK_MONOTONIC ns.
    at: u64,
}

/// Objects that live, and those whose end is on its way.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    current: HashMap<u64, Entry<T>>,
    displaced: Vec<(u64, T, u64)>,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Handles {
            current: HashMap::new(),
            displaced: Vec::new(),
        }
    }
}

impl<T: Copy> Handles<T> {
    /// The object of that handle now.
    pub(crate) fn get(&self, handle: u64) -> Option<T> {
        self.current.get(&handle).map(|entry| entry.object)
    }

    /// Changes it in place.
    pub(crate) fn get_mut(&mut self, handle: u64) -> Option<&mut T> {
        self.current.get_mut(&handle).map(|entry| &mut entry.object)
    }

    /// A call that returned at `at` made an object.
    pub(crate) fn insert(&mut self, handle: u64, object: T, at: u64) {
        if let Some(old) = self.current.insert(handle, Entry { object, at }) {
            self.displaced.push((handle, old.object, at));
        }
    }

    /// A call entered at `entered` ends an object: the one that the handle stood for then.
    pub(crate) fn remove(&mut self, handle: u64, entered: u64) -> Option<T> {
        let older = |(key, _, at): &(u64, T, u64)| *key == handle && entered < *at;
        if let Some(index) = self.displaced.iter().position(older) {
            return Some(self.displaced.swap_remove(index).1);
        }
        let known = self.current.get(&handle).is_some_and(|entry| entered >= entry.at);
        if !known {
            return None;
        }
        self.current.remove(&handle).map(|entry| entry.object)
    }

    /// Gives up waiting for ends of what was displaced before `horizon`.
    pub(crate) fn settle(&mut self, horizon: u64) {
        self.displaced.retain(|(_, _, at)| *at >= horizon);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_began_before_a_handle_was_given_out_again_is_that_of_the_object_before() {
        let mut handles = Handles::default();
        handles.insert(7, 'a', 10);
        handles.insert(7, 'b', 30);
        assert_eq!(handles.get(7), Some('b'));
        assert_eq!(handles.remove(7, 20), Some('a'));
        assert_eq!(handles.remove(7, 20), None, "b was not there yet");
        assert_eq!(handles.remove(7, 40), Some('b'));
        assert_eq!(handles.remove(7, 50), None);
    }
}
