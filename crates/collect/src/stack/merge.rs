//! One stack of two: the native functions, and the Python functions that some of them run.

use crate::frame::Frame;
use std::rc::Rc;

/// What a native frame does for the Python stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Nothing: a function like any other.
    Other,
    /// The interpreter's inner workings.
    Interpreter,
    /// Runs Python functions, up to one that it was entered with.
    Evaluation,
}

/// The frames of one native address.
pub type Native = (Part, Vec<Frame>);

/// A Python function, and whether an evaluation was entered with it.
pub type Python = (Rc<Frame>, bool);

/// What function `name` in file `module` does.
pub(crate) fn part_of(name: &str, module: &str) -> Part {
    // with a compiler that can, each instruction of 3.14 is a function that the evaluation ends in
    if name.starts_with("_PyEval_EvalFrameDefault") || name.starts_with("_TAIL_CALL_") {
        return Part::Evaluation;
    }
    let api = |name: &str| name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_');
    let named = name
        .strip_prefix("_Py")
        .or_else(|| name.strip_prefix("Py"))
        .is_some_and(api);
    let inside = module.starts_with("libpython") || module.starts_with("python");
    if named || inside {
        Part::Interpreter
    } else {
        Part::Other
    }
}

/// Puts the Python functions in the place of the interpreter's functions that run them. Both innermost first. False:
/// the native stack does not reach the functions that run all of them.
pub(crate) fn merge(native: Vec<Native>, python: &[Python]) -> (Vec<Frame>, bool) {
    let mut python = python.iter();
    let mut frames = Vec::new();
    // where Python frames go that no evaluation was seen of
    let mut inside = None;
    let mut run: Vec<Native> = Vec::new();
    for (part, names) in native.into_iter().chain([(Part::Other, Vec::new())]) {
        if part != Part::Other {
            run.push((part, names));
            continue;
        }
        if !run.is_empty() {
            replace(std::mem::take(&mut run), &mut python, &mut frames);
            inside = Some(frames.len());
        }
        frames.extend(names);
    }
    let rest: Vec<Frame> = python.map(|(frame, _)| Frame::clone(frame)).collect();
    let complete = rest.is_empty();
    let at = inside.unwrap_or(frames.len());
    frames.splice(at..at, rest);
    (frames, complete)
}

/// A run of the interpreter's functions becomes the Python functions that it runs; without any it stays.
fn replace<'a>(run: Vec<Native>, python: &mut impl Iterator<Item = &'a Python>, frames: &mut Vec<Frame>) {
    let before = frames.len();
    for _ in run.iter().filter(|(part, _)| *part == Part::Evaluation) {
        for (frame, entry) in python.by_ref() {
            frames.push(Frame::clone(frame));
            if *entry {
                break;
            }
        }
    }
    if frames.len() == before {
        frames.extend(run.into_iter().flat_map(|(_, names)| names));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Language;
    use proptest::prelude::*;

    fn frame(function: &str, language: Language) -> Frame {
        Frame {
            function: function.to_owned(),
            module: None,
            offset: None,
            file: None,
            line: None,
            language,
            inlined: false,
        }
    }

    fn native(name: &str) -> Native {
        (part_of(name, "app"), vec![frame(name, Language::Native)])
    }

    fn python(name: &str, entry: bool) -> Python {
        (Rc::new(frame(name, Language::Python)), entry)
    }

    fn merged(natives: &[&str], pythons: &[(&str, bool)]) -> (String, bool) {
        let natives = natives.iter().map(|name| native(name)).collect();
        let pythons: Vec<Python> = pythons.iter().map(|(name, entry)| python(name, *entry)).collect();
        let (frames, complete) = merge(natives, &pythons);
        let names: Vec<String> = frames.into_iter().map(|frame| frame.function).collect();
        (names.join(" "), complete)
    }

    const EVAL: &str = "_PyEval_EvalFrameDefault";

    #[test]
    fn python_functions_stand_where_the_interpreter_runs_them() {
        let natives = [
            "cudaMalloc",
            "at::empty",
            "_PyObject_Call",
            EVAL,
            "_PyEval_Vector",
            "sort",
            EVAL,
            "Py_RunMain",
            "main",
        ];
        let pythons = [("forward", false), ("key", true), ("train", true)];
        let expected = "cudaMalloc at::empty forward key sort train main".to_owned();
        assert_eq!(merged(&natives, &pythons), (expected, true));
    }

    #[test]
    fn where_the_native_stack_ends_early_python_follows_it() {
        let expected = ("cudaMalloc ffi_call f main".to_owned(), false);
        assert_eq!(
            merged(&["cudaMalloc", "ffi_call"], &[("f", true), ("main", true)]),
            expected
        );
    }

    #[test]
    fn frames_of_an_evaluation_that_was_not_seen_stay_with_the_interpreter() {
        let natives = ["cudaMalloc", EVAL, "start_thread"];
        let expected = ("cudaMalloc f run start_thread".to_owned(), false);
        assert_eq!(merged(&natives, &[("f", true), ("run", true)]), expected);
    }

    #[test]
    fn the_interpreter_is_shown_where_it_runs_nothing() {
        let expected = ("cudaMalloc PyGILState_Ensure main".to_owned(), true);
        assert_eq!(merged(&["cudaMalloc", "PyGILState_Ensure", "main"], &[]), expected);
    }

    #[test]
    fn parts_are_told_by_name_and_file() {
        assert_eq!(part_of("_PyEval_EvalFrameDefault.cold", "app"), Part::Evaluation);
        assert_eq!(part_of("_TAIL_CALL_CALL_PY_EXACT_ARGS", "app"), Part::Evaluation);
        assert_eq!(part_of("PyObject_Call", "app"), Part::Interpreter);
        assert_eq!(part_of("cfunction_call", "libpython3.12.so.1.0"), Part::Interpreter);
        assert_eq!(part_of("Pyramid", "app"), Part::Other);
        assert_eq!(part_of("call", "libtorch_python.so"), Part::Other);
    }

    proptest! {
        #[test]
        fn every_python_function_is_there_once_in_its_order(
            natives in proptest::collection::vec(0_usize..3, 0..12),
            entries in proptest::collection::vec(any::<bool>(), 0..12),
        ) {
            let natives = natives.into_iter().map(|n| native(["f", "PyObject_Call", EVAL][n])).collect();
            let pythons: Vec<Python> = entries.iter().enumerate().map(|(n, entry)| python(&n.to_string(), *entry)).collect();
            let (frames, _) = merge(natives, &pythons);
            let numbers: Vec<usize> = frames.iter().filter_map(|frame| frame.function.parse().ok()).collect();
            prop_assert_eq!(numbers, (0..entries.len()).collect::<Vec<_>>());
        }
    }
}
