//! Python frames of a thread of another process, which may run meanwhile: what is read then may be half of two stacks.
//!
//! Owns no more than the reading: `crates/collect/src/bpf/python.bpf.h` does the same for the current thread. All of it may
//! be anything: every list is followed for a bounded time.

use super::memory::Memory;
use super::wire::{
    ABSENT, ENTRY_BYTE, ENTRY_EACH, FRAME_ENTRY, PYTHON, PYTHON_BROKEN, PYTHON_FRAMES, PYTHON_FULL, PYTHON_THREAD,
    Python, PythonFrame, SiteEvent, THREADS_FULL, WINDOW,
};
use crate::wire::{u32_at, u64_at};

const INTERPRETERS: usize = 8;
const THREADS: usize = 128;
/// With those that are no function's.
const FRAMES_FOLLOWED: usize = 112;

/// The interpreter of a process, and one of its threads.
pub(crate) struct PythonThread<'a, M> {
    pub memory: &'a M,
    pub python: &'a Python,
    /// The thread's own pointer, as `pthread_self()` gives it.
    pub pointer: u64,
}

impl<M: Memory> PythonThread<'_, M> {
    /// Appends the frames that the thread runs now to a stack. `known`: its state the last time; which is it now.
    pub(crate) fn read(&self, stack: &mut SiteEvent, known: Option<u64>) -> Option<u64> {
        stack.python = PYTHON_THREAD;
        let state = known.filter(|state| self.runs(*state)).or_else(|| self.search(stack))?;
        stack.python = PYTHON_FRAMES;
        self.follow(stack, self.top(state));
        Some(state)
    }

    fn word(&self, address: u64, offset: u32) -> u64 {
        let word = self.memory.word(address.wrapping_add(offset.into()));
        word.unwrap_or_default()
    }

    /// The frame that a state runs now; 0: none.
    fn top(&self, state: u64) -> u64 {
        let top = self.word(state, self.python.thread_frame);
        match self.python.cframe_frame {
            ABSENT => top,
            _ if top == 0 => 0,
            offset => self.word(top, offset),
        }
    }

    /// A thread can have a state for each interpreter: the one that runs something is meant.
    fn runs(&self, state: u64) -> bool {
        self.word(state, self.python.thread_id) == self.pointer && self.top(state) != 0
    }

    fn search(&self, stack: &mut SiteEvent) -> Option<u64> {
        let mut interpreter = self.word(self.python.runtime, self.python.interpreters_head);
        for _ in 0..INTERPRETERS {
            if interpreter == 0 {
                return None;
            }
            if let Some(state) = self.among(stack, self.word(interpreter, self.python.threads_head)) {
                return Some(state);
            }
            interpreter = self.word(interpreter, self.python.interpreter_next);
        }
        None
    }

    /// The thread's state among those of one interpreter.
    fn among(&self, stack: &mut SiteEvent, first: u64) -> Option<u64> {
        let mut state = first;
        for _ in 0..THREADS {
            if state == 0 {
                return None;
            }
            if self.runs(state) {
                stack.flags &= !THREADS_FULL;
                return Some(state);
            }
            state = self.word(state, self.python.thread_next);
        }
        stack.flags |= THREADS_FULL;
        None
    }

    fn follow(&self, stack: &mut SiteEvent, top: u64) {
        let mut at = top;
        for _ in 0..FRAMES_FOLLOWED {
            if at == 0 {
                return;
            }
            if stack.frames.len() >= PYTHON {
                break;
            }
            let mut window = [0; WINDOW as usize];
            let bytes = (self.python.frame_bytes.min(WINDOW)) as usize;
            if self.memory.read(at, &mut window[..bytes]).is_none() {
                stack.flags |= PYTHON_BROKEN;
                return;
            }
            self.keep(stack, &window);
            at = u64_at(&window, self.python.frame_previous as usize);
        }
        stack.flags |= PYTHON_FULL;
    }

    fn keep(&self, stack: &mut SiteEvent, window: &[u8]) {
        let python = self.python;
        let byte = |offset: u32| window.get(offset as usize).copied().unwrap_or_default();
        if python.frame_owner != ABSENT && u32::from(byte(python.frame_owner)) >= python.first_no_function {
            return mark_entry(stack);
        }
        let at = python.frame_instruction as usize;
        let instruction = match python.instruction_bytes {
            4 => u32_at(window, at).into(),
            _ => u64_at(window, at),
        };
        stack.frames.push(PythonFrame {
            code: u64_at(window, python.frame_code as usize) & python.code_mask & !7,
            instruction,
        });
        if python.entry == ENTRY_EACH || (python.entry == ENTRY_BYTE && byte(python.frame_entry) != 0) {
            mark_entry(stack);
        }
    }
}

