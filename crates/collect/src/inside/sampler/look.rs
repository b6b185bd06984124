//! One look at a thread: where it is, in its own language and in the processor's.
//!
//! Owns what is remembered of processes and threads from one look to the next. When somebody looks, and what that stands
//! for, is the sampler's business.

use super::clock::{Clock, Refused};
use super::doing::{Doing, Thread};
use super::remote::Remote;
use crate::frame::lines::is_cuda_module;
use crate::inside::folder;
use crate::inside::met::Met;
use crate::stack::frames::PythonThread;
use crate::stack::memory::Memory;
use crate::stack::regions;
use crate::stack::rule::Registers;
use crate::stack::unwinder::Unwinder;
use crate::stack::wire::{AT_PLACE, NATIVE, NATIVE_CUT, NATIVE_FULL, NATIVE_NONE, ON_CPU, SITE_FIRST_ID, SiteEvent};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A stack that the clock of a running thread has noted is no older, as a rule.
const FRESH_NS: u64 = 4_000_000;
/// What a process maps is read again at most as often.
const MAPS_LAST: Duration = Duration::from_secs(1);

/// One look at a thread.
pub(super) struct Eyes {
    processes: HashMap<u32, Process>,
    threads: HashMap<u32, Known>,
    /// Why threads have no clock, not said yet; said once.
    refused: Option<String>,
    has_said: bool,
}

struct Process {
    unwinder: Unwinder,
    read: Instant,
}

struct Known {
    kernel: Thread,
    clock: Option<Clock>,
    /// Its state in the interpreter, the last time.
    state: Option<u64>,
}

impl Eyes {
    pub(super) fn new() -> Eyes {
        Eyes {
            processes: HashMap::new(),
            threads: HashMap::new(),
            refused: None,
            has_said: false,
        }
    }

    /// What is remembered of processes that have gone is not needed any more.
    pub(super) fn keep_only(&mut self, met: &[Met]) {
        self.threads.retain(|tid, _| met.iter().any(|met| met.tid == *tid));
        self.processes.retain(|tgid, _| met.iter().any(|met| met.tgid == *tgid));
    }

    /// Why the stacks of native code that runs are not seen; `None`: they are, or it was said.
    pub(super) fn take_refusal(&mut self) -> Option<String> {
        self.refused.take()
    }

    fn known(&mut self, met: &Met) -> &mut Known {
        self.threads.entry(met.tid).or_insert_with(|| Known {
            kernel: Thread::open(met.tgid, met.tid),
            clock: None,
            state: None,
        })
    }

    /// See [`Thread::turns`].
    pub(super) fn turns(&mut self, met: &Met) -> Option<String> {
        self.known(met).kernel.turns()
    }

    /// Where a thread is that has made a call a moment ago; `None`: it is gone. A stack that the clock has noted is of another
    /// moment: what was in a call then says nothing of where it is now, and of a thread beside Python no function says much.
    pub(super) fn look_between(&mut self, met: &Met, now: u64) -> Option<SiteEvent> {
        let mut stack = self.look(met)?;
        if stack.flags & ON_CPU == 0 || !stack.frames.is_empty() {
            return Some(stack);
        }
        stack.native.clear();
        if met.python.is_none() {
            let newest = self.known(met).clock.as_mut().and_then(Clock::newest);
            let fresh = newest
                .filter(|(at, _)| *at + FRESH_NS >= now)
                .map(|(_, native)| native.clone());
            stack.native = fresh
                .filter(|native| !self.is_in_call(met.tgid, native))
                .unwrap_or_default();
        }
        stack.flags &= !NATIVE_NONE;
        stack.flags |= if stack.native.is_empty() { NATIVE_NONE } else { 0 };
        stack.id = number_of(&stack);
        Some(stack)
    }

    fn is_in_call(&mut self, tgid: u32, native: &[u64]) -> bool {
        native.iter().any(|at| {
            let module = self.unwinder(tgid, *at).module(*at);
            module.is_some_and(|module| is_cuda_module(&module) || module == folder::AGENT.file)
        })
    }

    /// Where the thread is; `None`: it is gone, or may not be looked at.
    pub(super) fn look(&mut self, met: &Met) -> Option<SiteEvent> {
        let memory = Remote::of(met.tgid);
        // of a process that is ending the memory goes first, and its threads are nowhere
        memory.word(met.pointer)?;
        let mut stack = SiteEvent {
            tgid: met.tgid,
            tid: met.tid,
            flags: AT_PLACE,
            ..SiteEvent::default()
        };
        match self.known(met).kernel.doing() {
            Doing::Unknown => return None,
            Doing::Waits { pc, sp } => {
                let from = Registers { pc, sp, frame: None };
                self.unwind(&memory, from, &mut stack);
                self.read_python(&memory, met, &mut stack);
            }
            Doing::Runs => {
                stack.flags |= ON_CPU;
                self.read_python(&memory, met, &mut stack);
                if stack.frames.is_empty() {
                    self.ask_clock(met, &mut stack);
                }
            }
        }
        stack.id = number_of(&stack);
        Some(stack)
    }

    /// Adds where the call is made that the thread is in: where it is in there is known in part, or not at all.
    pub(super) fn look_at_caller(&mut self, met: &Met, stack: &mut SiteEvent) {
        let memory = Remote::of(met.tgid);
        // below the return address lies the caller's frame: whoever is called through the agent has left it there
        let word = |at: u64| memory.word(at);
        let Some(pc) = (met.called_at != 0).then(|| word(met.called_at)).flatten() else {
            return;
        };
        let from = Registers {
            pc,
            sp: met.called_at + 8,
            frame: word(met.called_at.wrapping_sub(8)),
        };
        let within = std::mem::take(&mut stack.native);
        self.unwind(&memory, from, stack);
        stack.native.splice(0..0, within);
        stack.native.truncate(NATIVE);
        stack.id = number_of(stack);
    }

