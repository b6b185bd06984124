//! What Prometheus answers to a query: the bytes as they are, and as series of a vector that is one; then the week that is told
//! of it, if it answered so to all questions.

use crate::memory::within;
use gpuscope::serve::fleet::{Answer, Question, Span, figures, html, json, markdown, read, text};
use std::time::Duration;

/// Pieces of what Prometheus writes, one for each byte.
const PIECES: [&str; 16] = [
    "{\"metric\":{\"instance\":\"a\"},\"value\":[1,\"2\"]}",
    "{\"metric\":{\"user\":\"a\",\"batch_job\":\"1\",\"reason\":\"memory\"},\"value\":[1.5,\"3e9\"]}",
    "{\"metric\":{\"namespace\":\"\\u001b[2J\",\"pod\":\"|<b>\",\"certainty\":\"inferred\"},\"value\":[1,\"1\"]}",
    "{\"metric\":{},\"value\":[0,\"NaN\"]}",
    "{\"metric\":{},\"value\":[0,\"-1e308\"]}",
    "{\"metric\":{\"version\":\"\"},\"value\":[0,\"1e308\"]}",
    ",",
    ",",
    ",",
    "{\"metric\":{\"a\":1},\"value\":[]}",
    "]}",
    "[[[[",
    "null",
    "{",
    "\"",
    ",\"warnings\":[\"\\u202e\"]",
];

fn look(body: &[u8]) {
    let Ok(answer) = within(64 * body.len() + (64 << 10), || read(body)) else {
        return;
    };
    let span = Span {
        since: Duration::from_secs(3600),
        until_seconds: 1_763_798_400,
        user: None,
    };
    let all = Question::ALL.iter().map(|question| (*question, answer.clone()));
    let figures = figures(&all.collect::<std::collections::BTreeMap<Question, Answer>>(), &span);
    for page in [
        text(&figures, &span, false, Some(80)),
        markdown(&figures, &span),
        html(&figures, &span),
        json(&figures, &span),
    ] {
        assert!(
            !page.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')),
            "{page:?}"
        );
    }
}

pub fn run(bytes: &[u8]) {
    look(bytes);
    let pieces = bytes.iter().map(|byte| PIECES[usize::from(*byte) % PIECES.len()]);
    let series = pieces.collect::<String>();
    look(format!("{{\"status\":\"success\",\"data\":{{\"resultType\":\"vector\",\"result\":[{series}]}}}}").as_bytes());
}
