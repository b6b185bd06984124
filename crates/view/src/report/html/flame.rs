//! Time by call path as flame graphs: the script draws them of what is written here, and without one there is a list.
//!
//! Owns how much of a tree a page has: it stays small however long the trace, and says what it leaves out.

use super::super::words;
use super::Report;
use crate::paths::{Kind, Tree, Weight};
use crate::section::html::Text;
use crate::text::quantity::{count, duration, form, harmless, plural};
use serde_json::json;
use std::fmt::Write;

/// Nodes of one graph, and bytes of their names as the page has them.
const MOST: usize = 6_000;
const MOST_BYTES: usize = 900 << 10;
/// A node has this part of all time at least.
const SMALLEST: u64 = 5_000;
/// Characters of a name.
const NAME: usize = 160;
/// Lines of the list, each with one of so many parts of all time at least.
const LINES: usize = 150;
const LINE: u64 = 100;

/// Why much time has no call path, and the cure.
const LACKING: &str = ": calls were recorded without their stacks (record --stacks all).";

/// What the script shows.
const KEYS: &str = "<p class=\"keys\" hidden>The outermost frame is above. Click or Enter: only what a frame leads to; Esc: \
                    back; arrow keys: from frame to frame; /: search.</p>\n";

/// Whether there is anything to draw.
pub(super) fn says(report: &Report) -> bool {
    report.paths.iter().any(Tree::has_paths) || has_only_time(report)
}

/// Devices told what they did, and no call says whence.
fn has_only_time(report: &Report) -> bool {
    let gpu = report.paths.iter().find(|tree| tree.weight == Weight::Gpu);
    gpu.is_some_and(|tree| tree.total().ns > 0 && !tree.has_paths())
}

pub(super) fn write(report: &Report, page: &mut String) {
    if !says(report) {
        return;
    }
    page.push_str("<section id=\"paths\">\n<h2>Time by call path</h2>\n");
    if has_only_time(report) {
        let _ = writeln!(page, "<p>No call path of what GPUs executed is known{LACKING}</p>");
    }
    if report.paths.iter().any(Tree::has_paths) {
        page.push_str(KEYS);
    }
    for tree in report.paths.iter().filter(|tree| tree.has_paths()) {
        figure(tree, page);
    }
    page.push_str("</section>\n");
}

/// Nodes that are shown: each behind its parent, of siblings the one with most time first.
struct Part {
    nodes: Vec<usize>,
    /// Time of nodes that are not.
    left_out_ns: u64,
}

fn part(tree: &Tree) -> Part {
    let mut order: Vec<usize> = (0..tree.nodes.len()).collect();
    order.sort_by_key(|node| (std::cmp::Reverse(tree.nodes[*node].total.ns), *node));
    let least = tree.total().ns / SMALLEST;
    let (mut bytes, mut named) = (0, vec![false; tree.frames.len()]);
    let fits = |node: &usize| {
        let frame = tree.nodes[*node].frame;
        if !std::mem::replace(&mut named[frame], true) {
            bytes += Text(&json!(name(tree, *node)).to_string()).to_string().len();
        }
        tree.nodes[*node].total.ns >= least.max(1) && bytes <= MOST_BYTES
    };
    let nodes: Vec<usize> = order.into_iter().take(MOST).take_while(fits).collect();
    let left_out_ns = left_out(tree, &nodes);
    Part { nodes, left_out_ns }
}

fn left_out(tree: &Tree, nodes: &[usize]) -> u64 {
    let mut shown = vec![false; tree.nodes.len()];
    nodes.iter().for_each(|node| shown[*node] = true);
    let all = tree.nodes.iter().enumerate().skip(1);
    let cut = all.filter(|(number, node)| !shown[*number] && shown[node.parent]);
    super::super::sum(cut.map(|(_, node)| node.total.ns))
}

fn name(tree: &Tree, node: usize) -> String {
    let shown = &tree.frame(node).shown;
    match shown.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown.clone(),
    }
}

fn title(weight: Weight) -> &'static str {
    match weight {
        Weight::Gpu => "GPU time",
        Weight::Wait => "Waiting in CUDA",
        Weight::Host => "Outside CUDA",
    }
}

/// What paths end with, beside frames.
fn leaf(weight: Weight) -> &'static str {
    match weight {
        Weight::Gpu => "<span class=\"leaf\">kernel, copy, fill</span>",
        Weight::Wait => "<span class=\"leaf\">call that waits</span>",
        Weight::Host => "",
    }
}