    fn unwind(&mut self, memory: &Remote, from: Registers, stack: &mut SiteEvent) {
        let unwinder = self.unwinder(stack.tgid, from.pc);
        let walked = unwinder.walk(memory, from, NATIVE, folder::AGENT.file);
        stack.flags &= !(NATIVE_CUT | NATIVE_FULL | NATIVE_NONE);
        if walked.is_cut {
            stack.flags |= NATIVE_CUT;
        }
        if walked.addresses.len() == NATIVE {
            stack.flags |= NATIVE_FULL;
        }
        stack.native = walked.addresses;
    }

    fn unwinder(&mut self, tgid: u32, pc: u64) -> &mut Unwinder {
        let read = || Process {
            // who may not read it knows no code, and every stack ends at once
            unwinder: Unwinder::new(regions::regions(tgid).unwrap_or_default()),
            read: Instant::now(),
        };
        let process = self.processes.entry(tgid).or_insert_with(read);
        if !process.unwinder.knows(pc) && process.read.elapsed() >= MAPS_LAST {
            *process = read();
        }
        &mut process.unwinder
    }

    fn read_python(&mut self, memory: &Remote, met: &Met, stack: &mut SiteEvent) {
        let Some(python) = met.python.as_ref().filter(|_| met.pointer != 0) else {
            return;
        };
        let pointer = met.pointer;
        let known = self.known(met);
        known.state = PythonThread {
            memory,
            python,
            pointer,
        }
        .read(stack, known.state);
    }

    /// Of code that runs, the stack that was noted last, unless that was before the last call.
    fn ask_clock(&mut self, met: &Met, stack: &mut SiteEvent) {
        let known = self.known(met);
        if known.clock.is_none() {
            match Clock::start(met.tid) {
                Ok(clock) => known.clock = Some(clock),
                Err(Refused::Gone) => {}
                Err(Refused::Because(why)) if !self.has_said => {
                    self.has_said = true;
                    self.refused = Some(why);
                }
                Err(Refused::Because(_)) => {}
            }
            return;
        }
        let newest = known.clock.as_mut().and_then(Clock::newest);
        if let Some((_, native)) = newest.filter(|(at, _)| *at > met.returned) {
            stack.native.clone_from(native);
        }
        if stack.native.is_empty() {
            stack.flags |= NATIVE_NONE;
        }
    }
}

/// The number of a stack: the same for the same.
fn number_of(stack: &SiteEvent) -> u64 {
    let head = [stack.tgid, stack.flags, stack.python].map(u64::from);
    let frames = stack.frames.iter().flat_map(|frame| [frame.code, frame.instruction]);
    let words = head.into_iter().chain(stack.native.iter().copied()).chain(frames);
    let mix = |sum: u64, word: u64| {
        let mixed = (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32)
    };
    words.fold(0, mix).max(SITE_FIRST_ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};

    #[inline(never)]
    fn waits_here(until: &Receiver<()>) -> u32 {
        // what follows keeps this from being left before it has returned
        until.recv().map_or(1, |()| 2)
    }

    #[inline(never)]
    fn calls_who_waits(until: &Receiver<()>) -> u32 {
        waits_here(until) + 1
    }

    fn met(tid: u32) -> Met {
        Met {
            tgid: std::process::id(),
            tid,
            // anything that is mapped
            pointer: met as fn(u32) -> Met as usize as u64,
            depth: 0,
            returned: 1,
            entered: 0,
            called_at: 0,
            python: None,
        }
    }

    /// Looks at a thread until what is seen `is_meant`.
    fn eventually(tid: u32, is_meant: impl Fn(&SiteEvent) -> bool) -> SiteEvent {
        let mut eyes = Eyes::new();
        let mut last = None;
        for _ in 0..2000 {
            last = eyes.look(&met(tid));
            if let Some(stack) = last.take_if(|stack| is_meant(stack)) {
                return stack;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("{last:x?}");
    }

    fn lies_in(stack: &SiteEvent, function: fn(&Receiver<()>) -> u32) -> bool {
        let begin = function as usize as u64;
        stack
            .native
            .iter()
            .any(|address| (begin..begin + 256).contains(address))
    }

    #[test]
    fn the_functions_of_a_thread_that_waits_are_found() {
        let (send, told) = channel();
        let (stop, stopped) = channel();
        let sleeper = std::thread::spawn(move || {
            // SAFETY: asks the kernel, and cannot fail
            send.send(unsafe { libc::gettid() } as u32).expect("somebody listens");
            calls_who_waits(&stopped)
        });
        let tid = told.recv().expect("a thread");
        let stack = eventually(tid, |stack| lies_in(stack, waits_here));
        assert!(lies_in(&stack, calls_who_waits), "{stack:x?}");
        assert_eq!(
            stack.flags, AT_PLACE,
            "the whole stack, up to the thread's first function"
        );
        assert_eq!(eventually(tid, |stack| lies_in(stack, waits_here)).id, stack.id);
        let ending = Met { pointer: 8, ..met(tid) };
        assert_eq!(Eyes::new().look(&ending), None, "its memory has gone");
        drop(stop);
        assert_eq!(sleeper.join().expect("it ends"), 2);
    }
}
