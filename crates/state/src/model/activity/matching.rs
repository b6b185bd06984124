//! Which call has caused an activity: a stream's work is done in the order in which it was given, so the next activity of a stream is
//! that of the next call which could have caused it.
//!
//! Owns calls that were not found yet. CUPTI is not asked for numbers that would name them exactly: that costs more than all else.

mod queue;
#[cfg(test)]
mod tests;

pub use queue::Given;

use super::windows::{Turn, Windows};
use super::{Activity, Cause};
use crate::wire::PER_THREAD;
use queue::{Next, Queue};
use std::collections::{HashMap, HashSet, VecDeque};

/// Streams whose calls wait, of all processes. There may be a million: what others are given is not looked for.
const MOST_STREAMS: usize = 1 << 16;
/// Calls of a stream that wait.
const MOST_WAITING: usize = 1 << 16;
/// The GPU's clock is fitted to the host's: work may seem to begin so long before its call, ns.
const UNEVEN_NS: u64 = 5_000;

/// A process and a handle.
type Of = (u32, u64);

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

/// Which call has caused an activity.
#[derive(Debug, Default)]
pub struct Matcher {
    /// Handles by process, context and number.
    handles: HashMap<(u32, u32, u32), u64>,
    waiting: HashMap<Of, Queue>,
    /// Processes with streams beyond those: one that nobody has named may be any of them.
    crowded: HashSet<u32>,
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
    /// Of processes that are not recorded all the time.
    windows: HashMap<u32, Windows>,
    /// From when on copies of a process are not told of.
    no_copies: HashMap<u32, u64>,
    /// Windows that were opened and of which no activity has come so far, by process.
    opened: HashMap<u32, VecDeque<u64>>,
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

    /// Recording of a process begins, or ends for a while: calls that are entered between give devices what is not told of.
    pub fn turn(&mut self, pid: u32, turn: Turn) {
        self.windows.entry(pid).or_default().turn(turn);
        if let Turn::Opened(at) | Turn::Late(at) = turn {
            self.opened.entry(pid).or_default().push_back(at);
        }
    }

    /// Copies that are asked for from `since` on are not told of.
    pub fn leave_copies(&mut self, pid: u32, since: u64) {
        if self.no_copies.insert(pid, since) == Some(since) {
            return;
        }
        let queues = self.waiting.iter_mut().filter(|(of, _)| of.0 == pid);
        queues.for_each(|(_, queue)| queue.leave_copies(since));
    }

    fn tells_of(&self, pid: u32, entered: u64, given: &Given) -> bool {
        let is_left = |since: &u64| matches!(given, Given::Copy(_)) && entered >= *since;
        !self.no_copies.get(&pid).is_some_and(is_left) && self.is_recorded(pid, entered)
    }

    fn is_recorded(&self, pid: u32, entered: u64) -> bool {
        self.windows.get(&pid).is_none_or(|windows| windows.hold(entered))
    }

    /// Of calls before a window, and of one that was under way when it was opened, it is not known whether they are told of.
    fn reopen(&mut self, pid: u32, begin: u64) {
        let Some(opened) = self.opened.get_mut(&pid) else {
            return;
        };
        while let Some(at) = opened.front().copied().filter(|at| *at <= begin) {
            opened.pop_front();
            let queues = self.waiting.iter_mut().filter(|(of, _)| of.0 == pid);
            queues.for_each(|(_, queue)| queue.restart(at));
            if let Some(launches) = self.launches.get_mut(&pid) {
                launches.retain(|launch| launch.entered >= at);
            }
            self.replays.retain(|key, _| key.0 != pid);
        }
    }

    /// A call gives a stream something to do: one of that time, CLOCK_MONOTONIC ns, within `call`.
    pub fn give(&mut self, (pid, stream): Of, call: Cause, entered: u64, given: Given) {
        if self.capturing.contains(&(pid, stream)) || !self.tells_of(pid, entered, &given) {
            return;
        }
        if let Some(queue) = self.queue((pid, stream)) {
            queue.add(call, entered, given);
        }
    }

    /// The calls of a stream that wait; `None`: there are too many streams for one more.
    fn queue(&mut self, of: Of) -> Option<&mut Queue> {
        if self.waiting.len() >= MOST_STREAMS && !self.waiting.contains_key(&of) {
            self.crowded.insert(of.0);
            return None;
        }
        Some(self.waiting.entry(of).or_default())
    }

    /// The same of a graph as a whole.
    pub fn launch(&mut self, (pid, stream): Of, call: Cause, entered: u64, graph: u64) {
        if self.capturing.contains(&(pid, stream)) || !self.is_recorded(pid, entered) {
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
        self.reopen(activity.pid, activity.begin);
        if let Some((number, node)) = activity.graph {
            return self.replayed(activity, number, node);
        }
        let stream = self.stream_of(activity)?;
        let in_order = self.is_one(activity.pid, stream);
        let queue = self.waiting.get_mut(&(activity.pid, stream))?;
        match queue.next(activity, in_order) {
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

    /// When the first call of a process was entered that may still be found.
    #[must_use]
    pub fn outstanding(&self, pid: u32) -> Option<u64> {
        let queues = self.waiting.iter().filter(|(of, _)| of.0 == pid);
        let launches = self.launches.get(&pid).and_then(VecDeque::front);
        let calls = queues.filter_map(|(_, queue)| queue.outstanding());
        calls.chain(launches.map(|launch| launch.entered)).min()
    }

    /// Whether calls that name that handle are all of one stream: each thread has another per-thread default stream, and each
    /// context a default stream.
    fn is_one(&self, pid: u32, stream: u64) -> bool {
        let of_contexts = || {
            self.handles
                .iter()
                .filter(|(key, handle)| key.0 == pid && **handle == stream)
        };
        stream > PER_THREAD || stream < PER_THREAD && of_contexts().nth(1).is_none()
    }

    /// Its handle. A stream that nobody has named is one that has the right thing to do next, and has no other number.
    fn stream_of(&mut self, activity: &Activity) -> Option<u64> {
        let key = (activity.pid, activity.context, activity.stream);
        if let Some(handle) = self.handles.get(&key) {
            return Some(*handle);
        }
        if self.crowded.contains(&activity.pid) {
            return None;
        }
        let known: HashSet<u64> = self
            .handles
            .iter()
            .filter(|(key, _)| key.0 == activity.pid)
            .map(|(_, h)| *h)
            .collect();
        let next_fits = |(of, queue): &(&Of, &Queue)| {
            let is_free = of.0 == activity.pid && (of.1 <= PER_THREAD || !known.contains(&of.1));
            is_free && queue.begins_with(activity)
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
}
