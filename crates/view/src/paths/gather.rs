//! Takes rows, and adds up time by call path.

use super::calls::{Calls, Ran, Stack};
use super::frames::{Frames, NO_PATH, Name, OTHER, OUTER};
use super::growing::{At, Growing, aside};
use super::tree::{Sum, Tree};
use super::{Map, Weight, totals};
use crate::catalog::Class;
use crate::frame::json::frames_of;
use crate::frame::path::steps;
use crate::model::outside::{BETWEEN, LOOK_NS, SAMPLE};
use crate::model::snapshot::{Snapshot, View};
use crate::record::{Kind, Record, Taker, json};

/// Different stacks that are told apart.
const MOST_STACKS: usize = 1 << 16;
/// Frames of one stack, from the innermost.
const DEEPEST: usize = 512;
/// Threads and processes whose names are known.
const MOST_NAMES: usize = 1 << 16;
/// Beginnings of paths that are found without a walk.
const MOST_KNOWN: usize = 1 << 17;

/// Where the frames of a stack begin.
type Beginning = (u32, Option<u32>, Name, Stack);

/// Takes rows, and adds up time by call path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Paths {
    frames: Frames,
    stacks: Stacks,
    calls: Calls,
    comms: Map<u32, String>,
    /// Of threads that have called: their names, and the frame of these.
    threads: Map<u32, (String, Name)>,
    gpu: Growing,
    known: Map<Beginning, At>,
    /// By the driver's calls, and by the runtime's.
    waits: [Waits; 2],
    /// Outside CUDA.
    host: Growing,
    outside: Map<Beginning, At>,
}

/// Waits that one layer tells of.
#[derive(Debug, Clone, Default)]
struct Waits {
    tree: Growing,
    known: Map<Beginning, At>,
    /// Of calls that say so by their name.
    sync: Sum,
}

/// Stacks by number, each with the names of its frames, outermost first.
#[derive(Debug, Clone, Default)]
struct Stacks {
    numbers: Map<u64, Stack>,
    paths: Vec<Box<[Name]>>,
    /// Chosen anew in each run, so that no file can have two stacks taken for one.
    key: ahash::RandomState,
}

impl Stacks {
    fn number(&mut self, text: &str, frames: &mut Frames) -> Stack {
        let hash = self.key.hash_one(text);
        if let Some(known) = self.numbers.get(&hash) {
            return *known;
        }
        let full = self.paths.len() >= MOST_STACKS;
        if self.paths.len() > MOST_STACKS {
            return MOST_STACKS as Stack;
        }
        let path = if full { [OTHER].into() } else { path_of(text, frames) };
        let number = self.paths.len() as Stack;
        self.paths.push(path);
        if !full {
            self.numbers.insert(hash, number);
        }
        number
    }

    fn path(&self, stack: Stack) -> &[Name] {
        self.paths.get(stack as usize).map_or(&[OTHER], |path| path)
    }
}

fn path_of(text: &str, frames: &mut Frames) -> Box<[Name]> {
    let mut stack = frames_of(text);
    let outer = (stack.len() > DEEPEST).then_some(OUTER);
    stack.truncate(DEEPEST);
    let names = steps(&stack);
    let names = names.iter().map(|step| frames.step(step));
    let names: Vec<Name> = outer.into_iter().chain(names).collect();
    match names.is_empty() {
        true => [NO_PATH].into(),
        false => names.into(),
    }
}

impl Taker for Paths {
    fn take(&mut self, event: &Record<'_>) {
        match event.kind {
            Kind::Call => self.call(event),
            Kind::Gpu => self.ran(event),
            Kind::Sample => self.sampled(event),
            Kind::Process if event.name != "exit" => self.name(event.pid, event.comm),
            _ => {}
        }
    }
}

impl Paths {
    fn name(&mut self, id: u32, comm: &str) {
        if comm.is_empty() || (self.comms.len() >= MOST_NAMES && !self.comms.contains_key(&id)) {
            return;
        }
        let known = self.comms.entry(id).or_default();
        if known != comm {
            comm.clone_into(known);
        }
    }

