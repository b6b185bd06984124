//! All streams of a process, and with them the time in which it can have had no work at all.
//!
//! Follows what CUDA documents: a stream does its work in order; the default stream of a context waits for all its
//! streams that were not freed from that, and these for it; waiting for an event means for what was before it.

mod drained;

use super::Call;
use super::events::{Events, Mark};
use super::idle::{Gap, Idle};
use super::name::StreamName;
use super::past::Past;
use super::stream::{Stream, Submission};
use crate::catalog::WorkPart;
use crate::model::reason::Reasons;
use crate::wire;
use std::collections::{HashMap, HashSet};

/// Streams that are told apart; what goes to others is never known to be done.
const MOST: usize = 1 << 16;
/// As many waiting calls as a driver takes before one has to wait, nearly: 1,021 on driver 580.
const FULL: u64 = 1000;
/// Few kernels run for a second: what a stream was given before is most likely done.
const QUIET_NS: u64 = 1_000_000_000;

/// More records than are ever lost.
const NEVER: u64 = u64::MAX;

/// Submissions that took long while much may have been waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pressure {
    pub count: u64,
    pub ns: u64,
    pub depth_at_most: u64,
}

/// All streams of a process. Times are CLOCK_MONOTONIC ns.
#[derive(Debug, Default)]
pub struct Streams {
    streams: Vec<Stream>,
    names: HashMap<StreamName, usize>,
    events: Events,
    open: usize,
    idle: Idle,
    /// The same, if streams that were given nothing for long are done.
    likely_idle: Idle,
    past: Past,
    first_at: Option<u64>,
    last_done_at: u64,
    pressure: Pressure,
    lost: Option<u64>,
    last_at: u64,
    /// Something of an unknown stream may be running: only the end of a context's work can tell.
    unknown_since: Option<u64>,
    /// Contexts whose work is known to have ended since.
    waited_for: HashSet<u64>,
    /// See [`Streams::submit_anywhere`].
    elsewhere: bool,
    crowded: bool,
    pub(crate) doubts: u64,
    /// Calls are left unseen: nothing is known to be done.
    blind: bool,
    closed: Vec<(usize, u64)>,
}

impl Streams {
    /// The stream that `call` goes to; `None`: one that is not told apart.
    pub fn stream(&mut self, call: &Call<'_>) -> Option<usize> {
        let index = self.named(StreamName::of(call))?;
        let stream = &mut self.streams[index];
        if stream.context == 0 {
            stream.context = call.raw.context;
        }
        Some(index)
    }

    fn named(&mut self, name: StreamName) -> Option<usize> {
        if let Some(index) = self.names.get(&name) {
            return Some(*index);
        }
        if self.streams.len() >= MOST {
            self.crowded = true;
            return None;
        }
        self.streams.push(Stream::new(name));
        self.names.insert(name, self.streams.len() - 1);
        Some(self.streams.len() - 1)
    }

    /// Whether there were more streams than are told apart.
    #[must_use]
    pub(crate) fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// To be called for each record, before anything else: what was lost casts doubt on what is known. Whether something was.
    pub fn note(&mut self, call: &Call<'_>) -> bool {
        let lost = self.lost.replace(call.raw.lost);
        self.past.note(call.raw.returned, call.raw.generation_now);
        let at = self.last_at;
        self.last_at = at.max(call.raw.returned);
        if lost.is_none_or(|lost| lost == call.raw.lost) {
            return false;
        }
        self.doubt(at, call.raw.generation);
        lost != Some(NEVER)
    }

    /// Anything may have been running since `at`, also in streams that are known.
    fn doubt(&mut self, at: u64, generation: u64) {
        self.doubts += 1;
        self.suspect(at);
        for stream in &mut self.streams {
            self.open += usize::from(!stream.is_open());
            stream.doubt(at, generation);
        }
    }

    /// From `at` on calls are left unseen, or are seen again: anything may be running then, of the next record at the latest.
    pub(crate) fn set_blind(&mut self, blind: bool, at: u64) {
        self.blind = blind;
        self.suspect(at);
        self.first_at.get_or_insert(at);
        self.lost = Some(NEVER);
    }

    /// Something that is not known may have been running since `at`.
    fn suspect(&mut self, at: u64) {
        self.idle.doubt();
        self.likely_idle.doubt();
        self.waited_for.clear();
        self.unknown_since.get_or_insert(at);
    }

    /// Whether something that is not known may be running.
    pub(super) fn is_unsure(&self) -> bool {
        self.blind || self.unknown_since.is_some()
    }

    /// Whether calls are left unseen.
    pub(super) fn is_blind(&self) -> bool {
        self.blind
    }

