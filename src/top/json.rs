//! A frame as one JSON object in a line.

use super::model::Frame;
use crate::text::quantity::harmless;
use serde::Serialize;

#[derive(Serialize)]
struct Line<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    frame: &'a Frame,
}

/// Ends with a line end.
pub(crate) fn line(frame: &Frame) -> String {
    let line = Line { r#type: "top", frame };
    // numbers are finite and keys are texts: there is nothing that JSON cannot say
    let text = serde_json::to_string(&line).unwrap_or_default();
    harmless(&text) + "\n"
}
