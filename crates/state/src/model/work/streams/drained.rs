//! What follows when work of a stream is done: for it, and for those that it has waited for.

use super::Streams;
use crate::model::work::events::Mark;
use crate::model::work::stream::Stream;

impl Streams {
    /// Work of a stream is done up to a mark.
    pub(super) fn reach(&mut self, mark: Mark, at: u64) {
        self.streams[mark.stream].advance(mark.submitted);
        self.drain_with_default(mark.stream, mark.generation, at);
    }

    /// A stream, and with the default one those that it waits for.
    pub(super) fn drain_with_default(&mut self, stream: usize, generation: u64, at: u64) {
        self.drain(stream, generation, at);
        if self.streams[stream].handle != 0 {
            return;
        }
        let context = self.streams[stream].context;
        let others = |stream: &Stream| stream.is_blocking() && stream.context == context;
        let others: Vec<usize> = (0..self.streams.len())
            .filter(|index| others(&self.streams[*index]))
            .collect();
        others.into_iter().for_each(|index| self.drain(index, generation, at));
    }

    /// All streams of a context.
    pub(super) fn drain_context(&mut self, context: u64, generation: u64, at: u64) {
        for index in 0..self.streams.len() {
            if self.streams[index].context == context {
                self.drain(index, generation, at);
            }
        }
        if self.unknown_since.is_some_and(|since| since < at) {
            self.waited_for.insert(context);
            let all = |stream: &Stream| stream.context == 0 || self.waited_for.contains(&stream.context);
            if self.streams.iter().all(all) {
                self.unknown_since = None;
            }
        }
        self.rest(at);
    }

    /// A stream, and those whose work came before its own.
    pub(super) fn drain(&mut self, first: usize, generation: u64, at: u64) {
        let mut reached = vec![(first, generation)];
        while let Some((stream, generation)) = reached.pop() {
            if self.streams[stream].drain(generation, at) {
                self.open -= 1;
                self.closed.push((stream, at));
            }
            let joined = self.streams[stream].joined_before(generation);
            for mark in &joined {
                self.streams[mark.stream].advance(mark.submitted);
            }
            reached.extend(joined.iter().map(|mark| (mark.stream, mark.generation)));
        }
        self.last_done_at = self.last_done_at.max(at);
        self.rest(at);
    }

    /// Streams that have come to rest since the last time that this was asked, and when.
    pub(crate) fn take_closed(&mut self) -> Vec<(usize, u64)> {
        std::mem::take(&mut self.closed)
    }
}
