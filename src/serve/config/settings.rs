//! What can be set, by its name in the file, and what was written for it. Knows no meaning.

use super::place::Place;
use std::collections::BTreeMap;

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One value.
    One,
    /// Values; in one text they are separated by commas.
    Words,
    /// Values that may hold commas.
    Texts,
    /// Names and values.
    Pairs,
}

/// Name in the file, flag, shape.
pub(super) const KEYS: [(&str, &str, Shape); 26] = [
    ("collect", "--collect", Shape::Words),
    ("layer", "--layer", Shape::Words),
    ("hooks", "--hooks", Shape::Texts),
    ("nvml_interval", "--nvml-interval", Shape::One),
    ("budget", "--budget", Shape::One),
    ("budget_except", "--budget-except", Shape::Texts),
    ("listen", "--listen", Shape::Words),
    ("health_listen", "--health-listen", Shape::Words),
    ("telemetry_path", "--telemetry-path", Shape::One),
    ("web_config", "--web-config", Shape::One),
    ("display_interval", "--display-interval", Shape::One),
    ("labels", "--labels", Shape::Words),
    ("kubelet", "--kubelet", Shape::One),
    ("pod_resources", "--pod-resources", Shape::One),
    ("top_kernels", "--top-kernels", Shape::One),
    ("max_series", "--max-series", Shape::One),
    ("max_owners", "--max-owners", Shape::One),
    ("retain", "--retain", Shape::One),
    ("keep", "--keep", Shape::One),
    ("keep_memory", "--keep-memory", Shape::One),
    ("keep_folder", "--keep-folder", Shape::One),
    ("keep_disk", "--keep-disk", Shape::One),
    ("otlp.url", "--otlp", Shape::One),
    ("otlp.interval", "--otlp-interval", Shape::One),
    ("otlp.timeout", "--otlp-timeout", Shape::One),
    ("otlp.headers", "--otlp-header", Shape::Pairs),
];

/// A value as it was written; of pairs `NAME=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub text: String,
    pub place: Place,
}

/// All that was written for one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub words: Vec<Word>,
    pub place: Place,
}

/// By name in the file.
pub(super) type Settings = BTreeMap<&'static str, Setting>;

/// What `text` says, by the shape of its key.
pub(super) fn words(shape: Shape, text: &str, place: &Place) -> Vec<Word> {
    let word = |text: &str| Word {
        text: text.to_owned(),
        place: place.clone(),
    };
    match shape {
        Shape::Words => {
            let parts = text.split(',').map(str::trim);
            parts.filter(|part| !part.is_empty()).map(word).collect()
        }
        Shape::One | Shape::Texts | Shape::Pairs => vec![word(text)],
    }
}
