//! Call stacks of rows as a person reads them.

use crate::frame::Frame;
use crate::frame::json::{frame_of, frames_of as frames_in};
use crate::frame::lines::{frame_lines, frame_place};
use serde_json::Value;

pub(crate) use crate::sink::memory::Apart;

/// The frames of a stack as a row has it, innermost first; of what is none, nothing.
#[must_use]
pub(crate) fn frames(stack: &str) -> Vec<Frame> {
    frames_in(stack)
}

/// The same of a stack as a summary has it.
#[must_use]
pub(crate) fn frames_of(stack: &[Value]) -> Vec<Frame> {
    stack.iter().map(frame_of).collect()
}

/// The frame that a person looks for, as `train.py:42 forward`. `None`: there is no stack in it.
#[must_use]
pub(crate) fn place(stack: &str) -> Option<String> {
    frame_place(&frames(stack))
}

/// That frame, those that led to it, and the way from there into the driver.
#[must_use]
pub(crate) fn lines(stack: &str) -> Vec<String> {
    frame_lines(&frames(stack))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_program_is_its_place() {
        let stack = r#"[{"function":"cuMemAlloc_v2","module":"libcuda.so.1","language":"native"},
            {"function":"forward","file":"/home/me/train.py","line":42,"language":"python"}]"#;
        assert_eq!(place(stack).as_deref(), Some("train.py:42 forward"));
        assert_eq!(lines(stack)[0], "train.py:42 forward");
    }

    #[test]
    fn what_is_no_stack_has_no_place() {
        for odd in ["", "{}", "[]", "[", "7"] {
            assert_eq!(place(odd), None, "{odd}");
        }
    }
}
