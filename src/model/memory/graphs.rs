//! Memory that graphs allocate: it exists once the graph has run, and outlives the graph.
//!
//! Owns what graphs will do when they run. Source of the rules: CUDA programming guide, graph memory nodes.

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
    by_handle: HashMap<u64, u32>,
    execs: HashMap<u64, u32>,
    capturing: HashMap<u64, Plan>,
    next: u32,
}

impl Graphs {
    /// From now on calls on `stream` become nodes.
    pub fn begin_capture(&mut self, stream: u64) {
        self.capturing.insert(stream, Plan::default());
    }

    /// What calls on `stream` become part of, when it captures.
    pub fn captured(&mut self, stream: u64) -> Option<&mut Plan> {
        self.capturing.get_mut(&stream)
    }

    /// What was captured becomes a graph.
    pub fn end_capture(&mut self, stream: u64, graph: u64) {
        let Some(captured) = self.capturing.remove(&stream) else {
            return;
        };
        if captured.allocations.is_empty() && captured.frees.is_empty() {
            return;
        }
        let plan = self.plan(graph);
        plan.allocations.extend(captured.allocations);
        plan.frees.extend(captured.frees);
    }

    /// What a graph will do.
    pub fn plan(&mut self, graph: u64) -> &mut Plan {
        let next = &mut self.next;
        let number = *self.by_handle.entry(graph).or_insert_with(|| {
            *next = next.wrapping_add(1);
            *next
        });
        &mut self.graphs.entry(number).or_default().plan
    }

    /// A graph was made runnable. Only those that do something to memory are kept.
    pub fn instantiate(&mut self, graph: u64, exec: u64) {
        self.execs.remove(&exec);
        let Some(number) = self.by_handle.get(&graph) else {
            return;
        };
        self.execs.insert(exec, *number);
        self.graphs.entry(*number).or_default().execs += 1;
    }

    /// What happens when a runnable graph runs.
    pub fn launched(&self, exec: u64) -> Option<&Plan> {
        self.graphs.get(self.execs.get(&exec)?).map(|graph| &graph.plan)
    }

    /// A graph ends; its handle may be handed out again.
    pub fn destroy(&mut self, graph: u64) {
        let Some(number) = self.by_handle.remove(&graph) else {
            return;
        };
        if let Some(graph) = self.graphs.get_mut(&number) {
            graph.destroyed = true;
        }
        self.collect(number);
    }

    /// A runnable graph ends.
    pub fn destroy_exec(&mut self, exec: u64) {
        let Some(number) = self.execs.remove(&exec) else {
            return;
        };
        if let Some(graph) = self.graphs.get_mut(&number) {
            graph.execs = graph.execs.saturating_sub(1);
        }
        self.collect(number);
    }

    fn collect(&mut self, number: u32) {
        let over = |graph: &Graph| graph.destroyed && graph.execs == 0;
        if self.graphs.get(&number).is_some_and(over) {
            self.graphs.remove(&number);
        }
    }
}
