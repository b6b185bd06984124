//! A call stack as a path into the program: outermost frame first, Python and native frames as they lie.
//!
//! Owns what is one step of it. What a frame is called is [`super::lines`]' business, what paths add up to not this floor's.

use super::lines::{is_nameless, named, serves};
use super::{Frame, Language};
use crate::text::quantity::escaped;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Step {
    /// As a line of text has it: `train.py:42 forward`. Escaped.
    pub shown: String,
    /// As in the trace, not escaped.
    pub function: String,
    /// The source file, or the file that holds the code.
    pub file: Option<String>,
    pub line: Option<u32>,
    pub language: Language,
}

/// The steps of a stack that has its innermost frame first. Frames without names of one library that others call through, of
/// which no address says anything to a person, are one step.
#[must_use]
pub fn steps(stack: &[Frame]) -> Vec<Step> {
    let inward: Vec<&Frame> = stack.iter().rev().collect();
    inward.chunk_by(|a, b| are_one(a, b)).filter_map(step).collect()
}

fn are_one(a: &Frame, b: &Frame) -> bool {
    is_dull(a) && is_dull(b) && a.module == b.module
}

fn is_dull(frame: &Frame) -> bool {
    frame.language == Language::Native && frame.module.is_some() && is_nameless(frame) && serves(frame)
}

fn step(frames: &[&Frame]) -> Option<Step> {
    let first = *frames.first()?;
    let shown = match (&first.module, is_dull(first)) {
        (Some(module), true) => format!("{} (no names)", escaped(module)),
        _ => named(first),
    };
    Some(Step {
        function: if is_dull(first) {
            shown.clone()
        } else {
            first.function.clone()
        },
        shown,
        file: first.file.clone().or_else(|| first.module.clone()),
        line: first.line,
        language: first.language,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn native(function: &str, module: &str, offset: u64) -> Frame {
        Frame {
            function: function.to_owned(),
            module: Some(module.to_owned()),
            offset: Some(offset),
            file: None,
            line: None,
            language: Language::Native,
            inlined: false,
        }
    }

    fn python(function: &str, line: u32) -> Frame {
        Frame {
            module: None,
            offset: None,
            file: Some("/home/me/train.py".to_owned()),
            line: Some(line),
            language: Language::Python,
            ..native(function, "", 0)
        }
    }

    fn shown(stack: &[Frame]) -> Vec<String> {
        steps(stack).into_iter().map(|step| step.shown).collect()
    }

    #[test]
    fn a_path_leads_from_the_outermost_frame_to_the_innermost() {
        let stack = [
            native("cuLaunchKernel", "libcuda.so.1", 7),
            native("at::native::add", "libtorch_cuda.so", 9),
            python("forward", 42),
            python("<module>", 99),
        ];
        assert_eq!(
            shown(&stack),
            [
                "train.py:99 <module>",
                "train.py:42 forward",
                "at::native::add (libtorch_cuda.so)",
                "cuLaunchKernel (libcuda.so.1)"
            ]
        );
        let step = &steps(&stack)[1];
        assert_eq!(
            (step.function.as_str(), step.file.as_deref(), step.line),
            ("forward", Some("/home/me/train.py"), Some(42))
        );
    }

    #[test]
    fn frames_without_names_are_one_step_in_a_library_and_apart_in_the_program() {
        let stack = [
            native("0x11", "libcublas.so.13", 0x11),
            native("0x22", "libcublas.so.13", 0x22),
            native("0x7f33", "app", 0x33),
            native("0x7f44", "app", 0x44),
        ];
        assert_eq!(
            shown(&stack),
            ["0x7f44 (app+0x44)", "0x7f33 (app+0x33)", "libcublas.so.13 (no names)"]
        );
    }

    #[test]
    fn no_stack_is_no_path() {
        assert_eq!(steps(&[]), []);
    }
}
