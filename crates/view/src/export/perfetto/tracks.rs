//! Tracks by number: each is described before anything is drawn on it.

use super::SEQUENCE;
use super::proto::{self, Packet, TrackDescriptor};
use crate::export::Map;
use crate::export::scene::Track;
use crate::export::sums::{Counter, Unit};
use crate::text::quantity::escaped;

/// Those that are described already.
#[derive(Default)]
pub(crate) struct Tracks {
    threads: Map<(u32, u32), u64>,
    processes: Map<u32, u64>,
    others: Map<Track, u64>,
    counters: Map<Counter, u64>,
    last: u64,
}

impl Tracks {
    /// Of a process; with a `name` it is described anew.
    pub(crate) fn process(&mut self, pid: u32, name: Option<&str>, out: &mut Vec<u8>) -> u64 {
        let known = self.processes.get(&pid).copied();
        if let (Some(uuid), None) = (known, name) {
            return uuid;
        }
        let uuid = known.unwrap_or_else(|| self.fresh());
        self.processes.insert(pid, uuid);
        let process = proto::Process {
            pid: i32::try_from(pid).ok(),
            name: name.map(escaped),
        };
        let track = TrackDescriptor {
            uuid: Some(uuid),
            process: Some(process),
            ..TrackDescriptor::default()
        };
        describe(track, out);
        uuid
    }

    /// Of a thread; with a `name` it is described anew.
    pub(crate) fn thread(&mut self, pid: u32, tid: u32, name: Option<&str>, out: &mut Vec<u8>) -> u64 {
        let known = self.threads.get(&(pid, tid)).copied();
        if let (Some(uuid), None) = (known, name) {
            return uuid;
        }
        let parent = self.process(pid, None, out);
        let uuid = known.unwrap_or_else(|| self.fresh());
        self.threads.insert((pid, tid), uuid);
        let thread = proto::Thread {
            pid: i32::try_from(pid).ok(),
            tid: Some(tid.into()),
            name: name.map(escaped),
        };
        let track = TrackDescriptor {
            uuid: Some(uuid),
            parent: Some(parent),
            thread: Some(thread),
            ..TrackDescriptor::default()
        };
        describe(track, out);
        uuid
    }

    /// Of whatever is drawn.
    pub(crate) fn track(&mut self, track: Track, out: &mut Vec<u8>) -> u64 {
        if let Track::Thread { pid, tid } = track {
            return self.thread(pid, tid, None, out);
        }
        if let Some(uuid) = self.others.get(&track) {
            return *uuid;
        }
        self.titled(track, &track.title(), out)
    }

    /// One that is called so; below its thread, where it is of one.
    pub(crate) fn titled(&mut self, track: Track, title: &str, out: &mut Vec<u8>) -> u64 {
        let parent = match track {
            Track::Range { pid, tid, .. } if tid != 0 => Some(self.thread(pid, tid, None, out)),
            _ => (track.pid() != 0).then(|| self.process(track.pid(), None, out)),
        };
        let uuid = self.fresh();
        self.others.insert(track, uuid);
        let track = TrackDescriptor {
            uuid: Some(uuid),
            name: Some(title.to_owned()),
            parent,
            ..TrackDescriptor::default()
        };
        describe(track, out);
        uuid
    }

    /// Of a number.
    pub(crate) fn counter(&mut self, counter: Counter, out: &mut Vec<u8>) -> u64 {
        if let Some(uuid) = self.counters.get(&counter) {
            return *uuid;
        }
        let parent = match (counter.pid, counter.tid) {
            (0, _) => None,
            (pid, Some(tid)) => Some(self.thread(pid, tid, None, out)),
            (pid, None) if counter.counted => Some(self.track(Track::Counted { pid }, out)),
            (pid, None) => Some(self.process(pid, None, out)),
        };
        let uuid = self.fresh();
        let track = TrackDescriptor {
            uuid: Some(uuid),
            name: Some(escaped(&counter.name)),
            parent,
            counter: Some(descriptor(counter.unit())),
            ..TrackDescriptor::default()
        };
        self.counters.insert(counter, uuid);
        describe(track, out);
        uuid
    }

    fn fresh(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

fn describe(track: TrackDescriptor, out: &mut Vec<u8>) {
    let packet = Packet {
        sequence: Some(SEQUENCE),
        track: Some(track),
        ..Packet::default()
    };
    proto::write(&packet, out);
}

fn descriptor(unit: Unit) -> proto::CounterDescriptor {
    let known = match unit {
        Unit::Nanoseconds => Some(1),
        Unit::Count => Some(2),
        Unit::Bytes => Some(3),
        _ => None,
    };
    proto::CounterDescriptor {
        unit: known,
        unit_name: known.is_none().then(|| unit.symbol().to_owned()),
    }
}
