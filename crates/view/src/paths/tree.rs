//! Time by call path as plain data.

use super::{Frame, Weight};

/// How long, and of how many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sum {
    pub ns: u64,
    pub count: u64,
}

impl Sum {
    /// Adds `more`, to the largest number at most.
    pub fn add(&mut self, more: Sum) {
        self.ns = self.ns.saturating_add(more.ns);
        self.count = self.count.saturating_add(more.count);
    }
}

/// A frame where its path has led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Smaller than its own number; the root is its own.
    pub parent: usize,
    /// Of [`Tree::frames`].
    pub frame: usize,
    /// What ends here.
    pub own: Sum,
    /// With all behind it.
    pub total: Sum,
}

/// Those of `frames` that nodes have, behind that of the root; nodes have their numbers then.
fn used(frames: &[Frame], nodes: &mut [Node]) -> Vec<Frame> {
    let mut numbers = vec![None; frames.len()];
    let mut used = vec![Frame::root()];
    for node in nodes.iter_mut().skip(1) {
        let number = numbers[node.frame].get_or_insert_with(|| {
            used.push(frames[node.frame].clone());
            used.len() - 1
        });
        node.frame = *number;
    }
    used
}

/// Time by call path as plain data. Its first node is the root, whose children are processes, of [`Weight::Gpu`] each with one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    pub weight: Weight,
    pub frames: Vec<Frame>,
    pub nodes: Vec<Node>,
}

impl Tree {
    /// Of these nodes, with those of `frames` that they have.
    pub(super) fn of(weight: Weight, frames: &[Frame], mut nodes: Vec<Node>) -> Tree {
        Tree {
            weight,
            frames: used(frames, &mut nodes),
            nodes,
        }
    }

    /// All of it.
    #[must_use]
    pub fn total(&self) -> Sum {
        self.nodes.first().map(|root| root.total).unwrap_or_default()
    }

    /// The frame of a node.
    #[must_use]
    pub fn frame(&self, node: usize) -> &Frame {
        &self.frames[self.nodes[node].frame]
    }

    /// Of each node what leads on from it, most time first.
    #[must_use]
    pub fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (number, node) in self.nodes.iter().enumerate().skip(1) {
            children[node.parent].push(number);
        }
        for of_one in &mut children {
            of_one.sort_by_key(|child| (std::cmp::Reverse(self.nodes[*child].total.ns), *child));
        }
        children
    }

    /// From a node of the second level to this one.
    #[must_use]
    pub fn path(&self, mut node: usize) -> Vec<usize> {
        let mut path = Vec::new();
        while node != 0 {
            path.push(node);
            node = self.nodes[node].parent;
        }
        path.reverse();
        path
    }

    /// Nodes at which something ends, of the parts of the tree that have most time first.
    #[must_use]
    pub fn ends(&self) -> Vec<usize> {
        let children = self.children();
        let (mut ends, mut open) = (Vec::new(), vec![0]);
        while let Some(node) = open.pop() {
            if self.nodes.get(node).is_some_and(|node| node.own != Sum::default()) {
                ends.push(node);
            }
            open.extend(children.get(node).into_iter().flatten().rev());
        }
        ends
    }

    /// Time that is in `(no call path)`, `(other)` and the like.
    #[must_use]
    pub(crate) fn without_path(&self) -> Sum {
        let mut sum = Sum::default();
        for node in self.nodes.iter().skip(1) {
            let aside = |node: &Node| self.frames[node.frame].kind == super::Kind::Aside;
            if aside(node) && (node.parent == 0 || !aside(&self.nodes[node.parent])) {
                sum.add(node.total);
            }
        }
        sum
    }

    /// Whether most time has no call path, as few calls were recorded with their stacks.
    #[must_use]
    pub(crate) fn lacks_paths(&self) -> bool {
        self.weight != Weight::Host && self.without_path().ns > self.total().ns / 2
    }

    /// Whether any time has a call path.
    #[must_use]
    pub(crate) fn has_paths(&self) -> bool {
        let is_code = |node: &Node| self.frames[node.frame].kind.is_code();
        self.nodes.iter().any(|node| node.total.ns > 0 && is_code(node))
    }
}
