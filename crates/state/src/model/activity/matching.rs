//! Which call has caused an activity: a stream's work is done in the order in which it was given, so the next activity of a stream is
//! that of the next call which could have caused it.
//!
//! Owns calls that were not found yet. CUPTI is not asked for numbers that would name them exactly: that costs more than all else.

use super::{Activity, Cause, What};
use crate::model::kernel_name::KernelName;
use crate::wire::PER_THREAD;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// Calls of a stream that wait.
const MOST_WAITING: usize = 1 << 16;
/// Calls that are looked at for one activity: between two that match, others may have been lost.
const FURTHEST: usize = 256;
/// The GPU's clock is fitted to the host's: work may seem to begin so long before its call, ns.
const UNEVEN_NS: u64 = 5_000;

/// A process and a handle.
type Of = (u32, u64);

/// What a call gives a stream to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// `None`: its name is not known.
    Kernel(Option<Arc<KernelName>>),
    /// `None`: how much, the call does not say.
    Copy(Option<u64>),
    Memset,
}

/// A call that was not found yet.
#[derive(Debug, Clone)]
struct Waiting {
    call: Cause,
    entered: u64,
    given: Given,
}

/// Calls of a stream, in order.
#[derive(Debug, Default)]
struct Queue {
    calls: VecDeque<Waiting>,
    /// Something has begun before the call whose turn it was: that one may be done already, or its own was not seen.
    in_doubt: bool,
}

/// A launch of a graph.
#[derive(Debug, Clone, Copy)]
struct Launch {
    call: Cause,
    entered: u64,
    stream: u64,
    graph: u64,
}

/// What of a graph has been seen since its last launch into a stream.
#[derive(Debug, Default)]
struct Replay {
    call: Option<Cause>,
    seen: HashSet<u64>,
    /// Launches that have passed while its handle was not known.
    passed: usize,
}

/// What is known of a graph by CUPTI's number.
#[derive(Debug, Default)]
struct Known {
    /// Its handle.
    graph: Option<u64>,
    /// It was destroyed: its handle may be another one's. What it has done may still come.
    destroyed: bool,
    /// Of the launch that was seen last.
    call: Option<Cause>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Matcher {
    /// Handles by process, context and number.
    handles: HashMap<(u32, u32, u32), u64>,
    waiting: HashMap<Of, Queue>,
    launches: HashMap<u32, VecDeque<Launch>>,
    graphs: HashMap<(u32, u32), Known>,
    /// By process, number, and handle of the stream that it was launched into, where that is known.
    replays: HashMap<(u32, u32, Option<u64>), Replay>,
    /// Streams that graphs were launched into.
    launched_into: HashSet<Of>,
    /// Streams whose work becomes nodes of a graph.
    capturing: HashSet<Of>,
    /// Activities that began before the call whose turn it was, by process.
    early: HashMap<u32, u64>,
}

impl Matcher {
    /// Stream `number` of a context has that handle.
    pub fn name_stream(&mut self, pid: u32, context: u32, number: u32, handle: u64) {
        self.handles.insert((pid, context, number), handle);
    }

    /// Work of a stream becomes nodes from now on, or no longer.
    pub fn capture(&mut self, pid: u32, stream: u64, on: bool) {
        match on {
            true => self.capturing.insert((pid, stream)),
            false => self.capturing.remove(&(pid, stream)),
        };
    }

    /// A call gives a stream something to do: one of that time, CLOCK_MONOTONIC ns, within `call`.
    pub fn give(&mut self, (pid, stream): Of, call: Cause, entered: u64, given: Given) {
        if self.capturing.contains(&(pid, stream)) {
            return;
        }
        let waiting = &mut self.waiting.entry((pid, stream)).or_default().calls;
        if waiting.len() == MOST_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(Waiting { call, entered, given });
    }

