//! pprof's format, packed with gzip: `go tool pprof`, Grafana's Pyroscope and others read it.

use super::proto::{self, Function, Label, Line, Location, Mapping, Sample, ValueType};
use super::{About, Profile};
use crate::paths::{Frame, Kind, Tree};
use crate::text::quantity::escaped;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use std::collections::HashMap;
use std::io::Write;

/// Writes one file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pprof;

impl Profile for Pprof {
    fn write(&self, tree: &Tree, about: &About<'_>, out: &mut Vec<u8>) {
        let message = profile(tree, about).encode_to_vec();
        let mut packed = GzEncoder::new(out, Compression::default());
        // a Vec takes all
        let _ = packed.write_all(&message).and_then(|()| packed.finish().map(drop));
    }
}

/// Texts, of which the first is empty.
struct Texts {
    numbers: HashMap<String, i64>,
    all: Vec<String>,
}

impl Texts {
    fn new() -> Texts {
        Texts {
            numbers: HashMap::from([(String::new(), 0)]),
            all: vec![String::new()],
        }
    }

    fn number(&mut self, text: &str) -> i64 {
        if let Some(known) = self.numbers.get(text) {
            return *known;
        }
        let number = signed(self.all.len() as u64);
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn profile(tree: &Tree, about: &About<'_>) -> proto::Profile {
    let mut texts = Texts::new();
    let kind = texts.number(tree.weight.name());
    let sample_type = vec![
        ValueType {
            kind,
            unit: texts.number("nanoseconds"),
        },
        ValueType {
            kind: texts.number(tree.weight.counted()),
            unit: texts.number("count"),
        },
    ];
    let (location, function) = code(tree, &mut texts);
    let sample = tree
        .ends()
        .into_iter()
        .map(|end| sample(tree, end, &mut texts))
        .collect();
    let comment = comments(about).iter().map(|line| texts.number(line)).collect();
    let program = about
        .meta
        .and_then(|meta| meta.command.first())
        .map_or("", String::as_str);
    let mapping = Mapping {
        id: 1,
        filename: texts.number(&escaped(program)),
        has_functions: true,
        has_filenames: true,
        has_line_numbers: true,
    };
    let started = about.meta.map_or(0, |meta| meta.clock.start_unix_ns);
    proto::Profile {
        sample_type,
        sample,
        mapping: vec![mapping],
        location,
        function,
        time_nanos: signed(started),
        duration_nanos: signed(about.span_ns),
        comment,
        default_sample_type: kind,
        string_table: texts.all,
    }
}

/// A location for each frame, and a function for each name in a file.
fn code(tree: &Tree, texts: &mut Texts) -> (Vec<Location>, Vec<Function>) {
    let mut known: HashMap<(i64, i64), u64> = HashMap::new();
    let (mut locations, mut functions) = (Vec::new(), Vec::new());
    for (index, frame) in tree.frames.iter().enumerate() {
        let name = texts.number(name(frame));
        let filename = texts.number(frame.file.as_deref().unwrap_or_default());
        let function_id = *known.entry((name, filename)).or_insert_with(|| {
            let id = functions.len() as u64 + 1;
            functions.push(Function {
                id,
                name,
                system_name: name,
                filename,
            });
            id
        });
        let line = i64::from(frame.line.unwrap_or(0));
        locations.push(Location {
            id: index as u64 + 1,
            mapping_id: 1,
            line: vec![Line { function_id, line }],
        });
    }
    (locations, functions)
}

/// A name without an address of this run, where there is one; lines stand beside.
fn name(frame: &Frame) -> &str {
    match frame.function.starts_with("0x") {
        true => &frame.shown,
        false => &frame.function,
    }
}

fn sample(tree: &Tree, end: usize, texts: &mut Texts) -> Sample {
    let path = tree.path(end);
    let mut label = Vec::new();
    for node in &path {
        let frame = tree.frame(*node);
        let said = match frame.kind {
            Kind::Process { pid, device } => {
                let device = device.map(|device| device.to_string());
                vec![("pid", Some(pid.to_string())), ("device", device)]
            }
            Kind::Thread => vec![("thread", Some(frame.shown.clone()))],
            _ => Vec::new(),
        };
        label.extend(said.into_iter().filter_map(|(key, text)| {
            let text = texts.number(&text?);
            let key = texts.number(key);
            Some(Label { key, text })
        }));
    }
    let own = tree.nodes[end].own;
    Sample {
        location_id: path
            .iter()
            .rev()
            .map(|node| tree.nodes[*node].frame as u64 + 1)
            .collect(),
        value: vec![signed(own.ns), signed(own.count)],
        label,
    }
}

fn comments(about: &About<'_>) -> Vec<String> {
    let command = about.meta.filter(|meta| !meta.command.is_empty());
    let command = command.map(|meta| format!("command: {}", meta.command.join(" ")));
    let host = about.meta.map(|meta| format!("host: {}", meta.host));
    let cut = about.cut.map(|why| format!("the recording was cut off: {why}"));
    let lines = [command, host, cut].into_iter().flatten();
    lines.map(|line| escaped(&line)).collect()
}
