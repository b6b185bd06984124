//! Chrome's trace format (JSON), which chrome://tracing, Perfetto, Speedscope and others read.
//!
//! Its tracks are threads of processes: streams, idle time and the life of a process are threads of made-up ids beyond
//! those of the kernel. What is of no process is of process 0.

use super::scene::{Arrows, Painter, Scene, Span, Track};
use super::sums::Counter;
use crate::record::{Ending, Meta, Record};
use crate::text::json::{hex, padded, string};
use crate::text::object::object_into;
use crate::text::quantity::escaped;
use std::collections::HashMap;
use std::io::Write;

/// Beyond the ids of all threads: the kernel's own limit is 2^22.
const MADE_UP: u32 = 1 << 30;

/// Draws a scene as Chrome's JSON.
#[derive(Default)]
pub struct Chrome {
    /// Ids of made-up threads.
    threads: HashMap<Track, u32>,
    metadata: serde_json::Map<String, serde_json::Value>,
    some: bool,
    /// Arrows from calls to what devices did because of them.
    executed: u64,
    start_ns: u64,
}

/// Ids of arrows to what devices did, apart from all others.
const EXECUTED: u64 = 1 << 49;

/// What is written of a call before its end is known, and where it is.
pub struct Call {
    pid: u32,
    tid: u32,
    /// From the name to the arguments.
    text: Vec<u8>,
}

/// Writes Chrome's JSON.
#[must_use]
pub fn encoder() -> Scene<Chrome> {
    Scene::new(Chrome::default())
}

impl Chrome {
    fn next(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.some { b",\n" } else { b"\n" });
        self.some = true;
    }

    fn thread(&mut self, track: Track, out: &mut Vec<u8>) -> u32 {
        if let Track::Thread { tid, .. } = track {
            return tid;
        }
        if let Some(id) = self.threads.get(&track) {
            return *id;
        }
        let id = MADE_UP + self.threads.len() as u32;
        self.threads.insert(track, id);
        self.names("thread_name", track.pid(), id, &track.title(), out);
        id
    }

    fn names(&mut self, what: &str, pid: u32, tid: u32, title: &str, out: &mut Vec<u8>) {
        self.next(out);
        let _ = write!(
            out,
            "{{\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":"
        );
        string(&escaped(title), out);
        out.extend_from_slice(b"}}");
    }

    fn place(&mut self, phase: &str, pid: u32, tid: u32, at: i64, out: &mut Vec<u8>) {
        self.next(out);
        let _ = write!(out, "{{\"ph\":\"{phase}\",\"pid\":{pid},\"tid\":{tid},\"ts\":");
        // some readers drop what is before 0: times are those of CLOCK_MONOTONIC
        micros(self.start_ns.saturating_add_signed(at), out);
    }

    fn arrow(&mut self, phase: &str, pid: u32, tid: u32, at: i64, id: u64, out: &mut Vec<u8>) {
        self.place(phase, pid, tid, at, out);
        // to the slice that begins here, not to the next one
        let bound = if phase == "f" { ",\"bp\":\"e\"" } else { "" };
        let _ = write!(out, "{bound},\"cat\":\"call\",\"name\":\"call\",\"id\":{id}}}");
    }
}

impl Painter for Chrome {
    type Call = Call;