    /// Something was put into a stream.
    pub(crate) fn submit(&mut self, call: &Call<'_>) {
        let Some(stream) = self.stream(call) else {
            return self.submit_anywhere(call);
        };
        self.put(stream, call, call.raw.entered, call.raw.generation);
        let depth = self.streams[stream].depth();
        if call.duration_ns() >= wire::SLOW_NS && depth >= FULL {
            self.pressure.count += 1;
            self.pressure.ns = self.pressure.ns.saturating_add(call.duration_ns());
            self.pressure.depth_at_most = self.pressure.depth_at_most.max(depth);
        }
    }

    /// Something was put into streams that are not known, perhaps of several devices: nothing can tell when it is done.
    pub(crate) fn submit_anywhere(&mut self, call: &Call<'_>) {
        self.begin(call);
        self.elsewhere = true;
    }

    fn put(&mut self, stream: usize, call: &Call<'_>, since: u64, generation: u64) {
        self.begin(call);
        match self.streams[stream].submit(since, generation, call.raw.submitted) {
            Submission::Opened => self.open += 1,
            Submission::More => {}
            Submission::Late(at) => self.rest(at),
        }
    }

    /// When devices were surely idle, as far as that was not taken before and ended before `horizon`.
    pub fn take_gaps(&mut self, horizon: u64) -> Vec<Gap> {
        self.idle.take(horizon)
    }

    /// Every record of what was entered before `at` has been noted, or is among `lost` records that were not told.
    pub fn quiet_until(&mut self, at: u64, lost: u64) {
        if self.lost == Some(lost) {
            self.idle.last(at);
        }
    }

    /// Whether it would be of use to know more of that.
    #[must_use]
    pub(crate) fn is_idle(&self) -> bool {
        self.idle.since().is_some()
    }

    /// Something may be running since `call` was entered.
    fn begin(&mut self, call: &Call<'_>) {
        let (entered, tid) = (call.raw.entered, call.raw.tid);
        self.first_at = Some(self.first_at.map_or(entered, |first| first.min(entered)));
        self.idle.end(entered, tid);
        self.likely_idle.end(entered, tid);
    }

    /// Nothing more is open at `at`, perhaps. Before there was any work a device is not idle.
    fn rest(&mut self, at: u64) {
        if self.first_at.is_none() || self.blind {
            return;
        }
        if !self.is_busy() {
            self.idle.begin(at);
        }
        let sure = self.unknown_since.is_none() && !self.elsewhere;
        let generation = self.past.reached_before(at.saturating_sub(QUIET_NS));
        if sure && self.streams.iter().all(|stream| stream.is_quiet(generation)) {
            self.likely_idle.begin(at);
        }
    }

    /// A copy. `waited`: the call waited for what its stream had before; `done`: and for itself.
    pub fn copy(&mut self, call: &Call<'_>, waited: bool, done: bool) {
        let Some(stream) = self.stream(call) else {
            return self.submit_anywhere(call);
        };
        let (generation, at) = (call.raw.generation, call.raw.returned);
        if done {
            self.begin(call);
            self.open += usize::from(self.streams[stream].occupy(call.raw.entered, call.raw.submitted));
            self.drain_with_default(stream, generation, at);
            return;
        }
        let had_work = self.streams[stream].is_open();
        if waited {
            self.streams[stream].queue(call.raw.submitted);
            self.drain_with_default(stream, generation, at);
        }
        let since = if had_work { at } else { call.raw.entered };
        self.put(stream, call, since, call.raw.generation_now);
    }

    /// A stream, event or context is known to have come so far.
    pub(crate) fn anchor(&mut self, call: &Call<'_>) {
        let (generation, at) = (call.raw.generation, call.raw.returned);
        if let Some(event) = call.part(WorkPart::Event) {
            if let Some(mark) = self.events.reach(event, call.raw.entered, at) {
                self.reach(mark, at);
            }
        } else if call.has_stream {
            if let Some(stream) = self.stream(call) {
                self.drain_with_default(stream, generation, at);
            }
        } else {
            let named = call.number(WorkPart::Context);
            self.drain_context(if named == 0 { call.raw.context } else { named }, generation, at);
        }
    }

    /// A thread has waited for a stream.
    pub(crate) fn blocked(&mut self, call: &Call<'_>) -> Option<u64> {
        let stream = match call.part(WorkPart::Event) {
            Some(event) => self.events.mark(event, call.raw.entered)?.stream,
            None if call.has_stream => self.stream(call)?,
            None => return None,
        };
        let blocked = &mut self.streams[stream].blocked_ns;
        *blocked = blocked.saturating_add(call.duration_ns());
        Some(self.streams[stream].handle)
    }

    /// The program measures the time between two events: both have been reached.
    pub fn elapsed(&mut self, call: &Call<'_>) {
        for part in [WorkPart::FromEvent, WorkPart::Event] {
            let event = call.number(part);
            if let Some(mark) = self.events.reach(event, call.raw.entered, call.raw.returned) {
                self.reach(mark, call.raw.returned);
            }
        }
    }

