//! Time by call path in the formats of profilers: one for each file, each of a whole [`Tree`].
//!
//! Owns that rows become a tree first, and that a trace without any such time becomes no file.

pub mod collapsed;
pub mod pprof;
mod proto;
pub mod speedscope;
#[cfg(test)]
mod tests;

use crate::model::snapshot::Snapshot;
use crate::paths::{Paths, Tree, Weight};
use crate::record::{Encoder, Ending, Kind, Meta, Record, Taker};
use crate::text::quantity::duration;

/// How a tree is written.
pub trait Profile {
    /// Appends it.
    fn write(&self, tree: &Tree, about: &About<'_>, out: &mut Vec<u8>);
}

/// What is known of the trace beside its rows.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    pub meta: Option<&'a Meta>,
    /// From the first row to the end of the last, ns.
    pub span_ns: u64,
    /// Why there are no more rows, if that was not the end of the trace.
    pub cut: Option<&'a str>,
}

/// Takes rows, and writes their tree in the end.
pub struct ByPath<P> {
    profile: P,
    weight: Weight,
    paths: Paths,
    meta: Option<Meta>,
    span: Option<(i64, i64)>,
    /// The last totals before the end.
    totals: Option<String>,
    failure: Option<String>,
    note: Option<String>,
}

impl<P: Profile> ByPath<P> {
    /// Time of that kind.
    pub fn new(profile: P, weight: Weight) -> ByPath<P> {
        ByPath {
            profile,
            weight,
            paths: Paths::default(),
            meta: None,
            span: None,
            totals: None,
            failure: None,
            note: None,
        }
    }

    fn about<'a>(&'a self, ending: &Ending<'a>) -> About<'a> {
        About {
            meta: self.meta.as_ref(),
            span_ns: self.span.map_or(0, |(from, to)| to.abs_diff(from)),
            cut: ending.cut,
        }
    }
}

impl<P: Profile> Encoder for ByPath<P> {
    fn start(&mut self, meta: &Meta, _out: &mut Vec<u8>) {
        self.meta = Some(meta.clone());
    }

    fn take(&mut self, event: &Record<'_>, _out: &mut Vec<u8>) {
        if event.kind == Kind::Snapshot {
            self.totals = event.args.map(str::to_owned);
            return;
        }
        let (from, to) = self.span.unwrap_or((event.at, event.end()));
        self.span = Some((from.min(event.at), to.max(event.end())));
        self.paths.take(event);
    }

    fn finish(&mut self, ending: &Ending<'_>, out: &mut Vec<u8>) {
        let exact = ending.summary.or(self.totals.as_deref()).and_then(read);
        let tree = self.paths.tree(self.weight, exact.as_ref());
        if tree.nodes.len() < 2 {
            self.failure = Some(nothing(self.weight).to_owned());
            return;
        }
        self.profile.write(&tree, &self.about(ending), out);
        self.note = note(&tree);
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }

    fn note(&self) -> Option<String> {
        self.note.clone()
    }
}

fn read(totals: &str) -> Option<Snapshot> {
    Snapshot::read(&serde_json::from_str(totals).ok()?).ok()
}

fn nothing(weight: Weight) -> &'static str {
    match weight {
        Weight::Gpu => {
            "it has no activities of a GPU, whose time could be weighed\n\
             hint: --weight wait weighs what threads waited in CUDA; or record with --gpu on --stacks all"
        }
        Weight::Wait => "no call in it waits for a GPU\nhint: --weight gpu weighs what GPUs executed",
        Weight::Host => "no thread in it was sampled outside CUDA\nhint: record without --stacks none",
    }
}

/// Where it is worth a word that there are no paths.
const CURE: &str = "\nhint: record with --stacks all";

/// What of it lies where no path leads.
fn note(tree: &Tree) -> Option<String> {
    let (rest, all) = (tree.without_path(), tree.total());
    let words = format!("{} of {} of {}", duration(rest.ns), duration(all.ns), title(tree));
    match (tree.has_paths(), rest.ns) {
        (_, 0) => None,
        (true, _) => {
            let cure = if tree.lacks_paths() { CURE } else { "" };
            Some(format!(
                "{words} has no call path, or one beyond what is kept apart{cure}"
            ))
        }
        (false, _) if tree.weight == Weight::Host => Some(format!("where threads were in {words} has no name")),
        (false, _) => Some(format!(
            "no call path of {words} is known: the calls were recorded without their stacks{CURE}"
        )),
    }
}

/// What time the profile is of, as its name says.
fn title(tree: &Tree) -> &'static str {
    match tree.weight {
        Weight::Gpu => "GPU time",
        Weight::Wait => "waiting in CUDA",
        Weight::Host => "time outside CUDA",
    }
}
