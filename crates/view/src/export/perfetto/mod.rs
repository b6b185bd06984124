//! Perfetto's own format (protobuf), which its UI and its trace processor read.

mod event;
mod names;
mod proto;
mod tracks;

use super::scene::{Arrows, Painter, Scene, Span, Track};
use super::sums::Counter;
use crate::record::{Ending, Meta, Record};
use crate::text::object::object;
use crate::text::quantity::escaped;
use event::{BEGIN, COUNTER, END, Event, INSTANT, Value};
use names::{Key, Names};
use proto::Packet;
use tracks::Tracks;

/// One writer, one sequence of packets.
const SEQUENCE: u32 = 1;

/// Draws a scene as Perfetto's packets.
#[derive(Default)]
pub struct Perfetto {
    names: Names,
    tracks: Tracks,
    start_ns: u64,
    /// Memory of events that are written.
    spare: Vec<Event>,
}

/// What a call begins with, and its track.
pub struct Call {
    event: Event,
    track: u64,
}

/// Writes a Perfetto trace.
#[must_use]
pub fn encoder() -> Scene<Perfetto> {
    Scene::new(Perfetto::default())
}

impl Perfetto {
    fn write(&mut self, at: i64, event: &Event, out: &mut Vec<u8>) {
        let at_ns = self.start_ns.saturating_add_signed(at);
        event::write(at_ns, event, self.names.fresh().as_ref(), out);
    }

    fn slice(&mut self, at: i64, end: Option<i64>, call: Call, out: &mut Vec<u8>) {
        let Call { mut event, track } = call;
        self.write(at, &event, out);
        event.clear();
        if let Some(end) = end {
            event.kind(END);
            event.track(track);
            self.write(end, &event, out);
            event.clear();
        }
        self.spare.push(event);
    }

    fn begin(&mut self, category: &'static str) -> Event {
        let mut event = self.spare.pop().unwrap_or_default();
        event.category(self.names.category(category));
        event
    }

    /// `is_over`: its end is known, too.
    fn named(&mut self, mut event: Event, name: &str, is_over: bool, track: u64) -> Call {
        event.kind(if is_over { BEGIN } else { INSTANT });
        match self.names.event(name) {
            Some(iid) => {
                event.name_iid(iid);
                event.track(track);
            }
            None => {
                event.track(track);
                event.name(&escaped(name));
            }
        }
        Call { event, track }
    }

    fn note_text(&mut self, key: Key, text: &str, event: &mut Event) {
        match self.names.text(text) {
            Some(value) => event.note(self.names.key(key), value),
            None => event.note(self.names.key(key), Value::Text(&escaped(text))),
        }
    }

    /// Unless it says nothing. What is no JSON becomes a text.
    fn note_json(&mut self, key: Key, text: &str, event: &mut Event) {
        if matches!(text, "{}" | "[]") {
            return;
        }
        let key = self.names.key(key);
        match object(text) {
            Some(json) => event.note(key, Value::Json(&json)),
            None => event.note(key, Value::Text(&escaped(text))),
        }
    }

    fn notes(&mut self, of: &Record<'_>, event: &mut Event) {
        let texts = [
            (Key::Layer, Some(of.layer)),
            (Key::Kernel, of.kernel),
            (Key::Error, of.error.filter(|_| of.result != Some(0))),
            (Key::Direction, of.direction.map(|direction| direction.name())),
            (Key::Host, of.host.map(|host| host.name())),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                self.note_text(key, text, event);
            }
        }
        if let Some(bytes) = of.bytes {
            event.note(self.names.key(Key::Size), Value::Number(bytes));
        }
        if let Some(stream) = of.stream {
            event.note(self.names.key(Key::Stream), Value::Address(stream));
        }
        for (key, json) in [(Key::Args, of.args), (Key::Stack, of.stack)] {
            if let Some(json) = json {
                self.note_json(key, json, event);
            }
        }
    }
}

impl Painter for Perfetto {
    type Call = Call;

    fn start(&mut self, meta: &Meta, out: &mut Vec<u8>) {
        self.start_ns = meta.clock.start_monotonic_ns;
        let clock = |id, timestamp| proto::Clock {
            id: Some(id),
            timestamp: Some(timestamp),
        };
        let clocks = vec![
            clock(proto::MONOTONIC, meta.clock.start_monotonic_ns),
            clock(proto::REALTIME, meta.clock.start_unix_ns),
        ];
        let packet = Packet {
            clock_snapshot: Some(proto::ClockSnapshot {
                clocks,
                primary: Some(proto::MONOTONIC),
            }),
            sequence: Some(SEQUENCE),
            sequence_flags: Some(proto::STATE_CLEARED),
            defaults: Some(proto::Defaults {
                clock: Some(proto::MONOTONIC),
            }),
            ..Packet::default()
        };
        proto::write(&packet, out);
    }

    fn title(&mut self, track: Track, title: &str, out: &mut Vec<u8>) {
        self.tracks.titled(track, &escaped(title), out);
    }

    fn name(&mut self, pid: u32, tid: u32, comm: &str, out: &mut Vec<u8>) {
        if pid == tid {
            self.tracks.process(pid, Some(comm), out);
        }
        self.tracks.thread(pid, tid, Some(comm), out);
    }

    fn name_thread(&mut self, pid: u32, tid: u32, name: &str, out: &mut Vec<u8>) {
        self.tracks.thread(pid, tid, Some(name), out);
    }

    fn hold(&mut self, of: &Record<'_>, flow: Option<u64>, out: &mut Vec<u8>) -> Call {
        let track = self.tracks.thread(of.pid, of.tid, None, out);
        let mut event = self.begin(of.class.category());
        self.notes(of, &mut event);
        let mut call = self.named(event, of.name, of.ns.is_some(), track);
        if let Some(id) = flow {
            call.event.flow(id);
        }
        call
    }

    fn call(&mut self, mut call: Call, at: i64, end: Option<i64>, arrows: Arrows<'_>, out: &mut Vec<u8>) {
        let callees = arrows.callees.iter().map(|flow| flow.id);
        callees.chain(arrows.submission).for_each(|id| call.event.flow(id));
        self.slice(at, end, call, out);
    }

    fn span(&mut self, span: &Span<'_>, out: &mut Vec<u8>) {
        let track = self.tracks.track(span.track, out);
        let mut event = self.begin(span.category);
        if let Some(args) = span.args {
            self.note_json(Key::Args, args, &mut event);
        }
        let mut call = self.named(event, span.name, span.end.is_some(), track);
        if let Some(id) = span.flow {
            // none is the last: what a device did may follow, and a graph's parts are a chain
            call.event.flow(id);
        }
        self.slice(span.at, span.end, call, out);
    }

    fn count(&mut self, counter: Counter, at: i64, value: u64, out: &mut Vec<u8>) {
        let track = self.tracks.counter(counter, out);
        let mut event = self.spare.pop().unwrap_or_default();
        event.kind(COUNTER);
        event.track(track);
        event.count(value.min(i64::MAX as u64));
        self.write(at, &event, out);
        event.clear();
        self.spare.push(event);
    }

    fn finish(&mut self, _ending: &Ending<'_>, _out: &mut Vec<u8>) {}
}

#[cfg(test)]
mod tests;