    /// The same of a graph as a whole.
    pub fn launch(&mut self, (pid, stream): Of, call: Cause, entered: u64, graph: u64) {
        if self.capturing.contains(&(pid, stream)) {
            return;
        }
        self.launched_into.insert((pid, stream));
        let launches = self.launches.entry(pid).or_default();
        if launches.len() == MOST_WAITING {
            launches.pop_front();
        }
        launches.push_back(Launch {
            call,
            entered,
            stream,
            graph,
        });
    }

    /// The call that has caused `activity`, of those that were told; activities of a stream come in their order.
    pub fn cause(&mut self, activity: &Activity) -> Option<Cause> {
        if let Some((number, node)) = activity.graph {
            return self.replayed(activity, number, node);
        }
        let stream = self.stream_of(activity)?;
        let queue = self.waiting.get_mut(&(activity.pid, stream))?;
        match queue.next(activity, stream > PER_THREAD) {
            Next::Is(call) => Some(call),
            Next::Unsure => None,
            Next::ComesLater => {
                *self.early.entry(activity.pid).or_default() += 1;
                None
            }
        }
    }

    /// Activities of a process that began before the call whose turn it was.
    #[must_use]
    pub fn early(&self, pid: u32) -> u64 {
        self.early.get(&pid).copied().unwrap_or(0)
    }

    /// Its handle. A stream that nobody has named is one that has the right thing to do next, and has no other number.
    fn stream_of(&mut self, activity: &Activity) -> Option<u64> {
        let key = (activity.pid, activity.context, activity.stream);
        if let Some(handle) = self.handles.get(&key) {
            return Some(*handle);
        }
        let known: HashSet<u64> = self
            .handles
            .iter()
            .filter(|(key, _)| key.0 == activity.pid)
            .map(|(_, h)| *h)
            .collect();
        let next_fits = |(of, waiting): &(&Of, &Queue)| {
            let is_free = of.0 == activity.pid && (of.1 <= PER_THREAD || !known.contains(&of.1));
            is_free && waiting.calls.front().is_some_and(|one| one.fits(activity))
        };
        let mut found = self.waiting.iter().filter(next_fits).map(|(of, _)| of.1);
        let only = found.next().filter(|_| found.next().is_none())?;
        self.handles.insert(key, only);
        Some(only)
    }

    /// The launch that a part of a graph belongs to: each part is done once by each. Parts beside the stream that it was launched into
    /// belong to the last launch that was seen there.
    fn replayed(&mut self, activity: &Activity, number: u32, node: u64) -> Option<Cause> {
        let (pid, handles) = (activity.pid, &self.handles);
        let stream = handles.get(&(pid, activity.context, activity.stream)).copied();
        let stream = stream.filter(|stream| self.launched_into.contains(&(pid, *stream)));
        let last = self.graphs.get(&(pid, number)).and_then(|known| known.call);
        if stream.is_none() && last.is_some() && !self.replays.contains_key(&(pid, number, None)) {
            return last;
        }
        let key = (pid, number, stream);
        let mut replay = self.replays.remove(&key).unwrap_or_default();
        if replay.seen.is_empty() || replay.seen.contains(&node) {
            replay.seen.clear();
            replay.call = self.next_launch(activity, stream, number, &mut replay.passed);
            self.graphs.entry((pid, number)).or_default().call = replay.call;
        }
        replay.seen.insert(node);
        let call = replay.call;
        self.replays.insert(key, replay);
        call
    }

    fn next_launch(
        &mut self,
        activity: &Activity,
        stream: Option<u64>,
        number: u32,
        passed: &mut usize,
    ) -> Option<Cause> {
        let key = (activity.pid, number);
        let known = self.graphs.get(&key).and_then(|known| known.graph);
        let Some(graph) = known.or_else(|| self.only_graph(activity, stream, *passed)) else {
            *passed += 1;
            return None;
        };
        self.graphs.entry(key).or_default().graph = Some(graph);
        let launches = self.launches.get_mut(&activity.pid)?;
        let is_its = |launch: &Launch| launch.graph == graph && stream.is_none_or(|stream| stream == launch.stream);
        for _ in 0..std::mem::take(passed) {
            let passed = launches.iter().position(is_its)?;
            launches.remove(passed);
        }
        let begun = activity.begin + UNEVEN_NS;
        let next = launches.iter().position(is_its)?;
        if launches.get(next).is_none_or(|launch| launch.entered > begun) {
            *self.early.entry(activity.pid).or_default() += 1;
            return None;
        }
        launches.remove(next).map(|launch| launch.call)
    }