    fn thread(&mut self, event: &Record<'_>) -> Name {
        if event.tid == event.pid {
            self.name(event.pid, event.comm);
        }
        let known = self.threads.get(&event.tid);
        if let Some((_, name)) = known.filter(|(comm, _)| comm == event.comm || event.comm.is_empty()) {
            return *name;
        }
        let name = self.frames.threads(event.tid == event.pid, event.comm);
        if known.is_some() || self.threads.len() < MOST_NAMES {
            self.threads.insert(event.tid, (event.comm.to_owned(), name));
        }
        name
    }

    /// A process of which no row of its main thread tells is named by its totals.
    fn comm(&self, id: u32, exact: Option<&Snapshot>) -> Option<String> {
        let told = || {
            exact?
                .work
                .iter()
                .find(|work| work.pid == id)
                .map(|work| work.comm.clone())
        };
        self.comms.get(&id).cloned().or_else(told)
    }

    fn call(&mut self, event: &Record<'_>) {
        let gives = matches!(event.class, Class::Launch | Class::Copy | Class::Memset);
        let waits = event.class == Class::Sync || (event.class == Class::Copy && event.blocking);
        if !waits && (!gives || event.stack.is_none()) {
            return;
        }
        let thread = self.thread(event);
        let stack = event.stack.map(|text| self.stacks.number(text, &mut self.frames));
        if let Some(stack) = stack.filter(|_| gives) {
            self.given((event.tid, event.at), stack);
            if let Some(since) = event.since_caller {
                self.given((event.tid, event.at.saturating_sub_unsigned(since)), stack);
            }
        }
        if waits && !event.failed {
            self.waited(event, thread, stack);
        }
    }

    fn given(&mut self, key: (u32, i64), stack: Stack) {
        for ran in self.calls.note(key, stack) {
            self.add(&ran, Some((key.0, stack)));
        }
    }

    fn ran(&mut self, event: &Record<'_>) {
        self.name(event.pid, event.comm);
        let args = event.args.unwrap_or_default();
        let ran = Ran {
            pid: event.pid,
            device: json::device_of_activity(args).unwrap_or(0),
            name: self.frames.leaf(event.name),
            sum: Sum {
                ns: event.ns.unwrap_or(0),
                count: event.count,
            },
        };
        let call = json::call_of_activity(args);
        match call.map(|call| (call, self.calls.stack(call))) {
            Some((call, Some(stack))) => self.add(&ran, Some((call.0, stack))),
            Some((call, None)) => {
                if let Err(ran) = self.calls.wait(call, ran) {
                    self.add(&ran, None);
                }
            }
            None => self.add(&ran, None),
        }
    }

    fn add(&mut self, ran: &Ran, from: Option<(u32, Stack)>) {
        let process = (ran.pid, Some(ran.device));
        let at = match from {
            Some((tid, stack)) => {
                let path = self.stacks.path(stack);
                let thread = self.threads.get(&tid).map_or(OTHER, |(_, name)| *name);
                let beginning = (process.0, process.1, thread, stack);
                begin(&mut self.gpu, &mut self.known, &mut self.frames, beginning, path)
            }
            None => aside(&mut self.gpu, &mut self.frames, process, NO_PATH),
        };
        let end = self.gpu.step(at, ran.name);
        self.gpu.add(end, ran.sum);
    }