    fn start(&mut self, meta: &Meta, out: &mut Vec<u8>) {
        self.start_ns = meta.clock.start_monotonic_ns;
        for (key, value) in [
            ("tool", serde_json::json!("gpuscope")),
            ("version", serde_json::json!(meta.tool)),
            ("host", serde_json::json!(meta.host)),
            ("command", serde_json::json!(meta.command)),
            ("attach", serde_json::json!(meta.tier)),
            ("start_monotonic_ns", serde_json::json!(meta.clock.start_monotonic_ns)),
            ("start_unix_ns", serde_json::json!(meta.clock.start_unix_ns)),
        ] {
            self.metadata.insert(key.to_owned(), value);
        }
        out.extend_from_slice(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    }

    fn title(&mut self, track: Track, title: &str, out: &mut Vec<u8>) {
        let id = MADE_UP + self.threads.len() as u32;
        self.threads.insert(track, id);
        self.names("thread_name", track.pid(), id, title, out);
    }

    fn name(&mut self, pid: u32, tid: u32, comm: &str, out: &mut Vec<u8>) {
        if pid == tid {
            self.names("process_name", pid, tid, comm, out);
        }
        self.names("thread_name", pid, tid, comm, out);
    }

    fn name_thread(&mut self, pid: u32, tid: u32, name: &str, out: &mut Vec<u8>) {
        self.names("thread_name", pid, tid, name, out);
    }

    fn hold(&mut self, event: &Record<'_>, _flow: Option<u64>, _out: &mut Vec<u8>) -> Call {
        let mut text = Vec::with_capacity(160);
        said(event, &mut text);
        Call {
            pid: event.pid,
            tid: event.tid,
            text,
        }
    }

    fn call(&mut self, call: Call, at: i64, end: Option<i64>, arrows: Arrows<'_>, out: &mut Vec<u8>) {
        let Call { pid, tid, text } = call;
        self.place(if end.is_some() { "X" } else { "i" }, pid, tid, at, out);
        match end {
            Some(end) => {
                out.extend_from_slice(b",\"dur\":");
                micros(end.abs_diff(at), out);
            }
            None => out.extend_from_slice(b",\"s\":\"t\""),
        }
        out.extend_from_slice(&text);
        out.push(b'}');
        // an arrow is bound to the slice around it: behind that in the file
        for flow in arrows.callees.iter().filter(|_| end.is_some()) {
            self.arrow("s", pid, tid, at, flow.id, out);
            self.arrow("f", pid, tid, flow.at, flow.id, out);
        }
        if let Some(id) = arrows.submission {
            self.arrow("s", pid, tid, at, id, out);
        }
    }

    fn span(&mut self, span: &Span<'_>, out: &mut Vec<u8>) {
        let (pid, tid) = (span.track.pid(), self.thread(span.track, out));
        self.place(if span.end.is_some() { "X" } else { "i" }, pid, tid, span.at, out);
        match span.end {
            Some(end) => {
                out.extend_from_slice(b",\"dur\":");
                micros(end.abs_diff(span.at), out);
            }
            None => out.extend_from_slice(if pid == 0 { b",\"s\":\"g\"" } else { b",\"s\":\"t\"" }),
        }
        out.extend_from_slice(b",\"name\":");
        string(&escaped(span.name), out);
        let _ = write!(out, ",\"cat\":\"{}\"", span.category);
        if let Some(args) = span.args {
            out.extend_from_slice(b",\"args\":");
            object_into(args, out);
        }
        out.push(b'}');
        match (span.flow, span.from) {
            (Some(_), Some((caller, at))) => {
                // of its own: an arrow here has one end. Within the call, which may be drawn later
                let id = EXECUTED + self.executed;
                self.executed += 1;
                self.arrow("s", pid, caller, at.saturating_add(1), id, out);
                self.arrow("f", pid, tid, span.at, id, out);
            }
            (Some(flow), None) => self.arrow("f", pid, tid, span.at, flow, out),
            (None, _) => {}
        }
    }

    fn count(&mut self, counter: Counter, at: i64, value: u64, out: &mut Vec<u8>) {
        self.place("C", counter.pid, counter.tid.unwrap_or(counter.pid), at, out);
        out.extend_from_slice(b",\"name\":");
        let thread = counter.tid.map(|tid| format!(" of thread {tid}")).unwrap_or_default();
        let calls = if counter.counted { "calls of " } else { "" };
        string(&escaped(&format!("{calls}{}{thread}", counter.name)), out);
        let unit = match counter.unit().symbol() {
            "" => "value",
            unit => unit,
        };
        let _ = write!(out, ",\"args\":{{\"{unit}\":{value}}}}}");
    }

    fn finish(&mut self, ending: &Ending<'_>, out: &mut Vec<u8>) {
        if let Some(why) = ending.cut {
            self.metadata.insert("cut".to_owned(), serde_json::json!(why));
        }
        let metadata = serde_json::Value::Object(std::mem::take(&mut self.metadata));
        out.extend_from_slice(b"\n],\"otherData\":");
        object_into(&metadata.to_string(), out);
        out.extend_from_slice(b"}\n");
    }
}

/// Name, class and arguments of a call.
fn said(event: &Record<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"name\":");
    string(event.name, out);
    let _ = write!(out, ",\"cat\":\"{}\",\"args\":{{\"layer\":", event.class.category());
    string(event.layer, out);
    let texts = [
        (",\"kernel\":", event.kernel),
        (",\"error\":", event.error.filter(|_| event.result != Some(0))),
        (",\"direction\":", event.direction.map(|direction| direction.name())),
        (",\"host\":", event.host.map(|host| host.name())),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            out.extend_from_slice(key.as_bytes());
            string(text, out);
        }
    }
    if let Some(bytes) = event.bytes {
        let _ = write!(out, ",\"size\":{bytes}");
    }
    if let Some(stream) = event.stream {
        out.extend_from_slice(b",\"stream\":");
        hex(stream, out);
    }
    for (key, json) in [(",\"args\":", event.args), (",\"stack\":", event.stack)] {
        if let Some(json) = json.filter(|json| *json != "{}") {
            out.extend_from_slice(key.as_bytes());
            object_into(json, out);
        }
    }
    out.push(b'}');
}

/// Three decimals: no nanosecond is lost.
fn micros(ns: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(ns / 1000).as_bytes());
    out.push(b'.');
    padded(ns % 1000, 3, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::sample;
    use crate::record::{Encoder, Kind};

    #[test]
    fn a_name_that_the_program_gives_a_thread_stays_whatever_the_system_calls_it_later() {
        let (mut chrome, mut out) = (encoder(), Vec::new());
        let named = Record {
            tid: 8,
            name: "loader\u{1b}[2J",
            ..Record::new(Kind::ThreadName, 5, 7)
        };
        let call = Record {
            tid: 8,
            comm: "pt_main_thread",
            ns: Some(1),
            ..Record::new(Kind::Call, 10, 7)
        };
        [named, call].iter().for_each(|one| chrome.take(one, &mut out));
        let text = String::from_utf8(out).expect("UTF-8");
        let last = text.rfind("thread_name").expect("a name");
        assert!(text[last..].contains("loader\\\\u{1b}[2J"), "{text}");
    }

    #[test]
    fn a_step_is_a_slice_of_a_track_of_its_own() {
        let mut out = Vec::new();
        let mut encoder = encoder();
        let args = Some(r#"{"launches":20,"usual":true}"#);
        encoder.take(
            &Record {
                name: "step 12",
                ns: Some(5_000),
                args,
                ..Record::new(Kind::Step, 1_000, 7)
            },
            &mut out,
        );
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(r#""args":{"name":"steps (inferred)"}"#), "{text}");
        assert!(text.contains(r#""dur":5.000,"name":"step 12","cat":"step""#), "{text}");
    }

    #[test]
    fn chrome_trace_events() {
        let text = sample::written(&mut encoder());
        let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(whole["traceEvents"].is_array() && whole["otherData"]["host"] == "node-7");
        insta::assert_snapshot!(text);
    }
}
