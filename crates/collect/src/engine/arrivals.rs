//! What happens to processes, in the order in which it is told, and who stands still meanwhile.
//!
//! Owns what is asked of an engine about it. How threads are held is its business: `probe::gate`, of the kernel's.

use crate::wire::Notice;
use std::os::fd::RawFd;

/// A thread that is held, by the number that whoever holds it has given it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold(pub(crate) u32);

/// A notice, and whether its thread is held.
pub struct Arrival {
    pub notice: Notice,
    pub(crate) held: Option<Hold>,
    /// Of a process that has ended: its threads that were within calls, with what [`Engine::thread`](super::Engine::thread)
    /// said of them. `None`: that is not known by what has arrived.
    pub within: Option<Vec<(u32, Vec<u8>)>>,
}

impl From<Notice> for Arrival {
    fn from(notice: Notice) -> Arrival {
        Arrival {
            notice,
            held: None,
            within: None,
        }
    }
}

/// Who is held when.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Whoever arrives while its owner attaches.
    Traced,
    /// The same, but at its dynamic linker alone: a thread that runs may be about to become a setuid program, which would
    /// get no rights while somebody follows it who has not CAP_SYS_PTRACE.
    AtLinker,
    /// Whoever waits for a new file, from its arrival on.
    New,
}

/// What happens to processes, in the order in which it is told.
pub trait Arrivals {
    /// Becomes readable when something arrives; -1: never.
    fn bell(&self) -> RawFd;
    /// Has the bell silenced before arrivals are taken.
    fn silence(&self);
    /// Has the bell rung by who acts on arrivals: more may have come than was acted on.
    fn ring(&self);
    /// The next notice to act on.
    fn next_arrival(&self) -> Option<Arrival>;
    /// Shows the notices that are still to be acted on, in their order.
    fn foresee(&self, see: &mut dyn FnMut(&Notice));
    /// Holds the thread of `arrival`, if it is about to run code of a new file; then does `work`, while other threads that
    /// arrive are held too; then lets the thread go on. When that was, CLOCK_MONOTONIC ns, if it stood still until then.
    fn during(&self, arrival: Arrival, work: &mut dyn FnMut()) -> Option<u64>;
    /// Lets the thread of `arrival` go on. When that was, CLOCK_MONOTONIC ns, if it stood still until then.
    fn pass(&self, arrival: &Arrival) -> Option<u64>;
    /// Records that were no notices, since the last time.
    fn take_malformed(&self) -> u64;
    /// Threads that went on before we were done with them.
    fn overdue(&self) -> u64;
}