    /// The handle of a graph that nothing is known of: that of the only one that can be meant, of those that were launched often
    /// enough.
    fn only_graph(&self, activity: &Activity, stream: Option<u64>, passed: usize) -> Option<u64> {
        let graphs = self
            .graphs
            .iter()
            .filter(|(key, known)| key.0 == activity.pid && !known.destroyed);
        let known: HashSet<u64> = graphs.filter_map(|(_, known)| known.graph).collect();
        let mut counts: HashMap<u64, usize> = HashMap::new();
        for launch in self.launches.get(&activity.pid)? {
            let is_there = launch.entered <= activity.begin + UNEVEN_NS && !known.contains(&launch.graph);
            if is_there && stream.is_none_or(|stream| stream == launch.stream) {
                *counts.entry(launch.graph).or_default() += 1;
            }
        }
        let mut often = counts.into_iter().filter(|(_, count)| *count > passed);
        let only = often.next().filter(|_| often.next().is_none())?;
        Some(only.0)
    }

    /// A graph is destroyed: its handle may be another one's from now on.
    pub fn destroy(&mut self, pid: u32, graph: u64) {
        let own = self.graphs.iter_mut().filter(|(key, _)| key.0 == pid);
        for (_, known) in own.filter(|(_, known)| known.graph == Some(graph)) {
            known.destroyed = true;
        }
    }

    /// The program of a process is over.
    pub fn forget(&mut self, pid: u32) {
        self.handles.retain(|key, _| key.0 != pid);
        self.waiting.retain(|key, _| key.0 != pid);
        self.launches.remove(&pid);
        self.graphs.retain(|key, _| key.0 != pid);
        self.replays.retain(|key, _| key.0 != pid);
        self.launched_into.retain(|key| key.0 != pid);
        self.capturing.retain(|key| key.0 != pid);
    }
}

/// What is found for an activity.
enum Next {
    Is(Cause),
    /// None, or more than one.
    Unsure,
    /// Such a call was entered after it began.
    ComesLater,
}

impl Queue {
    /// Takes the call out that has caused `activity`. `in_order`: what is before it has been done, and was not told of.
    fn next(&mut self, activity: &Activity, in_order: bool) -> Next {
        let mut fitting = self.calls.iter().take(FURTHEST).enumerate();
        let mut fitting = fitting.by_ref().filter(|(_, one)| one.fits(activity)).map(|(at, _)| at);
        let Some(at) = fitting.next() else {
            let comes_later = self.comes_later(activity);
            self.in_doubt |= comes_later;
            return if comes_later { Next::ComesLater } else { Next::Unsure };
        };
        // where calls were passed over, or no other can be meant, the order is known again
        self.in_doubt = self.in_doubt && !(in_order && at > 0) && fitting.next().is_some();
        if in_order {
            self.calls.drain(..at);
        }
        let taken = self.calls.remove(if in_order { 0 } else { at });
        match taken.filter(|_| !self.in_doubt) {
            Some(taken) => Next::Is(taken.call),
            None => Next::Unsure,
        }
    }

