use super::*;
use crate::catalog::Class;
use crate::paths::Paths;
use crate::record::{Kind as Row, Record, Taker};
use proptest::prelude::*;
use serde_json::Value;

/// Waits from so many places, of which `ns` says how long each lasts, in a program whose names are `name`.
fn waits(name: &str, ns: impl IntoIterator<Item = u64>) -> Tree {
    paths(name, ns).tree(Weight::Wait, None)
}

fn paths(name: &str, ns: impl IntoIterator<Item = u64>) -> Paths {
    let mut paths = Paths::default();
    for (number, ns) in ns.into_iter().enumerate() {
        let frame = |function: String| json!({"function": function, "file": "a.py", "line": 1, "language": "python"});
        let stack = json!([
            frame(format!("{name}{number}")),
            frame(format!("{name} caller {}", number / 10))
        ])
        .to_string();
        paths.take(&Record {
            stack: Some(&stack),
            ..wait(number as i64, ns)
        });
    }
    paths
}

/// From no place that is known.
fn wait(at: i64, ns: u64) -> Record<'static> {
    Record {
        ns: Some(ns),
        comm: "python",
        layer: "driver",
        name: "cuStreamSynchronize",
        class: Class::Sync,
        ..Record::new(Row::Call, at, 7)
    }
}

fn page(tree: &Tree) -> String {
    let mut page = String::new();
    figure(tree, &mut page);
    page
}

#[test]
fn a_flame_graph_and_its_list() {
    insta::assert_snapshot!(page(&waits("step", [1_000_000, 700_000, 30_000])));
}

#[test]
fn where_most_time_has_no_call_path_the_cure_is_said() {
    for (ns, is_said) in [(400, false), (2_000, true)] {
        let mut paths = paths("step", [1_000]);
        paths.take(&wait(9, ns));
        let page = page(&paths.tree(Weight::Wait, None));
        assert!(page.contains("has no call path that is known"), "{page}");
        assert_eq!(page.contains("(record --stacks all)"), is_said, "{page}");
    }
}

#[test]
fn a_graph_of_whatever_size_stays_small_and_says_what_it_leaves_out() {
    for name in ["\"<&\u{202e}\u{1b}\u{0}".repeat(60), "f".to_owned()] {
        let page = page(&waits(&name, (0..9_000).map(|number| 1_000_000 / (1 + number))));
        assert!(page.len() < 2 << 20, "{}", page.len());
        assert!(page.contains("frames are too small to be drawn, "), "nothing is said");
    }
}

/// Its nodes: parent, name, time and count of each.
fn nodes(tree: &Tree) -> Vec<[u64; 4]> {
    let data: Value = data(tree, &part(tree));
    let numbers: Vec<u64> = data["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|number| number.as_u64().unwrap())
        .collect();
    numbers
        .chunks(4)
        .map(|node| [node[0], node[1], node[2], node[3]])
        .collect()
}

proptest! {
    #[test]
    fn what_is_drawn_and_what_is_not_are_all(ns in proptest::collection::vec(0..10_000_000u64, 1..200)) {
        let tree = waits("f", ns);
        let (nodes, part) = (nodes(&tree), part(&tree));
        let below = |number: usize| {
            let children = nodes.iter().skip(1).filter(|node| node[0] == number as u64);
            children.map(|node| node[2]).sum::<u64>()
        };
        for (number, node) in nodes.iter().enumerate() {
            prop_assert!(node[0] < number.max(1) as u64 && below(number) <= node[2]);
        }
        // time ends in leaves alone: what else is missing is left out
        let leaves = part.nodes.iter().map(|node| tree.nodes[*node].own.ns).sum::<u64>();
        prop_assert_eq!(leaves + part.left_out_ns, nodes.first().map_or(0, |root| root[2]));
    }
}