/// The frame before was the first one of its native evaluation loop.
fn mark_entry(stack: &mut SiteEvent) {
    if let Some(last) = stack.frames.last_mut() {
        last.code |= FRAME_ENTRY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::layout::Layout;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Words by address; what is not there cannot be read.
    struct Words(HashMap<u64, u64>);

    impl Memory for Words {
        fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
            for (index, chunk) in into.chunks_mut(8).enumerate() {
                let word = self.0.get(&(address + index as u64 * 8)).copied().unwrap_or_default();
                chunk.copy_from_slice(&word.to_ne_bytes()[..chunk.len()]);
            }
            (address >= 4096).then_some(())
        }
    }

    const POINTER: u64 = 0x7000;

    /// CPython 3.11, whose thread runs `inner`, which `outer` has called.
    fn interpreter() -> (Python, Words) {
        let python = Python {
            runtime: 0x10_0000,
            ..Layout::of((3, 11)).expect("known").python
        };
        let at = |base: u64, offset: u32| base + u64::from(offset);
        let (interpreter, state, cframe, inner, outer) = (0x20_0000, 0x30_0000, 0x40_0000, 0x50_0000, 0x60_0000);
        let words = HashMap::from([
            (at(python.runtime, python.interpreters_head), interpreter),
            (at(interpreter, python.threads_head), state),
            (at(state, python.thread_id), POINTER),
            (at(state, python.thread_frame), cframe),
            (at(cframe, python.cframe_frame), inner),
            (at(inner, python.frame_code), 0x111_0000),
            (at(inner, python.frame_instruction), 0x1234),
            (at(inner, python.frame_previous), outer),
            (at(outer, python.frame_code), 0x222_0000),
            (at(outer, python.frame_instruction), 0x5678),
        ]);
        (python, Words(words))
    }

    fn read(python: &Python, memory: &Words, pointer: u64) -> (SiteEvent, Option<u64>) {
        let mut stack = SiteEvent::default();
        let thread = PythonThread {
            memory,
            python,
            pointer,
        };
        let state = thread.read(&mut stack, None);
        (stack, state)
    }

    #[test]
    fn the_frames_of_the_thread_that_is_meant_are_read_innermost_first() {
        let (python, memory) = interpreter();
        let (stack, state) = read(&python, &memory, POINTER);
        assert_eq!((stack.python, state), (PYTHON_FRAMES, Some(0x30_0000)));
        let read: Vec<(u64, u64)> = stack.frames.iter().map(|f| (f.code_address(), f.instruction)).collect();
        assert_eq!(read, [(0x111_0000, 0x1234), (0x222_0000, 0x5678)]);
    }

    #[test]
    fn a_thread_without_a_state_runs_no_python() {
        let (python, memory) = interpreter();
        let (stack, state) = read(&python, &memory, POINTER + 8);
        assert_eq!((stack.python, stack.frames.len(), state), (PYTHON_THREAD, 0, None));
    }

    proptest! {
        #[test]
        fn any_memory_is_followed_for_a_bounded_time(seed: u64, pointer: u64) {
            /// Anything, everywhere.
            struct Noise(u64);
            impl Memory for Noise {
                fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
                    for (index, byte) in into.iter_mut().enumerate() {
                        *byte = (self.0 ^ address).wrapping_mul(0x9e37_79b9).rotate_left(index as u32) as u8;
                    }
                    Some(())
                }
            }
            for version in [(3, 10), (3, 11), (3, 12)] {
                let python = Layout::of(version).expect("known").python;
                let mut stack = SiteEvent::default();
                PythonThread { memory: &Noise(seed), python: &python, pointer }.read(&mut stack, Some(seed));
                prop_assert!(stack.frames.len() <= PYTHON);
            }
        }
    }
}
