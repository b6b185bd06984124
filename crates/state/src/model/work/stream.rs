//! One stream: since when it may have work, and which of it is known to be done.

use super::events::Mark;
use super::name::StreamName;
use crate::wire::PER_THREAD;

/// Waits for events of other streams that are remembered.
const JOINED: usize = 64;

/// One stream: since when it may have work. Times are CLOCK_MONOTONIC ns.
#[derive(Debug, Default)]
pub struct Stream {
    pub handle: u64,
    /// 0: not known.
    pub context: u64,
    /// Of a default stream of its own.
    pub tid: Option<u32>,
    pub priority: Option<i32>,
    pub nonblocking: Option<bool>,
    pub alive: bool,
    pub blocked_ns: u64,
    /// Put into it so far, as last told.
    pub submitted: u64,
    /// Of these, what became nodes of graphs.
    pub captured: u64,
    pub depth_at_most: u64,
    /// Of these, known to be done.
    done: u64,
    /// The same, when it was last known how many there are.
    done_before: u64,
    /// All that was told before is done, and how much that is will be seen at the next submission.
    all_done: bool,
    /// Of the last submission that was told.
    generation: Option<u64>,
    drained: Option<(u64, u64)>,
    open_since: Option<u64>,
    busy_ns: u64,
    joined: Vec<(u64, Mark)>,
}

/// What a submission means for its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Submission {
    /// It has work now, and had none.
    Opened,
    /// It has more.
    More,
    /// What was submitted is known to be done already, then.
    Late(u64),
}

impl Stream {
    /// A stream of which nothing is known yet.
    #[must_use]
    pub(crate) fn new(name: StreamName) -> Stream {
        Stream {
            handle: name.stream,
            context: name.context,
            tid: (name.tid != 0).then_some(name.tid),
            alive: true,
            ..Stream::default()
        }
    }

    /// Something was put into it.
    pub(crate) fn submit(&mut self, entered: u64, generation: u64, submitted: u64) -> Submission {
        self.note_submitted(submitted);
        if let Some((_, at)) = self.drained.filter(|(drained, _)| generation < *drained) {
            return Submission::Late(at);
        }
        self.generation = self.generation.max(Some(generation));
        let submission = if self.open_since.is_some() {
            Submission::More
        } else {
            Submission::Opened
        };
        self.open_since = Some(self.open_since.map_or(entered, |since| since.min(entered)));
        submission
    }

    /// It has work since `entered`, whose end will be told by the same call. True: it had none.
    pub(crate) fn occupy(&mut self, entered: u64, submitted: u64) -> bool {
        self.note_submitted(submitted);
        let opened = self.open_since.is_none();
        self.open_since = Some(self.open_since.map_or(entered, |since| since.min(entered)));
        opened
    }

    fn note_submitted(&mut self, submitted: u64) {
        if submitted > 0 {
            self.queue(submitted);
            self.count(submitted);
        }
    }

    /// A call has put something behind all that is there, and waits for that before it returns. `submitted` 0: there was no room
    /// to count.
    pub(crate) fn queue(&mut self, submitted: u64) {
        if submitted == 0 {
            return;
        }
        let before = submitted.saturating_sub(1).max(self.submitted);
        self.raise_depth(before);
        if std::mem::take(&mut self.all_done) {
            self.done = self.done.max(before);
        }
        self.done_before = self.done;
        self.raise_depth(submitted);
    }

    /// `submitted` calls have put something into it.
    pub fn count(&mut self, submitted: u64) {
        self.submitted = self.submitted.max(submitted);
        self.raise_depth(self.submitted);
        self.done_before = self.done;
    }

    /// What was not told one by one may have come before anything more was known to be done.
    fn raise_depth(&mut self, submitted: u64) {
        self.depth_at_most = self.depth_at_most.max(submitted.saturating_sub(self.done_before));
    }

    /// How many of them may be waiting.
    #[must_use]
    pub(crate) fn depth(&self) -> u64 {
        self.submitted.saturating_sub(self.done)
    }

