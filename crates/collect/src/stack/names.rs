//! Short names of functions, and what stands for those that have none.

use crate::frame::{Frame, Language};

/// A demangled name without parameters, template arguments and what is returned: `at::native::add`.
pub(crate) fn short(name: &str) -> String {
    let kept = match subject(name) {
        Some((subject, rest)) => short(subject) + &without_arguments(rest),
        None => without_arguments(name),
    };
    if kept.is_empty() { name.to_owned() } else { kept }
}

/// `T` and `::f` of Rust's `<T as Trait>::f` and `<T>::f`.
fn subject(name: &str) -> Option<(&str, &str)> {
    let inside = name.strip_prefix('<')?;
    let mut depth = 1_usize;
    let mut end = None;
    for (at, character) in inside.char_indices() {
        match character {
            '<' => depth += 1,
            // the arrow of a function's type closes nothing
            '>' if inside[..at].ends_with('-') => {}
            '>' => depth -= 1,
            ' ' if depth == 1 && inside[at..].starts_with(" as ") => end = end.or(Some(at)),
            _ => {}
        }
        if depth == 0 {
            let rest = inside[at + 1..].strip_prefix("::").map(|_| &inside[at + 1..])?;
            return Some((&inside[..end.unwrap_or(at)], rest));
        }
    }
    None
}

fn without_arguments(name: &str) -> String {
    let mut kept = String::new();
    let mut depth = 0_usize;
    let mut rest = name;
    while let Some(character) = rest.chars().next() {
        if depth == 0 {
            if let Some(fixed) = FIXED.iter().find(|fixed| rest.starts_with(**fixed)) {
                kept.push_str(fixed);
                rest = &rest[fixed.len()..];
                continue;
            }
            if character == '(' {
                break;
            }
        }
        match character {
            '<' => depth += 1,
            '-' if depth > 0 && rest.starts_with("->") => rest = &rest[1..],
            '>' => depth = depth.saturating_sub(1),
            // what stands before a space is the type of the result
            ' ' if depth == 0 && !after_operator(&kept) => kept.clear(),
            // and colons before arguments lead nowhere without them
            ':' if depth == 0 && rest.starts_with("::<") => rest = &rest[1..],
            _ if depth == 0 => kept.push(character),
            _ => {}
        }
        rest = &rest[character.len_utf8()..];
    }
    kept
}

/// Parts of names that hold brackets or spaces of their own.
const FIXED: [&str; 12] = [
    "(anonymous namespace)",
    "{closure#",
    "operator()",
    "operator<=>",
    "operator<<",
    "operator>>",
    "operator<=",
    "operator>=",
    "operator->*",
    "operator->",
    "operator<",
    "operator>",
];

fn after_operator(kept: &str) -> bool {
    kept.ends_with("operator") || kept.ends_with("operator new") || kept.ends_with("operator delete")
}

/// A frame of which no more is known.
pub(crate) fn nameless(module: Option<&str>, offset: u64) -> Frame {
    Frame {
        function: format!("{offset:#x}"),
        module: module.map(str::to_owned),
        offset: Some(offset),
        file: None,
        line: None,
        language: Language::Native,
        inlined: false,
    }
}

#[cfg(test)]
mod tests {
    use super::short;
    use proptest::prelude::*;

    #[test]
    fn parameters_templates_and_results_are_left_out() {
        let shortened = [
            ("cuMemAlloc_v2", "cuMemAlloc_v2"),
            ("at::native::add(at::Tensor const&, int)", "at::native::add"),
            ("void at::launch<float, std::pair<int, int> >(int)", "at::launch"),
            ("std::vector<int>::push_back(int const&)", "std::vector::push_back"),
            ("(anonymous namespace)::run(int)", "(anonymous namespace)::run"),
            ("c10::Device::operator()(int) const", "c10::Device::operator()"),
            ("bool a::operator<(b const&)", "a::operator<"),
            (
                "core::ops::function::FnOnce::call_once",
                "core::ops::function::FnOnce::call_once",
            ),
            (
                "<core::iter::Map<I, F> as core::iter::Iterator>::next",
                "core::iter::Map::next",
            ),
            ("<F as core::ops::FnOnce<(A,)>>::call_once::<u8>", "F::call_once"),
            ("<fn() -> u8>::call", "fn::call"),
            (
                "std::panicking::catch_unwind::<i32, fn() -> i32>",
                "std::panicking::catch_unwind",
            ),
            (
                "std::rt::lang_start::<()>::{closure#0}",
                "std::rt::lang_start::{closure#0}",
            ),
            ("", ""),
            ("<lambda>", "<lambda>"),
        ];
        for (long, expected) in shortened {
            assert_eq!(short(long), expected);
        }
    }

    proptest! {
        #[test]
        fn any_name_has_a_short_one(name in "\\PC{0,60}") {
            prop_assert!(short(&name).len() <= name.len());
        }
    }
}