    /// Whether such a call was entered after `activity` began.
    fn comes_later(&self, activity: &Activity) -> bool {
        let mut calls = self.calls.iter().take(FURTHEST);
        calls.any(|one| one.gives(activity) && !one.fits(activity))
    }
}

impl Waiting {
    /// Whether it asks for such a thing, whenever.
    fn gives(&self, activity: &Activity) -> bool {
        match (&self.given, &activity.what) {
            (Given::Kernel(Some(given)), What::Kernel { name: Some(name), .. }) => given.symbol == name.symbol,
            (Given::Kernel(_), What::Kernel { .. }) => true,
            (Given::Copy(Some(given)), What::Copy { bytes, .. }) => given == bytes,
            (Given::Copy(None), What::Copy { .. }) | (Given::Memset, What::Memset { .. }) => true,
            _ => false,
        }
    }

    fn fits(&self, activity: &Activity) -> bool {
        self.gives(activity) && self.entered <= activity.begin + UNEVEN_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PID: u32 = 7;

    fn call(entered: u64) -> Cause {
        Cause {
            tid: PID,
            entered,
            site: None,
        }
    }

    fn copy(begin: u64, stream: u32, bytes: u64) -> Activity {
        let what = What::Copy {
            direction: None,
            host: None,
            bytes,
        };
        Activity {
            pid: PID,
            begin,
            end: begin + 10,
            device: 0,
            context: 1,
            stream,
            graph: None,
            what,
            call: None,
        }
    }

    fn given(matcher: &mut Matcher, stream: u64, calls: &[(u64, u64)]) {
        for (entered, bytes) in calls {
            matcher.give((PID, stream), call(*entered), *entered, Given::Copy(Some(*bytes)));
        }
    }

    #[test]
    fn a_stream_does_its_work_in_order() {
        let mut matcher = Matcher::default();
        matcher.name_stream(PID, 1, 13, 0x700);
        given(&mut matcher, 0x700, &[(1, 64), (2, 64), (3, 8), (4, 64)]);
        let causes: Vec<_> = [64, 64, 8, 64]
            .iter()
            .map(|bytes| matcher.cause(&copy(9000, 13, *bytes)))
            .collect();
        assert_eq!(causes, [Some(call(1)), Some(call(2)), Some(call(3)), Some(call(4))]);
        assert_eq!(matcher.cause(&copy(9000, 13, 64)), None);
    }

    #[test]
    fn what_was_lost_on_the_way_is_passed_over() {
        let mut matcher = Matcher::default();
        matcher.name_stream(PID, 1, 13, 0x700);
        given(&mut matcher, 0x700, &[(1, 64), (2, 8), (3, 16)]);
        assert_eq!(matcher.cause(&copy(9000, 13, 8)), Some(call(2)));
        assert_eq!(matcher.cause(&copy(9000, 13, 64)), None, "its turn is over");
        assert_eq!(matcher.cause(&copy(9000, 13, 16)), Some(call(3)));
    }

    #[test]
    fn nothing_is_done_before_it_was_asked_for() {
        let mut matcher = Matcher::default();
        matcher.name_stream(PID, 1, 13, 0x700);
        matcher.give((PID, 0x700), call(1), 50_000, Given::Memset);
        let memset = |begin| Activity {
            what: What::Memset { bytes: 1 },
            ..copy(begin, 13, 0)
        };
        assert_eq!(matcher.cause(&memset(44_000)), None);
        assert_eq!(
            matcher.cause(&memset(46_000)),
            Some(call(1)),
            "clocks are not as even as that"
        );
    }

    #[test]
    fn what_begins_before_its_call_is_counted_and_named_by_none() {
        let mut matcher = Matcher::default();
        matcher.name_stream(PID, 1, 13, 0x700);
        given(&mut matcher, 0x700, &[(20_000, 64)]);
        assert_eq!((matcher.cause(&copy(9000, 13, 64)), matcher.early(PID)), (None, 1));
        assert_eq!(
            (matcher.cause(&copy(9000, 13, 8)), matcher.early(PID)),
            (None, 1),
            "no such call"
        );
        given(&mut matcher, 0x700, &[(21_000, 64), (22_000, 8), (23_000, 64)]);
        assert_eq!(matcher.cause(&copy(30_000, 13, 64)), None, "either of two");
        assert_eq!(
            matcher.cause(&copy(31_000, 13, 8)),
            Some(call(22_000)),
            "the order is known again"
        );
        assert_eq!(matcher.cause(&copy(32_000, 13, 64)), Some(call(23_000)));
        assert_eq!(matcher.early(PID), 1);
    }

    #[test]
    fn a_call_that_was_not_seen_takes_no_other_ones_place() {
        let mut matcher = Matcher::default();
        matcher.name_stream(PID, 1, 13, 0x700);
        given(&mut matcher, 0x700, &[(20_000, 64)]);
        assert_eq!(matcher.cause(&copy(9000, 13, 64)), None);
        assert_eq!(
            matcher.cause(&copy(20_500, 13, 64)),
            Some(call(20_000)),
            "no other can be meant"
        );
    }

    #[test]
    fn a_part_of_a_graph_may_begin_early_as_well() {
        let mut matcher = Matcher::default();
        matcher.launch((PID, 0), call(1), 1, 0xabc);
        let part = |begin| Activity {
            graph: Some((5, 1)),
            ..copy(begin, 13, 1)
        };
        assert_eq!(matcher.cause(&part(9000)), Some(call(1)));
        matcher.launch((PID, 0), call(20_000), 20_000, 0xabc);
        assert_eq!((matcher.cause(&part(9500)), matcher.early(PID)), (None, 1));
        assert_eq!(matcher.cause(&part(21_000)), Some(call(20_000)));
    }

    #[test]
    fn a_stream_without_a_name_is_the_only_one_that_has_such_work() {
        let mut matcher = Matcher::default();
        given(&mut matcher, 0x700, &[(1, 64), (3, 64)]);
        given(&mut matcher, 0x800, &[(2, 8)]);
        assert_eq!(matcher.cause(&copy(9000, 13, 64)), Some(call(1)));
        given(&mut matcher, 0x900, &[(4, 64)]);
        assert_eq!(
            matcher.cause(&copy(9000, 13, 64)),
            Some(call(3)),
            "it has kept its number"
        );
    }

    #[test]
    fn parts_of_a_graph_belong_to_its_launches_in_turn() {
        let mut matcher = Matcher::default();
        for entered in [1, 2] {
            matcher.launch((PID, 0), call(entered), entered, 0xabc);
        }
        let part = |node| Activity {
            graph: Some((5, node)),
            ..copy(9000, 13, 1)
        };
        let causes: Vec<_> = [1, 2, 1, 2, 1].map(|node| matcher.cause(&part(node))).to_vec();
        assert_eq!(
            causes,
            [Some(call(1)), Some(call(1)), Some(call(2)), Some(call(2)), None]
        );
    }

    #[test]
    fn of_graphs_that_could_each_be_meant_none_is() {
        let mut matcher = Matcher::default();
        matcher.launch((PID, 0), call(1), 1, 0xabc);
        matcher.launch((PID, 0), call(2), 2, 0xdef);
        let part = |number, begin| Activity {
            graph: Some((number, 1)),
            ..copy(begin, 13, 1)
        };
        assert_eq!(matcher.cause(&part(5, 9000)), None);
        matcher.launch((PID, 0), call(3), 10_000, 0xabc);
        assert_eq!(
            matcher.cause(&part(5, 20_000)),
            Some(call(3)),
            "only one was launched twice"
        );
        assert_eq!(
            matcher.cause(&part(6, 20_000)),
            Some(call(2)),
            "and only the other one is left"
        );
    }

    #[test]
    fn what_is_captured_is_not_done() {
        let mut matcher = Matcher::default();
        matcher.name_stream(PID, 1, 13, 0x700);
        matcher.capture(PID, 0x700, true);
        given(&mut matcher, 0x700, &[(1, 64)]);
        matcher.capture(PID, 0x700, false);
        given(&mut matcher, 0x700, &[(2, 64)]);
        assert_eq!(matcher.cause(&copy(9000, 13, 64)), Some(call(2)));
    }
}
