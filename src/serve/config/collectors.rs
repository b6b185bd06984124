//! Which collectors are meant.

use super::place::Mistakes;
use super::settings::Setting;
use crate::catalog::hint;
use crate::serve::config::place::quoted;
use crate::serve::metric::Collector;
use std::collections::BTreeSet;

/// Whether only probes see what it measures.
pub(super) fn needs_probes(collector: Collector) -> bool {
    !matches!(
        collector,
        Collector::Nvml | Collector::Reserved | Collector::Xid | Collector::Own
    )
}

/// Those that are on where nobody says anything else.
pub(super) fn usual() -> impl Iterator<Item = Collector> {
    Collector::ALL.iter().copied().filter(|collector| collector.is_usual())
}

/// The collectors that are named, without those behind a `!`; where some are behind a `+`, or nothing else is named, the usual ones
/// are among them.
pub(super) fn chosen(setting: &Setting, mistakes: &mut Mistakes) -> BTreeSet<Collector> {
    let (mut named, mut left_out) = (BTreeSet::new(), BTreeSet::new());
    let (mut wrong, mut adds) = (false, false);
    for word in &setting.words {
        let text = word.text.as_str();
        let (set, name) = match text.split_at_checked(1) {
            Some(("!", name)) => (&mut left_out, name),
            Some(("+", name)) => {
                adds = true;
                (&mut named, name)
            }
            _ => (&mut named, text),
        };
        match collector(name) {
            Ok(collector) => drop(set.insert(collector)),
            Err(what) => {
                wrong = true;
                mistakes.add(&word.place, what);
            }
        }
    }
    if adds || named.is_empty() && !left_out.is_empty() {
        named.extend(usual());
    }
    let chosen: BTreeSet<Collector> = named.difference(&left_out).copied().collect();
    if chosen.is_empty() && !wrong {
        mistakes.add(
            &setting.place,
            format!("nothing is measured; hint: some of {}", names()),
        );
    }
    chosen
}

/// The layer of the kernel driver is a collector.
pub(super) fn add_layers(chosen: &mut BTreeSet<Collector>, layers: &[String]) {
    if layers.iter().any(|layer| layer == "kernel" || layer == "all") {
        chosen.insert(Collector::Driver);
    }
}

fn names() -> String {
    let names: Vec<&str> = Collector::ALL.iter().map(|collector| collector.name()).collect();
    names.join(", ")
}

fn collector(name: &str) -> Result<Collector, String> {
    let found = Collector::ALL.iter().find(|collector| collector.name() == name);
    let all = Collector::ALL.iter().map(|collector| collector.name());
    found.copied().ok_or_else(|| match hint::nearest(name, all) {
        Some(near) => format!("unknown collector {}; hint: did you mean {near}?", quoted(name)),
        None => format!("unknown collector {}; hint: some of {}", quoted(name), names()),
    })
}
