//! Which work is put into graphs instead of being run, and what graphs run.
//!
//! Owns what calls mean for graphs. Once a node was changed, which kernels run is not known any more, but how many; once
//! one was switched off, not even that. Graphs that choose what to run while they run (conditional nodes) count as not known.

use super::capture::Captures;
use super::content::Content;
use super::plans::Plans;
use super::report::GraphReport;
use super::{Call, StreamName};
use crate::catalog::{Class, Step, WorkPart};
use crate::model::memory::Origin;
use crate::wire;
use std::collections::HashMap;
use std::sync::Arc;

/// `CUgraphNodeType`. Those in between do not run on a device, or are no kernels, copies or memsets.
const KERNEL_NODE: u64 = 0;
const MEMCPY_NODE: u64 = 1;
const MEMSET_NODE: u64 = 2;
const GRAPH_NODE: u64 = 4;
const CONDITIONAL_NODE: u64 = 13;

/// Graphs of one process.
#[derive(Debug)]
pub struct Graphs {
    captures: Captures,
    plans: Plans,
    captured_launches: HashMap<u64, u64>,
    report: GraphReport,
}

impl Graphs {
    /// Of a process of which nothing is known yet.
    #[must_use]
    pub(crate) fn new(origin: Origin) -> Graphs {
        Graphs {
            captures: Captures::default(),
            plans: Plans::new(origin == Origin::Late),
            captured_launches: HashMap::new(),
            report: GraphReport::default(),
        }
    }

    /// Graphs that were not seen made may consist of anything, and those that were may have more in them.
    pub(crate) fn watched_late(&mut self) {
        self.plans.watched_late();
        self.doubt();
    }

    /// Whether what is put into a stream becomes part of a graph.
    #[must_use]
    pub(crate) fn is_captured(&self, stream: StreamName) -> bool {
        self.captures.has(stream)
    }

    /// An empty graph was made by a call that returned at `at`, CLOCK_MONOTONIC ns: a memory call tells so. Needed
    /// of processes met late, where a graph not seen made may have nodes from before.
    pub(crate) fn created(&mut self, graph: u64, at: u64) {
        self.plans.put(graph, Arc::default(), at);
    }

    /// Records were lost. No stream is taken to capture any more: what is put into it counts as work.
    pub fn doubt(&mut self) {
        self.plans.doubt_all();
        self.forget_captures();
    }

    /// Calls that are captured are left unseen: what these graphs consist of is not known. Those that were made before are known.
    pub(crate) fn miss(&mut self) {
        self.captures.miss();
    }

    /// They are seen again: no stream is taken to capture any more, as its end may have been missed.
    pub(crate) fn forget_captures(&mut self) {
        self.captures = Captures::default();
    }

    /// Does what a call did. Whether it has become part of a graph, and did nothing else.
    pub fn note(&mut self, call: &Call<'_>) -> bool {
        let stream = StreamName::of(call);
        match call.step {
            step if step.submits() && self.is_captured(stream) => {
                self.capture(call, stream);
                true
            }
            Step::GraphLaunch => {
                self.launch(call);
                false
            }
            Step::Record => self.captures.record(call.number(WorkPart::Event), stream),
            Step::Wait => self.captures.wait(call.number(WorkPart::Event), stream),
            _ => {
                self.follow_captures(call, stream);
                self.build(call);
                false
            }
        }
    }

    fn follow_captures(&mut self, call: &Call<'_>, stream: StreamName) {
        match call.step {
            Step::CaptureBegin => {
                let into = call.part(WorkPart::Graph);
                self.captures.begin(stream, call.raw.context, into);
            }
            Step::CaptureEnd => self.end_capture(call, stream),
            Step::EventDestroy => self.captures.forget(call.number(WorkPart::Event)),
            Step::Sync | Step::Query | Step::StreamDestroy if call.has_stream => {
                self.captures.end(stream);
            }
            Step::Sync if call.part(WorkPart::Event).is_none() => {
                let named = call.number(WorkPart::Context);
                let context = if named == 0 { call.raw.context } else { named };
                self.captures.end_all_of(context);
            }
            _ => {}
        }
    }