    /// An event marks how far a stream has come.
    pub fn record(&mut self, call: &Call<'_>) {
        let (event, entered) = (call.number(WorkPart::Event), call.raw.entered);
        if self.events.was_reached_after(event, entered) {
            // what was taken for done then may not have been
            self.idle.end(entered, call.raw.tid);
            self.likely_idle.end(entered, call.raw.tid);
            self.doubt(entered, call.raw.generation);
        }
        let Some(stream) = self.stream(call) else {
            return self.forget_event(call); // it may have marked another stream before
        };
        let mark = Mark {
            stream,
            generation: call.raw.generation,
            submitted: call.raw.submitted,
            at: call.raw.returned,
        };
        self.streams[stream].count(mark.submitted);
        self.events.record(event, entered, mark);
    }

    /// A stream waits for an event.
    pub fn wait(&mut self, call: &Call<'_>) {
        let Some(stream) = self.stream(call) else { return };
        if let Some(mark) = self
            .events
            .reach(call.number(WorkPart::Event), call.raw.entered, call.raw.returned)
            .filter(|mark| mark.stream != stream)
        {
            self.streams[stream].join(call.raw.generation, mark);
        }
    }

    /// An event is gone.
    pub(crate) fn forget_event(&mut self, call: &Call<'_>) {
        self.events.forget(call.number(WorkPart::Event));
    }

    /// A new stream, under a handle that may have stood for another one.
    pub fn create(&mut self, call: &Call<'_>) {
        let name = StreamName::named(call.number(WorkPart::Key), call.raw.context, call.raw.tid);
        self.names.remove(&name);
        let Some(index) = self.named(name) else { return };
        let stream = &mut self.streams[index];
        stream.context = call.raw.context;
        stream.nonblocking = call.part(WorkPart::Flags).map(|flags| flags & 1 != 0);
        stream.priority = Some(call.part(WorkPart::Priority).map_or(0, |priority| priority as i32));
    }

    /// The end of a stream; its work goes on.
    pub fn destroy(&mut self, call: &Call<'_>) {
        let Some(stream) = self.stream(call) else { return };
        self.streams[stream].alive = false;
        self.streams[stream].count(call.raw.submitted);
        self.names.remove(&StreamName::of(call));
    }

    /// One more of its calls became a node of a graph.
    pub fn capture(&mut self, call: &Call<'_>) {
        let Some(stream) = self.stream(call) else { return };
        self.streams[stream].captured += 1;
        let submitted = call.raw.submitted;
        self.streams[stream].count(submitted);
        self.streams[stream].advance(submitted);
    }

    /// What the kernel counted for a stream in the end.
    pub fn count(&mut self, name: StreamName, submitted: u64) {
        if let Some(index) = self.names.get(&name) {
            self.streams[*index].count(submitted);
        }
    }

    /// Whether something may be running.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.open > 0 || self.unknown_since.is_some() || self.elsewhere
    }

    /// All streams.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Stream)> {
        self.streams.iter().enumerate()
    }

    /// Length of the time from the first submission to the last thing that is known, or `now`; and how much of it
    /// was idle. Nothing is known of the time after the last wait, unless [`Streams::quiet_until`] told.
    #[must_use]
    pub fn window(&self, now: u64) -> (u64, u64) {
        let Some(first) = self.first_at else { return (0, 0) };
        let until = if self.is_busy() {
            now
        } else {
            self.idle.known_until().unwrap_or(self.last_done_at)
        };
        (until.saturating_sub(first), self.idle.total_ns())
    }

    /// How much of that was idle, if streams that were given nothing for a second or more are done.
    #[must_use]
    pub(crate) fn likely_idle_ns(&self) -> u64 {
        self.likely_idle.total_ns()
    }

    /// When the first submission was entered, and until when things are known; see [`Streams::window`].
    #[must_use]
    pub fn limits(&self, now: u64) -> Option<(u64, u64)> {
        let first = self.first_at?;
        Some((first, first + self.window(now).0))
    }

    /// Idle time by why.
    #[must_use]
    pub(crate) fn idle_reasons(&self) -> Reasons {
        self.idle.reasons()
    }

    /// A thread took memory or gave it back.
    pub(crate) fn memory(&mut self, entered: u64, returned: u64) {
        self.idle.memory(entered, returned);
    }

    /// Gaps, and the longest.
    #[must_use]
    pub fn gaps(&self) -> (u64, u64) {
        self.idle.pieces()
    }

    /// Recent gaps.
    #[cfg(test)]
    pub(crate) fn recent_gaps(&self) -> Vec<(u64, u64)> {
        self.idle.recent().collect()
    }

    #[must_use]
    pub(crate) fn pressure(&self) -> Pressure {
        self.pressure
    }
}
