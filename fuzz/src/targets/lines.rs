//! JSON lines of ours: the bytes behind a first line, and lines put together of names and values that we know.

use crate::memory::within;
use gpuscope::record::{Record, Taker};
use gpuscope::trace::lines::Lines;

const META: &[u8] =
    b"{\"type\":\"meta\",\"tool\":\"gpuscope\",\"version\":\"0.1.0\",\"start_monotonic_ns\":5,\"start_unix_ns\":7}\n";

/// What reading one line takes, for all of its texts may be escaped, and what is known of threads.
const TIMES: usize = 24;
const BESIDE: usize = 64 << 10;

/// Counts rows, and looks at all of each.
struct Rows(u64);

impl Taker for Rows {
    fn take(&mut self, event: &Record<'_>) {
        self.0 += 1;
        std::hint::black_box((event.args.map(str::len), event.stack.map(str::len), event.comm.len()));
        assert!(event.since_caller.is_none() || event.depth > 0 || event.since_caller == Some(0));
    }
}

fn read(text: &[u8]) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    // what is known of functions is read once
    ONCE.call_once(|| drop(Lines::new(META)));
    within(TIMES * text.len() + BESIDE, || {
        let Ok(lines) = Lines::new(text) else { return };
        let mut rows = Rows(0);
        let end = lines.read(&mut rows);
        assert_eq!(end.rows, rows.0);
        assert!(end.rows <= text.len() as u64);
        assert!(end.cut.is_some() || end.summary.is_some());
    });
}

const NAMES: [&str; 32] = [
    "ts",
    "type",
    "layer",
    "name",
    "event_id",
    "pid",
    "tid",
    "comm",
    "depth",
    "parent_id",
    "class",
    "category",
    "failed",
    "duration_us",
    "ret",
    "size",
    "stream",
    "address",
    "held",
    "host",
    "direction",
    "kernel",
    "stack",
    "args",
    "error",
    "count",
    "until",
    "idle_us",
    "value",
    "function",
    "why",
    "new",
];
const VALUES: [&str; 32] = [
    "0",
    "1",
    "-1",
    "1.5",
    "\"userspace\"",
    "\"kernel\"",
    "\"process\"",
    "\"lost\"",
    "\"count\"",
    "\"sample\"",
    "\"xid\"",
    "\"summary\"",
    "\"cut\"",
    "\"idle\"",
    "18446744073709551615",
    "-9223372036854775808",
    "255",
    "4294967295",
    "\"0xffffffffffffffff\"",
    "\"0x\"",
    "null",
    "true",
    "\"\\u001b\\n\\\\\"",
    "[]",
    "{}",
    "[{\"a\":[1,\"}\"]}]",
    "1e308",
    "\"cudaMalloc\"",
    "\"cuLaunchKernel\"",
    "\"alloc\"",
    "\"h2d\"",
    "\"pinned\"",
];

/// Each two bytes a member; an end of a line at every 255. Lines are of ever new threads.
fn composed(bytes: &[u8]) -> Vec<u8> {
    let mut text = META.to_vec();
    for (number, line) in bytes.split(|byte| *byte == 255).enumerate() {
        let member = |pair: &[u8]| match NAMES[usize::from(pair[0]) % 32] {
            "tid" => format!("\"tid\":{number}"),
            name => format!("\"{name}\":{}", VALUES[usize::from(pair[1]) % 32]),
        };
        let members: Vec<String> = line.chunks_exact(2).map(member).collect();
        let kind = VALUES[4 + line.len() % 10];
        let line = format!("{{\"ts\":1.5,\"type\":{kind},{}}}\n", members.join(","));
        text.extend(line.replace(",}", "}").bytes());
    }
    text
}

pub fn run(bytes: &[u8]) {
    read(bytes);
    read(&[META, bytes].concat());
    read(&composed(bytes));
}
