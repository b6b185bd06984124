//! What graphs will do to memory, and what they do when they run.

use super::Process;
use crate::catalog::{Family, Part, Verb};
use crate::model::memory::Call;
use crate::model::memory::ledger::{Live, Match};

/// `CUgraphNodeType`.
const MEM_ALLOC_NODE: u64 = 10;
const MEM_FREE_NODE: u64 = 11;

impl Process {
    pub(super) fn plan_graph(&mut self, call: &Call<'_>) {
        let (graph, at) = (call.number(Part::Graph), call.raw.returned);
        match (call.verb, call.part(Part::Type)) {
            (Verb::GraphFree, _) => self.graphs.plan(graph, at).frees.push(call.key()),
            (_, Some(MEM_FREE_NODE)) => self.graphs.plan(graph, at).frees.push(call.number(Part::Address)),
            (_, None | Some(MEM_ALLOC_NODE)) if call.key() != 0 => {
                let live = self.live(call, Family::Graph);
                self.graphs.plan(graph, at).allocations.push((call.key(), live));
            }
            _ => {}
        }
    }

    pub(super) fn launch_graph(&mut self, call: &Call<'_>) {
        let Some(plan) = self.graphs.launched(call.key()) else {
            return;
        };
        let plan = plan.clone();
        for (key, live) in &plan.allocations {
            let at = call.raw.returned;
            // freed by itself when it is launched again: its memory stays the same
            let again = |known: &Live| known.group == live.group;
            if !self.ledger.get(Family::Device, *key).is_some_and(again) {
                self.add(Family::Graph, *key, Live { at, ..*live });
            }
        }
        for key in &plan.frees {
            if let Match::Live(live) = self.ledger.free(Family::Device, *key, u64::MAX) {
                self.give_to_pool(&live);
            }
        }
    }
}
