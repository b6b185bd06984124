//! Stacks as rows, lines and summaries have them: JSON arrays of frames, innermost first.

use super::lines::frame_place;
use super::{Frame, Language};
use crate::text::quantity::harmless;
use serde_json::{Value, json};

/// A stack as an array of objects, as text.
pub fn frames_json(frames: &[Frame]) -> String {
    harmless(&frames.iter().map(frame_json).collect::<Value>().to_string())
}

/// A frame as an object.
pub fn frame_json(frame: &Frame) -> Value {
    json!({
        "function": frame.function,
        "module": frame.module,
        "offset": frame.offset,
        "file": frame.file,
        "line": frame.line,
        "language": frame.language.name(),
        "inlined": frame.inlined,
    })
}

/// The frame of a stack that a row has which a person looks for.
pub fn place_of(stack: &str) -> Option<String> {
    frame_place(&frames_of(stack))
}

/// The frames of a stack that a row has; of what is none, nothing.
pub fn frames_of(stack: &str) -> Vec<Frame> {
    let frames: Vec<Value> = serde_json::from_str(stack).unwrap_or_default();
    frames.iter().map(frame_of).collect()
}

/// One frame of it.
pub fn frame_of(value: &Value) -> Frame {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    Frame {
        function: text("function").unwrap_or_else(|| "?".to_owned()),
        module: text("module"),
        offset: value["offset"].as_u64(),
        file: text("file"),
        line: value["line"].as_u64().and_then(|line| line.try_into().ok()),
        language: match value["language"].as_str() {
            Some("python") => Language::Python,
            _ => Language::Native,
        },
        inlined: value["inlined"].as_bool().unwrap_or(false),
    }
}
