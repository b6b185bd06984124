//! What each node had, and how much of it is known.

use super::answer::Series;
use super::answer::{Answers, of};
use super::question::{Question, Span};
use std::collections::BTreeMap;

/// One exporter, which is one machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Node {
    pub name: String,
    /// Of the time that was asked for, in which it answered.
    pub share: f64,
    pub(crate) gpu_seconds: f64,
    /// Of these, those with a process on the GPU.
    pub(crate) bound_seconds: f64,
    pub(crate) busy_seconds: f64,
    pub(crate) lost_records: f64,
    /// What it does not see now.
    pub gaps: f64,
}

impl Node {
    /// What is told of it may be too little.
    #[must_use]
    pub(crate) fn is_whole(&self) -> bool {
        self.lost_records == 0.0 && self.gaps == 0.0 && self.share > 0.99
    }
}

/// Those that lack most first, then by name.
pub(super) fn nodes(answers: &Answers, span: &Span) -> Vec<Node> {
    let mut nodes: BTreeMap<String, Node> = BTreeMap::new();
    let mut each = |question: Question, add: &dyn Fn(&mut Node, f64)| {
        for series in of(answers, question) {
            add(nodes.entry(name(series)).or_default(), series.value);
        }
    };
    let (step, moments) = (span.step_seconds() as f64, span.moments() as f64);
    each(Question::Nodes, &|node, times| node.share = (times / moments).min(1.0));
    each(Question::Gpus, &|node, gpus| node.gpu_seconds += gpus * step);
    each(Question::Bound, &|node, bound| node.bound_seconds += bound * step);
    each(Question::Busy, &|node, busy| node.busy_seconds += busy * step);
    each(Question::LostRecords, &|node, lost| node.lost_records += lost);
    each(Question::Gaps, &|node, gaps| node.gaps += gaps);
    let named = nodes.into_iter().map(|(name, node)| Node { name, ..node });
    let mut nodes: Vec<Node> = named.collect();
    nodes.sort_by(|one, other| {
        one.is_whole()
            .cmp(&other.is_whole())
            .then(one.share.total_cmp(&other.share))
    });
    nodes
}

fn name(series: &Series) -> String {
    series.label("instance").to_owned()
}
