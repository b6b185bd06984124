//! What agents have told, as the tracer takes it: records by stream, and what has arrived.

use super::shared::Shared;
use crate::clock::monotonic_ns;
use crate::engine::poll::{empty, ring};
use crate::engine::{Arrival, Arrivals, Feed, Stream, Take};
use crate::wire;
use std::cell::RefCell;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// The records of one stream, as agents have submitted them.
pub(super) struct Taken {
    shared: Arc<Shared>,
    stream: Stream,
    take: RefCell<Take>,
}

impl Taken {
    pub(super) fn new(shared: Arc<Shared>, stream: Stream, take: Take) -> Taken {
        Taken {
            shared,
            stream,
            take: RefCell::new(take),
        }
    }
}

impl Feed for Taken {
    fn bell(&self) -> RawFd {
        match self.stream {
            Stream::Calls => self.shared.full.as_raw_fd(),
            _ => -1,
        }
    }

    fn drain(&self) {
        if self.stream == Stream::Calls {
            empty(&self.shared.full);
        }
        let mut members = self.shared.members();
        members.take_in(self.shared.now());
        let queue = members.queues.remove(&self.stream).unwrap_or_default();
        let samples = members.samples.take(self.stream);
        drop(members);
        let mut take = self.take.borrow_mut();
        queue.hand_out(&mut *take);
        samples.iter().for_each(|sample| take(sample));
    }
}

/// Programs that begin and end, and threads that wait for us.
pub(super) struct Come(Arc<Shared>);

impl Come {
    pub(super) fn of(shared: Arc<Shared>) -> Come {
        Come(shared)
    }
}

impl Arrivals for Come {
    fn bell(&self) -> RawFd {
        self.0.bell.as_raw_fd()
    }

    fn silence(&self) {
        empty(&self.0.bell);
    }

    fn ring(&self) {
        ring(&self.0.bell);
    }

    fn next_arrival(&self) -> Option<Arrival> {
        let mut members = self.0.members();
        members.take_in(self.0.now());
        members.arrivals.pop_front()
    }

    fn foresee(&self, see: &mut dyn FnMut(&wire::Notice)) {
        let members = self.0.members();
        members.arrivals.iter().for_each(|arrival| see(&arrival.notice));
    }

    fn during(&self, arrival: Arrival, work: &mut dyn FnMut()) -> Option<u64> {
        work();
        self.pass(&arrival)
    }

    fn pass(&self, arrival: &Arrival) -> Option<u64> {
        let now = monotonic_ns();
        let mut members = self.0.members();
        let caller = members.waiting.remove(&arrival.notice.sequence)?;
        let in_time = caller.answer(true, None);
        members.overdue += u64::from(!in_time);
        in_time.then_some(now)
    }

    fn take_malformed(&self) -> u64 {
        std::mem::take(&mut self.0.members().malformed)
    }

    fn overdue(&self) -> u64 {
        self.0.members().overdue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inside::arena::{ProcessHead, RING_BYTES, RING_CALLS};
    use crate::inside::process::{Process, Room};
    use crate::inside::ring::tests::submit;
    use crate::inside::run::Run;
    use crate::probe::Setup;
    use std::mem::offset_of;
    use std::path::PathBuf;
    use std::rc::Rc;

    /// A process whose first thread has submitted a call just now.
    fn process() -> Process {
        let room = Room {
            rows: 1,
            ring: RING_BYTES,
        };
        let process = Process::make(1, [0; wire::COMM], 1, room, true).expect("memory");
        process.memory.set(offset_of!(ProcessHead, blocks) as u64, &1_u32);
        submit(&process.memory, 0, monotonic_ns(), b"call");
        process
    }

    #[test]
    fn when_calls_do_not_count_any_more_the_youngest_is_taken_too() {
        assert_eq!(RING_CALLS, 0, "what a test submits");
        let run = Run::make(&Setup::default()).expect("memory");
        let shared = Arc::new(Shared::new(run, true, PathBuf::new()).expect("descriptors"));
        shared.members().join(process());
        shared.count(false);
        let taken = Rc::new(RefCell::new(Vec::new()));
        let into = Rc::clone(&taken);
        let take = Box::new(move |bytes: &[u8]| into.borrow_mut().push(bytes.to_vec()));
        Taken::new(Arc::clone(&shared), Stream::Calls, take).drain();
        assert_eq!(*taken.borrow(), [b"call"]);
    }
}