    fn capture(&mut self, call: &Call<'_>, stream: StreamName) {
        let Some(content) = self.captures.content(stream) else {
            return;
        };
        match (call.step, call.row.class) {
            (Step::GraphLaunch, _) => content.add(&self.plans.runnable(call.number(WorkPart::Graph))),
            (Step::Submit, Class::Launch) => content.add_kernel(call.raw.kernel),
            (Step::Submit, Class::Memset) => content.memsets = content.memsets.saturating_add(1),
            (Step::Submit, _) => {}
            _ => {
                content.copies = content.copies.saturating_add(1);
                content.incomplete |= call.raw.copies > wire::BATCH;
            }
        }
        if call.row.class != Class::Launch {
            return;
        }
        self.report.captured += 1;
        if call.step == Step::Submit && call.raw.kernel != 0 {
            *self.captured_launches.entry(call.raw.kernel).or_default() += 1;
        }
    }

    fn end_capture(&mut self, call: &Call<'_>, stream: StreamName) {
        let (graph, at) = (call.number(WorkPart::Graph), call.raw.returned);
        match self.captures.end(stream) {
            None => self.plans.put(graph, Arc::new(Content::unknown()), at),
            Some(captured) => match captured.into {
                None => self.plans.put(graph, Arc::new(captured.content), at),
                Some(into) => self.plans.change(into, at, |content| content.add(&captured.content)),
            },
        }
    }

    fn build(&mut self, call: &Call<'_>) {
        let (key, graph) = (call.number(WorkPart::Key), call.number(WorkPart::Graph));
        let (entered, at) = (call.raw.entered, call.raw.returned);
        match call.step {
            Step::NodeKernel => self.add_node(call, Some(KERNEL_NODE)),
            Step::NodeCopy => self.add_node(call, Some(MEMCPY_NODE)),
            Step::NodeSet => self.add_node(call, Some(MEMSET_NODE)),
            Step::NodeChild => self.add_node(call, Some(GRAPH_NODE)),
            Step::Node => self.add_node(call, call.part(WorkPart::Type)),
            Step::NodeDestroy => self.plans.doubt_graphs(), // the call does not say of which one
            Step::NodeChange => self.plans.forget_all_names(), // the call does not say of which graph
            Step::ExecChange => self.plans.replace(graph, at, Content::forget_names),
            Step::ExecSwitch => self.plans.replace(graph, at, |content| content.incomplete = true),
            Step::GraphClone => self.plans.put(key, self.plans.content(graph), at),
            Step::GraphInstantiate | Step::GraphUpdate => self.plans.make_runnable(key, graph, at),
            Step::GraphDestroy => self.plans.destroy(graph, entered),
            Step::ExecDestroy => self.plans.destroy_exec(graph, entered),
            _ => {}
        }
    }

    fn add_node(&mut self, call: &Call<'_>, kind: Option<u64>) {
        let is_graph = kind == Some(GRAPH_NODE);
        let child = is_graph.then(|| self.plans.content(call.number(WorkPart::Child)));
        let (graph, at) = (call.number(WorkPart::Graph), call.raw.returned);
        self.plans.change(graph, at, |content| match kind {
            Some(KERNEL_NODE) => content.add_kernel(call.raw.kernel),
            Some(MEMCPY_NODE) => content.copies = content.copies.saturating_add(1),
            Some(MEMSET_NODE) => content.memsets = content.memsets.saturating_add(1),
            None | Some(CONDITIONAL_NODE..) => content.incomplete = true,
            Some(_) => child.iter().for_each(|child| content.add(child)),
        });
    }

    fn launch(&mut self, call: &Call<'_>) {
        let report = &mut self.report;
        report.launches += 1;
        let Some(content) = self.plans.run(call.number(WorkPart::Graph)) else {
            return;
        };
        report.known_launches += 1;
        report.kernels = report.kernels.saturating_add(content.kernels);
        report.copies = report.copies.saturating_add(content.copies);
        report.memsets = report.memsets.saturating_add(content.memsets);
    }

    /// What has run so far.
    #[must_use]
    pub fn report(&self) -> GraphReport {
        self.report
    }

    /// How often graphs whose making was seen ran each kernel, by its id. Kernels without one are only in the report.
    #[must_use]
    pub fn kernel_runs(&self) -> HashMap<u64, u64> {
        self.plans.kernel_runs()
    }

    /// Launches that were recorded instead of being run, by kernel.
    #[must_use]
    pub(crate) fn captured_launches(&self) -> &HashMap<u64, u64> {
        &self.captured_launches
    }
}

#[cfg(test)]
#[path = "graphs_tests.rs"]
mod tests;