    /// Whether everything that was told with less than `generation` is all that there is.
    #[must_use]
    pub(crate) fn is_covered(&self, generation: u64) -> bool {
        self.generation.is_none_or(|latest| latest < generation)
    }

    /// Everything that was told with less than `generation` is done at `at`. True: it has no work any more.
    pub fn drain(&mut self, generation: u64, at: u64) -> bool {
        if !self.is_covered(generation) {
            return false;
        }
        if self.drained.is_none_or(|(drained, _)| drained < generation) {
            self.drained = Some((generation, at));
        }
        self.all_done = true;
        let Some(since) = self.open_since.take() else {
            return false;
        };
        self.busy_ns = self.busy_ns.saturating_add(at.saturating_sub(since));
        true
    }

    /// So many of its calls are done.
    pub(crate) fn advance(&mut self, done: u64) {
        self.done = self.done.max(done.min(self.submitted));
    }

    /// It waits for what `mark` stands for.
    pub fn join(&mut self, generation: u64, mark: Mark) {
        if self.joined.len() == JOINED {
            self.joined.remove(0);
        }
        self.joined.push((generation, mark));
    }

    /// What it had to wait for before what was told with `generation`: that is done, too.
    pub(crate) fn joined_before(&mut self, generation: u64) -> Vec<Mark> {
        let (before, after) = self.joined.iter().partition(|(joined, _)| *joined < generation);
        self.joined = after;
        let before: Vec<(u64, Mark)> = before;
        before.into_iter().map(|(_, mark)| mark).collect()
    }

    /// It may have had work since `at`, told with `generation`.
    pub fn doubt(&mut self, at: u64, generation: u64) {
        self.generation = self.generation.max(Some(generation));
        self.open_since.get_or_insert(at);
    }

    /// Whether it is done, or was given nothing since `generation` was reached.
    #[must_use]
    pub(crate) fn is_quiet(&self, generation: u64) -> bool {
        !self.is_open() || self.is_covered(generation)
    }

    /// Whether it may have work.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open_since.is_some()
    }

    /// Time in which it may have had work, up to `now`.
    #[must_use]
    pub(crate) fn busy_at_most_ns(&self, now: u64) -> u64 {
        self.open_since.map_or(self.busy_ns, |since| {
            self.busy_ns.saturating_add(now.saturating_sub(since))
        })
    }

    /// Whether the default stream of its context waits for it, and it for that one.
    #[must_use]
    pub(crate) fn is_blocking(&self) -> bool {
        self.handle == PER_THREAD || self.nonblocking == Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_told_may_have_waited_beside_what_was_done_since() {
        let mut stream = Stream::default();
        stream.submit(10, 1, 1);
        stream.count(1); // an event is recorded
        stream.submit(20, 2, 2);
        // one more is not told, then the event is waited for, and the stream
        stream.advance(1);
        stream.drain(3, 90);
        stream.submit(100, 3, 4);
        assert_eq!(stream.depth_at_most, 3);
        assert_eq!(stream.depth(), 1);
    }

    #[test]
    fn a_call_that_waits_for_what_was_before_it_is_behind_that_until_it_is_done() {
        let mut stream = Stream::default();
        stream.submit(10, 1, 1);
        stream.submit(20, 2, 2);
        // a copy from pageable memory returns when what was before it is done, and runs on
        stream.queue(3);
        stream.drain(3, 90);
        stream.submit(90, 3, 3);
        assert_eq!((stream.depth_at_most, stream.depth()), (3, 1));
        stream.queue(0);
        assert_eq!((stream.depth_at_most, stream.depth()), (3, 1));
    }

    #[test]
    fn busy_time_is_no_longer_than_a_number_holds() {
        let stream = Stream {
            busy_ns: u64::MAX,
            open_since: Some(1),
            ..Stream::default()
        };
        assert_eq!(stream.busy_at_most_ns(9), u64::MAX);
    }
}
