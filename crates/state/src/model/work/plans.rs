//! Graphs and what they were made runnable as, by handle: what each will run, and how often it has.
//!
//! What they consist of is shared, not copied, until it changes. Handle 0 is one that could not be read.

use super::content::Content;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug)]
struct Graph {
    content: Arc<Content>,
    /// When the call that made it returned, CLOCK_MONOTONIC ns.
    at: u64,
    /// Of [`Plans`], when all that it consists of was known.
    doubts: u64,
}

#[derive(Debug)]
struct Exec {
    content: Arc<Content>,
    at: u64,
    doubts: u64,
    /// Of all of the content.
    runs: u64,
}

/// Graphs and what they were made runnable as.
#[derive(Debug)]
pub(crate) struct Plans {
    /// Graphs that were not seen made may consist of anything.
    late: bool,
    graphs: HashMap<u64, Graph>,
    execs: HashMap<u64, Exec>,
    /// How often something happened that may have changed any graph, and any runnable one.
    graph_doubts: u64,
    exec_doubts: u64,
    /// By kernel, of runnable graphs that are gone or changed.
    settled: HashMap<u64, u64>,
}

impl Plans {
    pub(crate) fn new(late: bool) -> Plans {
        Plans {
            late,
            graphs: HashMap::new(),
            execs: HashMap::new(),
            graph_doubts: 0,
            exec_doubts: 0,
            settled: HashMap::new(),
        }
    }

    /// From now on, graphs that were not seen made may consist of anything.
    pub(crate) fn watched_late(&mut self) {
        self.late = true;
    }

    /// A graph was made by a call that returned at `at`.
    pub(crate) fn put(&mut self, graph: u64, content: Arc<Content>, at: u64) {
        let doubts = self.graph_doubts;
        self.graphs.insert(graph, Graph { content, at, doubts });
    }

    /// What a graph consists of.
    pub(crate) fn content(&self, graph: u64) -> Arc<Content> {
        match self.graphs.get(&graph) {
            Some(known) if known.doubts == self.graph_doubts && graph != 0 => Arc::clone(&known.content),
            None if !self.late && graph != 0 => Arc::default(),
            _ => Arc::new(Content::unknown()),
        }
    }

    /// A call that returned at `at` changes a graph.
    pub(crate) fn change(&mut self, graph: u64, at: u64, change: impl FnOnce(&mut Content)) {
        let (late, doubts) = (self.late, self.graph_doubts);
        let known = self.graphs.entry(graph).or_insert_with(|| Graph {
            content: Arc::new(Content::empty(late)),
            at,
            doubts,
        });
        let content = Arc::make_mut(&mut known.content);
        content.incomplete |= known.doubts != doubts;
        known.doubts = doubts;
        change(content);
    }

    /// Any graph may have lost a node.
    pub(crate) fn doubt_graphs(&mut self) {
        self.graph_doubts += 1;
    }

    /// Anything may have happened.
    pub(crate) fn doubt_all(&mut self) {
        self.graph_doubts += 1;
        self.exec_doubts += 1;
    }

    /// A call entered at `entered` ends a graph: not one that was made since under its handle.
    pub(crate) fn destroy(&mut self, graph: u64, entered: u64) {
        if self.graphs.get(&graph).is_some_and(|known| known.at <= entered) {
            self.graphs.remove(&graph);
        }
    }

    /// `exec` runs what `graph` consists of now.
    pub(crate) fn make_runnable(&mut self, exec: u64, graph: u64, at: u64) {
        let new = Exec {
            content: self.content(graph),
            at,
            doubts: self.exec_doubts,
            runs: 0,
        };
        if let Some(old) = self.execs.insert(exec, new) {
            self.settle(&old);
        }
    }

    /// A call that returned at `at` changes a runnable graph.
    pub(crate) fn replace(&mut self, exec: u64, at: u64, change: impl FnOnce(&mut Content)) {
        let mut content = Content::clone(&self.runnable(exec));
        change(&mut content);
        let doubts = self.exec_doubts;
        let new = Exec {
            content: Arc::new(content),
            at,
            doubts,
            runs: 0,
        };
        if let Some(old) = self.execs.insert(exec, new) {
            self.settle(&old);
        }
    }

    /// Any node of any graph may launch another kernel.
    pub(crate) fn forget_all_names(&mut self) {
        for graph in self.graphs.values_mut().filter(|graph| graph.content.has_names()) {
            Arc::make_mut(&mut graph.content).forget_names();
        }
    }

    /// What a runnable graph runs.
    pub(crate) fn runnable(&self, exec: u64) -> Arc<Content> {
        match self.execs.get(&exec) {
            Some(known) if known.doubts == self.exec_doubts && exec != 0 => Arc::clone(&known.content),
            _ => Arc::new(Content::unknown()),
        }
    }

    /// It runs: what, if all of it is known.
    pub(crate) fn run(&mut self, exec: u64) -> Option<&Content> {
        let doubts = self.exec_doubts;
        let known = self.execs.get_mut(&exec)?;
        if exec == 0 || known.doubts != doubts || known.content.incomplete {
            return None;
        }
        known.runs = known.runs.saturating_add(1);
        Some(&known.content)
    }

    /// As [`Plans::destroy`].
    pub(crate) fn destroy_exec(&mut self, exec: u64, entered: u64) {
        if self.execs.get(&exec).is_some_and(|known| known.at <= entered)
            && let Some(old) = self.execs.remove(&exec)
        {
            self.settle(&old);
        }
    }

    fn settle(&mut self, old: &Exec) {
        add_runs(&mut self.settled, old);
    }

    /// How often each kernel was run, as far as it is known.
    pub(crate) fn kernel_runs(&self) -> HashMap<u64, u64> {
        let mut all = self.settled.clone();
        self.execs.values().for_each(|exec| add_runs(&mut all, exec));
        all
    }
}

fn add_runs(sums: &mut HashMap<u64, u64>, exec: &Exec) {
    for (kernel, runs) in exec.content.kernel_runs(exec.runs).filter(|(_, runs)| *runs > 0) {
        let sum = sums.entry(kernel).or_default();
        *sum = sum.saturating_add(runs);
    }
}
