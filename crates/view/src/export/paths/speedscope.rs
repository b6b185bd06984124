//! The file format of speedscope: a sampled profile for each process, and device, whose weights are nanoseconds.
//!
//! <https://www.speedscope.app/file-format-schema.json>

use super::{About, Profile, title};
use crate::paths::{Kind, Tree};
use crate::text::quantity::{escaped, harmless};
use serde::Serialize;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes one file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Speedscope;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: String,
    exporter: String,
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: Vec<Sampled>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    /// Outermost frame first.
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

impl Profile for Speedscope {
    fn write(&self, tree: &Tree, about: &About<'_>, out: &mut Vec<u8>) {
        let file = File {
            schema: SCHEMA,
            name: name(tree, about),
            exporter: format!("gpuscope {}", env!("CARGO_PKG_VERSION")),
            active_profile_index: 0,
            shared: Shared {
                frames: tree.frames.iter().map(frame).collect(),
            },
            profiles: profiles(tree),
        };
        let text = serde_json::to_string(&file).unwrap_or_default();
        out.extend_from_slice(harmless(&text).as_bytes());
        out.push(b'\n');
    }
}

fn name(tree: &Tree, about: &About<'_>) -> String {
    let command = about
        .meta
        .map(|meta| meta.command.join(" "))
        .filter(|command| !command.is_empty());
    let command = command.map_or_else(String::new, |command| format!(" of {command}"));
    let cut = about
        .cut
        .map_or_else(String::new, |why| format!(" (the recording was cut off: {why})"));
    escaped(&format!("{}{command}{cut}", title(tree)))
}

/// Where a function lies is not in its name: the page shows it beside, and tells functions apart by both.
fn frame(frame: &crate::paths::Frame) -> Frame<'_> {
    let has_name = !frame.function.starts_with("0x");
    Frame {
        name: if has_name { &frame.function } else { &frame.shown },
        file: frame.file.as_deref(),
        line: frame.line,
    }
}

fn profiles(tree: &Tree) -> Vec<Sampled> {
    let mut profiles: Vec<(usize, Sampled)> = Vec::new();
    for end in tree.ends() {
        let path = tree.path(end);
        let Some(&first) = path.first() else { continue };
        if profiles.last().is_none_or(|(process, _)| *process != first) {
            profiles.push((first, profile(tree, first)));
        }
        let Some((_, profile)) = profiles.last_mut() else {
            continue;
        };
        let own = matches!(tree.frame(first).kind, Kind::Process { .. });
        let frames = path.iter().skip(usize::from(own && path.len() > 1));
        profile
            .samples
            .push(frames.map(|node| tree.nodes[*node].frame).collect());
        profile.weights.push(tree.nodes[end].own.ns);
    }
    profiles.into_iter().map(|(_, profile)| profile).collect()
}

fn profile(tree: &Tree, process: usize) -> Sampled {
    Sampled {
        kind: "sampled",
        name: format!("{}: {}", tree.frame(process).shown, title(tree)),
        unit: "nanoseconds",
        start_value: 0,
        end_value: tree.nodes[process].total.ns,
        samples: Vec::new(),
        weights: Vec::new(),
    }
}