    fn waited(&mut self, event: &Record<'_>, thread: Name, stack: Option<Stack>) {
        let (layer, Some(ns)) = (event.layer, event.ns) else {
            return;
        };
        let Some(index) = ["driver", "runtime"].iter().position(|name| *name == layer) else {
            return;
        };
        let waits = &mut self.waits[index];
        let leaf = self.frames.leaf(event.name);
        let at = match stack {
            Some(stack) => {
                let path = without(self.stacks.path(stack), leaf, &self.frames);
                let beginning = (event.pid, None, thread, stack);
                begin(&mut waits.tree, &mut waits.known, &mut self.frames, beginning, path)
            }
            None => aside(&mut waits.tree, &mut self.frames, (event.pid, None), NO_PATH),
        };
        let end = waits.tree.step(at, leaf);
        let sum = Sum { ns, count: event.count };
        waits.tree.add(end, sum);
        if event.class == Class::Sync {
            waits.sync.add(sum);
        }
    }

    fn sampled(&mut self, event: &Record<'_>) {
        let ns = match (event.name, event.ns) {
            (SAMPLE, Some(ns)) => ns,
            (BETWEEN, Some(_)) => LOOK_NS,
            _ => return,
        };
        let stack = event.stack.map(|text| self.stacks.number(text, &mut self.frames));
        let end = match stack {
            Some(stack) => {
                let thread = self.thread(event);
                let path = self.stacks.path(stack);
                let beginning = (event.pid, None, thread, stack);
                begin(&mut self.host, &mut self.outside, &mut self.frames, beginning, path)
            }
            None => aside(&mut self.host, &mut self.frames, (event.pid, None), NO_PATH),
        };
        self.host.add(end, Sum { ns, count: 1 });
    }

    /// All so far. `exact`: the totals of the run, if they are known; what they have beyond rows is `(without rows)`.
    #[must_use]
    pub(crate) fn tree(&self, weight: Weight, exact: Option<&Snapshot>) -> Tree {
        let mut frames = self.frames.clone();
        let grown = match weight {
            Weight::Gpu => {
                let settled = self.settled(&mut frames);
                totals::complete(settled, &totals::executed(exact), &mut frames)
            }
            Weight::Wait => self.all_waits(exact, &mut frames),
            Weight::Host => self.host.clone(),
        };
        Tree::of(weight, &frames.named(|id| self.comm(id, exact)), grown.nodes())
    }

    /// With activities whose call has not come.
    fn settled(&self, frames: &mut Frames) -> Growing {
        let mut grown = self.gpu.clone();
        let mut waiting: Vec<&Ran> = self.calls.waiting().collect();
        waiting.sort_unstable_by_key(|ran| (ran.pid, ran.device, ran.name, ran.sum));
        for ran in waiting {
            let at = aside(&mut grown, frames, (ran.pid, Some(ran.device)), NO_PATH);
            let end = grown.step(at, ran.name);
            grown.add(end, ran.sum);
        }
        grown
    }

    fn all_waits(&self, exact: Option<&Snapshot>, frames: &mut Frames) -> Growing {
        let view = totals::view(exact, [&self.waits[0], &self.waits[1]].map(|waits| waits.sync.count));
        let waits = &self.waits[usize::from(view == View::Runtime)];
        match view {
            View::Driver => totals::complete(waits.tree.clone(), &totals::waited(exact), frames),
            View::Runtime => totals::complete_all(waits.tree.clone(), totals::synced(exact), waits.sync),
        }
    }
}

/// A stack may end with the call itself, which the leaf says already.
fn without<'a>(path: &'a [Name], leaf: Name, frames: &Frames) -> &'a [Name] {
    match path {
        [outer @ .., last] if frames.are_alike(*last, leaf) => outer,
        all => all,
    }
}

/// Where a stack of a thread leads.
fn begin(tree: &mut Growing, known: &mut Map<Beginning, At>, frames: &mut Frames, key: Beginning, path: &[Name]) -> At {
    if let Some(at) = known.get(&key) {
        return *at;
    }
    let (pid, device, thread, _) = key;
    let mut at = tree.step(Growing::ROOT, frames.process((pid, device)));
    if path != [NO_PATH] {
        at = tree.step(at, thread);
    }
    let at = path.iter().fold(at, |at, name| tree.step(at, *name));
    if known.len() < MOST_KNOWN {
        known.insert(key, at);
    }
    at
}
