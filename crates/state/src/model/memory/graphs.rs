//! Memory that graphs allocate: it exists once the graph has run, and outlives the graph.
//!
//! Owns what graphs will do when they run. Source of the rules: CUDA programming guide, graph memory nodes.

use super::handles::Handles;
use super::ledger::Live;
use std::collections::HashMap;

/// What a graph does to memory when it runs.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub allocations: Vec<(u64, Live)>,
    pub frees: Vec<u64>,
}

#[derive(Debug, Default)]
struct Graph {
    plan: Plan,
    /// Runnable forms that still exist.
    execs: u32,
    destroyed: bool,
}

/// Graphs, what they were made runnable as, and streams that capture into one.
#[derive(Debug, Default)]
pub struct Graphs {
    graphs: HashMap<u32, Graph>,
    by_handle: Handles<u32>,
    execs: Handles<u32>,
    capturing: HashMap<u64, Plan>,
    next: u32,
}

impl Graphs {
    /// From now on calls on `stream` become nodes.
    pub(crate) fn begin_capture(&mut self, stream: u64) {
        self.capturing.insert(stream, Plan::default());
    }

    /// What calls on `stream` become part of, when it captures.
    pub(crate) fn captured(&mut self, stream: u64) -> Option<&mut Plan> {
        self.capturing.get_mut(&stream)
    }

    /// A graph was made by a call that returned at `at`. Its handle may have been another's.
    pub fn create(&mut self, graph: u64, at: u64) {
        self.next = self.next.wrapping_add(1);
        self.by_handle.insert(graph, self.next, at);
    }

    /// What was captured becomes a graph.
    pub(crate) fn end_capture(&mut self, stream: u64, graph: u64, at: u64) {
        let Some(captured) = self.capturing.remove(&stream) else {
            return;
        };
        if captured.allocations.is_empty() && captured.frees.is_empty() {
            return;
        }
        self.create(graph, at);
        let plan = self.plan(graph, at);
        plan.allocations.extend(captured.allocations);
        plan.frees.extend(captured.frees);
    }

    /// What a graph will do.
    pub fn plan(&mut self, graph: u64, at: u64) -> &mut Plan {
        if self.by_handle.get(graph).is_none() {
            self.create(graph, at);
        }
        let number = self.by_handle.get(graph).unwrap_or(self.next);
        &mut self.graphs.entry(number).or_default().plan
    }

    /// A graph was made runnable. Only those that do something to memory are kept.
    pub(crate) fn instantiate(&mut self, graph: u64, exec: u64, at: u64) {
        let Some(number) = self.by_handle.get(graph) else {
            return;
        };
        self.execs.insert(exec, number, at);
        self.graphs.entry(number).or_default().execs += 1;
    }

    /// What happens when a runnable graph runs.
    pub fn launched(&self, exec: u64) -> Option<&Plan> {
        self.graphs.get(&self.execs.get(exec)?).map(|graph| &graph.plan)
    }

    /// A graph ends; its handle may be handed out again.
    pub fn destroy(&mut self, graph: u64, entered: u64) {
        let Some(number) = self.by_handle.remove(graph, entered) else {
            return;
        };
        if let Some(graph) = self.graphs.get_mut(&number) {
            graph.destroyed = true;
        }
        self.collect(number);
    }

    /// A runnable graph ends.
    pub(crate) fn destroy_exec(&mut self, exec: u64, entered: u64) {
        let Some(number) = self.execs.remove(exec, entered) else {
            return;
        };
        if let Some(graph) = self.graphs.get_mut(&number) {
            graph.execs = graph.execs.saturating_sub(1);
        }
        self.collect(number);
    }

    /// Gives up waiting for ends told of late.
    pub fn settle(&mut self, horizon: u64) {
        self.by_handle.settle(horizon);
        self.execs.settle(horizon);
    }

    fn collect(&mut self, number: u32) {
        let over = |graph: &Graph| graph.destroyed && graph.execs == 0;
        if self.graphs.get(&number).is_some_and(over) {
            self.graphs.remove(&number);
        }
    }
}