fn figure(tree: &Tree, page: &mut String) {
    let (part, all) = (part(tree), tree.total());
    let counted = tree.weight.counted();
    let _ = write!(
        page,
        "<figure class=\"flame\" id=\"flame-{}\" data-tree=\"{}\">\n<figcaption><span>{} <small>{} in {} {counted}</small>\
         </span><span class=\"legend\"><span class=\"python\">Python</span><span class=\"native\">native</span>\
         {}</span></figcaption>\n",
        tree.weight.name(),
        Text(&harmless(&data(tree, &part).to_string())),
        title(tree.weight),
        duration(all.ns),
        count(all.count),
        leaf(tree.weight),
    );
    page.push_str(
        "<div class=\"tools\"><input type=\"search\" placeholder=\"search\" aria-label=\"search frames\">\
         <output></output><button type=\"button\" class=\"whole\">whole graph</button></div>\n\
         <div class=\"frames\" role=\"tree\" aria-label=\"flame graph\"></div>\n",
    );
    remark(tree, &part, page);
    list(tree, &part, page);
    page.push_str("</figure>\n");
}

/// What the script draws: of each node its parent, its name, its time and how many.
fn data(tree: &Tree, part: &Part) -> serde_json::Value {
    let mut places = vec![0; tree.nodes.len()];
    let mut numbers: Vec<Option<usize>> = vec![None; tree.frames.len()];
    let (mut names, mut kinds, mut nodes) = (Vec::new(), String::new(), Vec::new());
    for (place, &number) in part.nodes.iter().enumerate() {
        let node = &tree.nodes[number];
        places[number] = place;
        let name = *numbers[node.frame].get_or_insert_with(|| {
            names.push(name(tree, number));
            kinds.push(letter(tree.frame(number).kind));
            names.len() - 1
        });
        let place = |number: usize| places[number] as u64;
        nodes.extend([place(node.parent), name as u64, node.total.ns, node.total.count]);
    }
    json!({"counted": tree.weight.counted(), "names": names, "kinds": kinds, "nodes": nodes})
}

fn letter(kind: Kind) -> char {
    match kind {
        Kind::Process { .. } | Kind::Thread => 't',
        Kind::Python => 'p',
        Kind::Native => 'n',
        Kind::Leaf => 'l',
        Kind::Aside => 'a',
    }
}

fn remark(tree: &Tree, part: &Part, page: &mut String) {
    let all = tree.total().ns.max(1) as f64;
    let without = tree.without_path().ns;
    if without > 0 {
        let share = words::percent(without as f64 / all);
        let why = if tree.lacks_paths() { LACKING } else { "." };
        let _ = writeln!(
            page,
            "<p>{} ({share}) has no call path that is known{why}</p>",
            duration(without)
        );
    }
    let missing = (tree.nodes.len() - part.nodes.len()) as u64;
    if missing > 0 {
        let share = words::percent(part.left_out_ns as f64 / all);
        let _ = writeln!(
            page,
            "<p>{} too small to be drawn, {} ({share}) together; export --to speedscope has all.</p>",
            format_args!("{} {}", plural(missing, "frame"), form(missing, "is", "are")),
            duration(part.left_out_ns)
        );
    }
}

/// The largest parts, for who has no script; frames that lead to one other alone share a line.
fn list(tree: &Tree, part: &Part, page: &mut String) {
    let least = tree.total().ns / LINE;
    let mut children = vec![Vec::new(); tree.nodes.len()];
    let large = part.nodes.iter().filter(|node| tree.nodes[**node].total.ns >= least);
    for &node in large.take(LINES).filter(|node| **node != 0) {
        children[tree.nodes[node].parent].push(node);
    }
    page.push_str("<details class=\"paths\" open>\n<summary>as a list</summary>\n");
    items(tree, &children, 0, page);
    page.push_str("</details>\n");
}

fn items(tree: &Tree, children: &[Vec<usize>], of: usize, page: &mut String) {
    if children[of].is_empty() {
        return;
    }
    page.push_str("<ul>\n");
    for &child in &children[of] {
        let (mut end, mut names) = (child, vec![name(tree, child)]);
        while let [only] = children[end][..]
            && tree.nodes[only].total == tree.nodes[end].total
        {
            names.push(name(tree, only));
            end = only;
        }
        let total = tree.nodes[child].total.ns;
        let share = words::percent(total as f64 / tree.total().ns.max(1) as f64);
        let _ = writeln!(
            page,
            "<li><b>{share}</b> {} <code>{}</code>",
            duration(total),
            Text(&names.join(" › "))
        );
        items(tree, children, end, page);
        page.push_str("</li>\n");
    }
    page.push_str("</ul>\n");
}

#[cfg(test)]
#[path = "flame_tests.rs"]
mod tests;
