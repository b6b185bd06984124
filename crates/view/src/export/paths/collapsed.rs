//! Collapsed stacks, as flamegraph.pl, inferno and others read them: `frame;frame;leaf nanoseconds`, outermost frame first.

use super::{About, Profile};
use crate::paths::Tree;
use std::io::Write;

/// Writes lines.
#[derive(Debug, Clone, Copy, Default)]
pub struct Collapsed;

impl Profile for Collapsed {
    fn write(&self, tree: &Tree, _about: &About<'_>, out: &mut Vec<u8>) {
        for end in tree.ends() {
            for (index, node) in tree.path(end).into_iter().enumerate() {
                out.extend_from_slice(if index > 0 { b";" } else { b"" });
                // what is between two of them is a frame of its own to who reads it
                out.extend_from_slice(tree.frame(node).shown.replace(';', "\\u{3b}").as_bytes());
            }
            let _ = writeln!(out, " {}", tree.nodes[end].own.ns);
        }
    }
}
