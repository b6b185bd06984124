//! Names and values of labels that any parser takes.

use crate::owner::Owner;
use crate::serve::metrics;
use std::collections::HashSet;
use std::sync::LazyLock;

/// Names with a meaning of their own in the formats.
const RESERVED: [&str; 2] = ["le", "quantile"];

/// What an owner's label may not be called, so that one label has one name in all metrics.
static TAKEN: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let with_owner = metrics::all().filter(|metric| metric.by_owner);
    let own = with_owner.flat_map(|metric| metric.labels).copied();
    own.chain(RESERVED).collect()
});

/// Labels of an owner with valid, differing names and no empty value, by name.
pub(super) fn labels_of(owner: &Owner) -> Vec<(String, String)> {
    let mut labels: Vec<(String, String)> = Vec::with_capacity(owner.labels.len());
    for (name, value) in owner.labels.iter().filter(|(_, value)| !value.is_empty()) {
        let mut name = valid_name(name);
        while TAKEN.contains(name.as_str()) || labels.iter().any(|(known, _)| *known == name) {
            name.insert_str(0, "exported_");
        }
        labels.push((name, clean(value)));
    }
    labels.sort();
    labels
}

/// `[a-zA-Z_][a-zA-Z0-9_]*`, without the two underscores that Prometheus keeps for itself.
fn valid_name(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let fitting: String = name.chars().map(fits).collect();
    let rest = fitting.trim_start_matches('_');
    let bare = rest.len() == fitting.len();
    if bare && rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return fitting;
    }
    format!("_{rest}")
}

/// Surely without control codes; a text that is not may yet have none.
pub(super) fn is_clean(value: &str) -> bool {
    const FIRST_OF_C1: u8 = 0xc2;
    let harmless = |byte: u8| byte >= b' ' && byte != 0x7f && byte != FIRST_OF_C1;
    value.bytes().all(harmless)
}

/// Without control codes, other than the end of a line.
pub(super) fn clean(value: &str) -> String {
    let harmful = |c: char| c.is_control() && c != '\n';
    let shown = |c| if harmful(c) { char::REPLACEMENT_CHARACTER } else { c };
    value.chars().map(shown).collect()
}
