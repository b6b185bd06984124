//! Names from the trace that are too long for a line: cut, but so that no two that differ are written alike in one table.

use crate::text::quantity::escaped;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Characters of a name.
const LONG: usize = 48;
/// Of these, those of its beginning, where what is told apart lies behind them.
const HEAD: usize = 20;
/// Of what two names share, what is shown before they part.
const SHARED: usize = 4;

/// Names from the trace that are too long for a line.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Those that a plain cut does not tell apart, as they are written.
    apart: HashMap<String, String>,
}

impl Names {
    /// Of all names of a table.
    pub(super) fn of<'a>(names: impl Iterator<Item = &'a str>) -> Names {
        let mut alike: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for name in names.filter(|name| name.chars().nth(LONG).is_some()) {
            alike.entry(cut(name)).or_default().insert(name);
        }
        let mut apart = HashMap::new();
        let mut seen: HashMap<String, usize> = HashMap::new();
        for names in alike.values().filter(|names| names.len() > 1) {
            let parting = parting(names);
            for name in names {
                let shown = around(name, parting);
                let times = seen.entry(shown.clone()).or_default();
                *times += 1;
                let number = if *times > 1 {
                    format!(" #{times}")
                } else {
                    String::new()
                };
                apart.insert((*name).to_owned(), shown + &number);
            }
        }
        Names { apart }
    }

    /// As it is written; nothing in it drives a terminal.
    pub(super) fn shown(&self, name: &str) -> String {
        match self.apart.get(name) {
            Some(shown) => escaped(shown),
            None => escaped(&cut(name)),
        }
    }
}

fn cut(name: &str) -> String {
    match name.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Characters that all of them begin with.
fn parting(names: &BTreeSet<&str>) -> usize {
    // sorted ones share what the first and the last do
    let (first, last) = (names.first().copied(), names.last().copied());
    let pairs = first.unwrap_or("").chars().zip(last.unwrap_or("").chars());
    pairs.take_while(|(one, other)| one == other).count()
}

/// The beginning of a name, and what is around the place where others part from it, behind what a line has room for.
fn around(name: &str, parting: usize) -> String {
    let skipped = parting.saturating_sub(SHARED);
    let head: String = name.chars().take(HEAD).collect();
    let rest: String = name.chars().skip(skipped).take(LONG - HEAD - 1).collect();
    let more = name.chars().nth(skipped + LONG - HEAD - 1).is_some();
    format!("{head}…{rest}{}", if more { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ADD: &str = "elementwise_kernel<128,2,gpu_kernel_impl_nocast<CUDAFunctor_add<float>>::lambda#1>";
    const ADD_HALF: &str = "elementwise_kernel<128,2,gpu_kernel_impl_nocast<CUDAFunctor_add<Half>>::lambda#1>";

    fn shown(names: &[&str]) -> Vec<String> {
        let all = Names::of(names.iter().copied());
        names.iter().map(|name| all.shown(name)).collect()
    }

    #[test]
    fn a_name_alone_is_cut_where_the_line_ends() {
        assert_eq!(
            shown(&[ADD, "gemm"]),
            ["elementwise_kernel<128,2,gpu_kernel_impl_nocast<…", "gemm"]
        );
    }

    #[test]
    fn names_that_would_be_cut_alike_show_where_they_part() {
        assert_eq!(
            shown(&[ADD, ADD_HALF, ADD]),
            [
                "elementwise_kernel<1…add<float>>::lambda#1>",
                "elementwise_kernel<1…add<Half>>::lambda#1>",
                "elementwise_kernel<1…add<float>>::lambda#1>"
            ]
        );
    }

    #[test]
    fn names_that_part_in_several_places_have_a_number() {
        let name = |first: char, last: char| format!("{}{first}{}{last}", "k".repeat(60), "m".repeat(60));
        let names = [name('a', 'x'), name('a', 'y'), name('b', 'x')];
        let names = names.each_ref().map(String::as_str);
        let written = shown(&names);
        assert_eq!(written[1], format!("{} #2", written[0]));
        assert_ne!(written[2], written[0]);
        let backwards: Vec<&str> = names.iter().rev().copied().collect();
        assert!(shown(&backwards).iter().rev().eq(&written), "whatever their order");
    }

    proptest! {
        #[test]
        fn different_names_are_written_differently(names in proptest::collection::btree_set("[ab]{44,120}", 1..12)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let written: BTreeSet<String> = shown(&names).into_iter().collect();
            prop_assert_eq!(written.len(), names.len());
            prop_assert!(written.iter().all(|name| name.chars().count() <= LONG + 5));
        }
    }
}
