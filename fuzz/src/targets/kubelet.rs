//! What a kubelet answers to `/pods`: the bytes as they are, and as containers of a list that is one.

use crate::memory::within;
use gpuscope::owner::kubelet::names_in;

const MOST: usize = 20_000;

fn read(text: &[u8]) {
    // what is kept of a text is at most its strings, and what a map takes beside them
    let Ok(names) = within(8 * text.len() + (64 << 10), || names_in(text)) else {
        return;
    };
    assert!(names.len() <= MOST);
    for name in names
        .values()
        .flat_map(|names| [&names.namespace, &names.pod, &names.container])
    {
        assert!(name.len() <= 128 && !name.contains(char::is_control), "{name:?}");
    }
}

/// Pieces of what a kubelet writes, one for each byte.
const PIECES: [&str; 16] = [
    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}",
    ",\"status\":{",
    "\"containerStatuses\":[",
    "\"initContainerStatuses\":[",
    "\"ephemeralContainerStatuses\":[",
    "{\"name\":\"c\",\"containerID\":\"containerd://7f\"}",
    "{}",
    ",",
    "]",
    "}",
    "null",
    "{\"containerID\":\"://\\u0000\",\"name\":\"\\u001b[2J\"}",
    "\"spec\":{\"x\":[[[[1e999]]]]}",
    "[",
    "\"\":0",
    "{\"metadata\":{}}",
];

pub fn run(bytes: &[u8]) {
    read(bytes);
    let pieces = bytes.iter().map(|byte| PIECES[usize::from(*byte) % PIECES.len()]);
    let text = format!("{{\"items\":[{}]}}", pieces.collect::<String>());
    read(text.as_bytes());
}
