//! Writes that keep nobody waiting: a thread of its own makes them.
//!
//! Owns what waits to be written, of which there may be so much; beyond that, who writes waits after all.

use super::straight::Straight;
use anyhow::{Result, anyhow};
use std::io::Write;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Bytes that wait.
const MOST_WAITING: usize = 16 << 20;

/// What a thread of its own may write to.
pub(super) type Movable = Straight<Box<dyn Write + Send>>;

pub(super) struct Aside {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Something was taken out and is not written yet.
    writes: bool,
    /// Nothing comes any more.
    over: bool,
    closed: bool,
    failure: Option<String>,
}

impl Aside {
    /// A thread that does `first` before all else, then writes to `to`, which comes back where there can be no thread.
    pub(super) fn start(to: Movable, first: fn()) -> Result<Aside, Movable> {
        let shared = Arc::<Shared>::default();
        let (give, taken) = channel();
        let seen = Arc::clone(&shared);
        let work = move || {
            first();
            seen.write_all(&taken);
        };
        let Ok(writer) = std::thread::Builder::new()
            .name("gpuscope-output".to_owned())
            .spawn(work)
        else {
            return Err(to);
        };
        let writer = Some(writer);
        match give.send(to) {
            Ok(()) => Ok(Aside { shared, writer }),
            Err(unsent) => Err(unsent.0),
        }
    }

    pub(super) fn write(&self, bytes: &[u8]) {
        let mut state = self.shared.state();
        while !state.waiting.is_empty() && state.waiting.len() + bytes.len() > MOST_WAITING {
            state = self.shared.wait(state);
        }
        if !state.closed && state.failure.is_none() {
            state.waiting.extend_from_slice(bytes);
            self.shared.changed.notify_all();
        }
    }

    pub(super) fn closed(&self) -> bool {
        self.shared.state().closed
    }

    pub(super) fn check(&self) -> Result<()> {
        match &self.shared.state().failure {
            None => Ok(()),
            Some(failure) => Err(anyhow!("{failure}")),
        }
    }

    /// Until all was written.
    pub(super) fn settle(&self) {
        let mut state = self.shared.state();
        while state.writes || !state.waiting.is_empty() {
            state = self.shared.wait(state);
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.shared.state().over = true;
        self.shared.changed.notify_all();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self, taken: &Receiver<Movable>) {
        let Ok(mut to) = taken.recv() else { return };
        while let Some(bytes) = self.next() {
            to.write(&bytes);
            let mut state = self.state();
            state.writes = false;
            state.closed = to.closed();
            state.failure = to.check().err().map(|error| format!("{error:#}"));
            if state.closed || state.failure.is_some() {
                state.waiting.clear();
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    /// All that waits; `None`: nothing does, and nothing comes.
    fn next(&self) -> Option<Vec<u8>> {
        let mut state = self.state();
        while state.waiting.is_empty() {
            if state.over {
                return None;
            }
            state = self.wait(state);
        }
        state.writes = true;
        let bytes = std::mem::take(&mut state.waiting);
        drop(state);
        self.changed.notify_all();
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::path::Path;
    use std::sync::mpsc::Sender;

    /// Takes bytes when it is allowed to, so often; then fails.
    struct Slow {
        allowed: Receiver<io::Result<()>>,
        took: Sender<Vec<u8>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.allowed.recv().unwrap_or(Ok(()))?;
            self.took.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow() -> (Aside, Sender<io::Result<()>>, Receiver<Vec<u8>>) {
        let ((allow, allowed), (took, taken)) = (channel(), channel());
        let to: Movable = Straight::new(Box::new(Slow { allowed, took }), Path::new("slow"), None);
        let Ok(aside) = Aside::start(to, || {}) else {
            panic!("no thread");
        };
        (aside, allow, taken)
    }

    fn all(taken: &Receiver<Vec<u8>>) -> Vec<u8> {
        taken.try_iter().flatten().collect()
    }

    #[test]
    fn who_writes_does_not_wait_and_all_is_written_in_order() {
        let (aside, allow, taken) = slow();
        (0..100u8).for_each(|byte| aside.write(&[byte]));
        assert!(all(&taken).is_empty() && aside.check().is_ok());
        drop(allow);
        aside.settle();
        assert_eq!(all(&taken), (0..100).collect::<Vec<u8>>());
        aside.write(b"x");
        drop(aside);
        assert_eq!(all(&taken), b"x", "what comes last is written before it is over");
    }

    #[test]
    fn beyond_what_may_wait_who_writes_does() {
        let (aside, allow, taken) = slow();
        aside.write(b"first");
        allow.send(Ok(())).unwrap();
        aside.settle();
        // taken out at once, and written when that is allowed
        aside.write(b"second");
        let large = vec![7; MOST_WAITING];
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| [&large, &large].map(|bytes| aside.write(bytes)));
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(!writer.is_finished(), "twice that has no room");
            drop(allow);
            writer.join().unwrap();
        });
        aside.settle();
        assert_eq!(all(&taken).len(), b"firstsecond".len() + 2 * MOST_WAITING);
    }

    #[test]
    fn the_first_failure_is_told_and_nothing_is_written_after_it() {
        let (aside, allow, taken) = slow();
        aside.write(b"whole");
        allow.send(Ok(())).unwrap();
        aside.settle();
        aside.write(b"lost");
        allow.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        drop(allow);
        aside.settle();
        aside.write(b"nor this");
        aside.settle();
        let why = aside.check().unwrap_err().to_string();
        assert!(
            why.contains("failed to write slow") && why.contains("hint: free some space"),
            "{why}"
        );
        assert_eq!((all(&taken), aside.closed()), (b"whole".to_vec(), false));
    }

    #[test]
    fn a_reader_that_goes_away_is_no_failure() {
        let (aside, allow, _taken) = slow();
        aside.write(b"lost");
        allow.send(Err(io::ErrorKind::BrokenPipe.into())).unwrap();
        aside.settle();
        assert!(aside.closed() && aside.check().is_ok());
    }
}
