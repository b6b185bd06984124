//! A tree of call paths that grows to a bound: what finds no room is counted where its path left the known part.

use super::Map;
use super::frames::{Frames, Name, OTHER, Process};
use super::tree::{Node, Sum};

/// Nodes of one tree.
const MOST: usize = 1 << 17;

/// Where a path has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    node: u32,
    /// It leads on from there into what found no room.
    beyond: bool,
}

#[derive(Debug, Clone)]
struct Grown {
    parent: u32,
    name: Name,
    own: Sum,
    other: Sum,
}

/// A tree of call paths that grows to a bound.
#[derive(Debug, Clone)]
pub(super) struct Growing {
    nodes: Vec<Grown>,
    ways: Map<(u32, Name), u32>,
    most: usize,
}

impl Default for Growing {
    fn default() -> Growing {
        Growing::bounded(MOST)
    }
}

impl At {
    /// The number of its node in [`Growing::nodes`]; `None`: it found no room.
    pub(super) fn node(self) -> Option<usize> {
        (!self.beyond).then_some(self.node as usize)
    }
}

impl Growing {
    pub(super) const ROOT: At = At { node: 0, beyond: false };

    /// With room for `most` nodes.
    pub(super) fn bounded(most: usize) -> Growing {
        let root = Grown {
            parent: 0,
            name: OTHER,
            own: Sum::default(),
            other: Sum::default(),
        };
        Growing {
            nodes: vec![root],
            ways: Map::default(),
            most,
        }
    }

    /// One frame further.
    pub(super) fn step(&mut self, at: At, name: Name) -> At {
        if at.beyond {
            return at;
        }
        if let Some(known) = self.ways.get(&(at.node, name)) {
            return At { node: *known, ..at };
        }
        if self.nodes.len() >= self.most {
            return At { beyond: true, ..at };
        }
        let node = self.nodes.len() as u32;
        self.nodes.push(Grown {
            parent: at.node,
            name,
            own: Sum::default(),
            other: Sum::default(),
        });
        self.ways.insert((at.node, name), node);
        At { node, ..at }
    }

    /// Adds `sum` at the end of a path.
    pub(super) fn add(&mut self, at: At, sum: Sum) {
        let Some(node) = self.nodes.get_mut(at.node as usize) else {
            return;
        };
        match at.beyond {
            true => node.other.add(sum),
            false => node.own.add(sum),
        }
    }

    /// All nodes, each with its name; the first is the root.
    pub(super) fn nodes(&self) -> Vec<Node> {
        let node = |parent: u32, name: Name, own: Sum| Node {
            parent: parent as usize,
            frame: name as usize,
            own,
            total: own,
        };
        let known = self.nodes.iter().map(|grown| node(grown.parent, grown.name, grown.own));
        let others = self.nodes.iter().enumerate();
        let others = others
            .filter(|(_, grown)| grown.other != Sum::default())
            .map(|(number, grown)| node(number as u32, OTHER, grown.other));
        let mut nodes: Vec<Node> = known.chain(others).collect();
        for number in (1..nodes.len()).rev() {
            let (parent, total) = (nodes[number].parent, nodes[number].total);
            nodes[parent].total.add(total);
        }
        nodes
    }
}

/// Where a path leads that has no thread: directly behind its process.
pub(super) fn aside(tree: &mut Growing, frames: &mut Frames, process: Process, name: Name) -> At {
    let at = tree.step(Growing::ROOT, frames.process(process));
    tree.step(at, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn grown(paths: &[(Vec<Name>, u64)], most: usize) -> Vec<Node> {
        let mut growing = Growing::bounded(most);
        for (path, ns) in paths {
            let end = path.iter().fold(Growing::ROOT, |at, name| growing.step(at, *name));
            growing.add(end, Sum { ns: *ns, count: 1 });
        }
        growing.nodes()
    }

    /// Time of paths that begin with that one.
    fn of(paths: &[(Vec<Name>, u64)], beginning: &[Name]) -> u64 {
        let within = paths.iter().filter(|(path, _)| path.starts_with(beginning));
        within.map(|(_, ns)| ns).sum()
    }

    fn path_of(nodes: &[Node], mut at: usize) -> Vec<Name> {
        let mut path = Vec::new();
        while at != 0 {
            path.insert(0, nodes[at].frame as Name);
            at = nodes[at].parent;
        }
        path
    }

    #[test]
    fn what_finds_no_room_is_other_where_its_path_left_the_known_one() {
        let nodes = grown(&[(vec![1, 2], 10), (vec![1, 3, 4], 5), (vec![7], 2)], 3);
        let shown: Vec<(Vec<Name>, u64)> = (0..nodes.len())
            .map(|at| (path_of(&nodes, at), nodes[at].total.ns))
            .collect();
        assert_eq!(
            shown,
            [
                (vec![], 17),
                (vec![1], 15),
                (vec![1, 2], 10),
                (vec![OTHER], 2),
                (vec![1, OTHER], 5)
            ]
        );
    }

    proptest! {
        #[test]
        fn sums_are_exact_whatever_finds_room(
            paths in vec((vec(1..6u32, 0..7), 0..1_000_000u64), 0..60), most in 1..40usize
        ) {
            let nodes = grown(&paths, most);
            let all: u64 = paths.iter().map(|(_, ns)| ns).sum();
            prop_assert_eq!((nodes[0].total.ns, nodes[0].total.count), (all, paths.len() as u64));
            prop_assert!(nodes.len() <= 2 * most);
            for (number, node) in nodes.iter().enumerate() {
                prop_assert!(node.parent < number.max(1));
                let behind = nodes.iter().enumerate().skip(1).filter(|(_, other)| other.parent == number);
                let behind: u64 = behind.map(|(_, child)| child.total.ns).sum();
                prop_assert_eq!(node.total.ns, node.own.ns + behind);
                let path = path_of(&nodes, number);
                if !path.contains(&OTHER) {
                    prop_assert_eq!(node.total.ns, of(&paths, &path), "{:?}", path);
                }
            }
        }
    }
}
