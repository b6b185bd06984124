//! What a trace shows: tracks with slices, marks, numbers and arrows. A [`Painter`] draws it in its format.
//!
//! A call is a slice on its thread's track, within that of the call that made it. Where it put work into a stream, a
//! second slice on the track of the stream says so: when the work was given to the stream, not when the GPU did it.

mod painter;
mod ranges;

pub(crate) use painter::{Arrows, Painter, Span, Track};

use super::Map;
use super::nest::{Nest, Over};
use super::sides::Sides;
use super::sums::Sums;
use super::waits::Waits;
use crate::catalog::Class;
use crate::record::{Causes, Encoder, Ending, Kind, Meta, Record, json};
use crate::text::quantity;
use ranges::{Placed, Ranges};

/// A call that is held.
struct Held<C> {
    call: C,
    track: Track,
    category: &'static str,
    returned: bool,
    submission: Option<Submission>,
}

/// What a call gave to a stream.
struct Submission {
    /// The arrow to it.
    flow: u64,
    stream: u64,
    /// What is drawn there.
    name: String,
}

/// Draws rows with `P`.
pub struct Scene<P: Painter> {
    painter: P,
    nest: Nest<Held<P::Call>>,
    sums: Sums,
    /// Of processes that live: since when, and its name.
    lives: Map<u32, (i64, String)>,
    names: Map<(u32, u32), String>,
    /// Of threads, as programs call them: these stay.
    given_names: Map<(u32, u32), String>,
    last: i64,
    next_submission: u64,
    /// Arrows of calls, for what devices do because of them.
    causes: Causes,
    ranges: Ranges,
    waits: Waits,
    overheads: Sides,
    /// Empty between rows; keeps its memory.
    overs: Vec<Over<Held<P::Call>>>,
    /// Memory of names that are drawn.
    spare: Vec<String>,
}

/// Ids of arrows to submissions, apart from those between calls.
const SUBMISSIONS: u64 = 1 << 48;

impl<P: Painter> Scene<P> {
    /// Nothing is drawn yet.
    pub fn new(painter: P) -> Scene<P> {
        Scene {
            painter,
            nest: Nest::new(),
            sums: Sums::default(),
            lives: Map::default(),
            names: Map::default(),
            given_names: Map::default(),
            last: 0,
            next_submission: SUBMISSIONS,
            causes: Causes::default(),
            ranges: Ranges::default(),
            waits: Waits::default(),
            overheads: Sides::default(),
            overs: Vec::new(),
            spare: Vec::new(),
        }
    }

    fn call(&mut self, event: &Record<'_>, out: &mut Vec<u8>) {
        let submission = self.submission(event);
        let Scene {
            painter, nest, overs, ..
        } = self;
        let submits = submission.is_some();
        let hold = |flow| Held {
            call: painter.hold(event, flow, out),
            track: Track::Thread {
                pid: event.pid,
                tid: event.tid,
            },
            category: event.class.category(),
            returned: event.ns.is_some(),
            submission,
        };
        nest.enter(event, submits, hold, |over| overs.push(over));
        self.draw(out);
    }

    /// Draws the calls of one process, or of all, that are not over as far as is known.
    fn leave(&mut self, pid: Option<u32>, out: &mut Vec<u8>) {
        self.nest.leave(pid, |over| self.overs.push(over));
        self.draw(out);
    }

    /// Draws what is over.
    fn draw(&mut self, out: &mut Vec<u8>) {
        let mut overs = std::mem::take(&mut self.overs);
        overs.drain(..).for_each(|over| self.draw_one(over, out));
        self.overs = overs;
    }

    fn draw_one(&mut self, over: Over<Held<P::Call>>, out: &mut Vec<u8>) {
        let Over { at, end, held, .. } = over;
        let end = held.returned.then_some(end.max(at));
        let submission = held.submission.as_ref().filter(|_| !over.submitted_within);
        let arrows = Arrows {
            callees: &over.flows,
            submission: submission.map(|submission| submission.flow),
        };
        self.painter.call(held.call, at, end, arrows, out);
        if let (Some(Submission { flow, stream, name }), Track::Thread { pid, tid }) = (submission, held.track) {
            let span = Span {
                track: Track::Stream {
                    pid,
                    tid,
                    stream: *stream,
                },
                at,
                end,
                name,
                category: held.category,
                flow: Some(*flow),
                from: None,
                args: None,
            };
            self.painter.span(&span, out);
        }
        self.spare.extend(held.submission.map(|submission| submission.name));
    }

    fn submission(&mut self, event: &Record<'_>) -> Option<Submission> {
        let stream = event.stream.filter(|_| gives_work(event))?;
        let mut name = self.spare.pop().unwrap_or_default();
        name.clear();
        match (event.kernel, event.direction) {
            (Some(kernel), _) => name.push_str(kernel),
            (None, Some(direction)) => name.extend(["copy ", direction.name()]),
            (None, None) => name.push_str(event.name),
        }
        let flow = self.next_submission;
        self.next_submission += 1;
        self.causes.note(event, flow);
        self.causes.note_around(event, flow);
        Some(Submission { flow, stream, name })
    }

    fn process(&mut self, event: &Record<'_>, out: &mut Vec<u8>) {
        let pid = event.pid;
        match event.name {
            "exit" => {
                self.leave(Some(pid), out);
                let life = self.lives.remove(&pid);
                let (from, name) = life.unwrap_or((event.at.min(0), event.comm.to_owned()));
                self.life(pid, from, event.at, &name, out);
            }
            "exec" => {
                let life = self.lives.entry(pid).or_insert((event.at, String::new()));
                event.comm.clone_into(&mut life.1);
                self.mark(Track::Life { pid }, event, "exec", out);
            }
            _ => {
                let life = (event.at, event.comm.to_owned());
                self.lives.insert(pid, life);
            }
        }
    }

    fn life(&mut self, pid: u32, from: i64, to: i64, name: &str, out: &mut Vec<u8>) {
        let span = Span {
            track: Track::Life { pid },
            at: from,
            end: Some(to.max(from)),
            name,
            category: "process",
            flow: None,
            from: None,
            args: None,
        };
        self.painter.span(&span, out);
    }

    fn mark(&mut self, track: Track, event: &Record<'_>, name: &str, out: &mut Vec<u8>) {
        let span = Span {
            track,
            at: event.at,
            end: None,
            name,
            category: event.kind.name(),
            flow: None,
            from: None,
            args: event.args,
        };
        self.painter.span(&span, out);
    }

    fn lost(&mut self, event: &Record<'_>, out: &mut Vec<u8>) {
        let args = serde_json::json!({
            "function": event.name, "count": event.count, "within_ns": event.ns.unwrap_or(0),
        });
        let name = format!("{} of {} lost", quantity::plural(event.count, "call"), event.name);
        let args = args.to_string();
        let event = Record {
            args: Some(&args),
            ..*event
        };
        self.mark(Track::Lost, &event, &name, out);
    }

    fn stretch(&mut self, track: Track, name: &str, event: &Record<'_>, out: &mut Vec<u8>) {
        let span = Span {
            track,
            at: event.at,
            end: Some(event.end()),
            name,
            category: event.kind.name(),
            flow: None,
            from: None,
            args: event.args,
        };
        self.painter.span(&span, out);
    }

    fn executed(&mut self, event: &Record<'_>, out: &mut Vec<u8>) {
        let flow = self.causes.of(event);
        let span = Span {
            track: Track::Gpu {
                pid: event.pid,
                device: event.args.and_then(json::device_of_activity).unwrap_or(0),
                stream: event.stream.unwrap_or(0),
            },
            at: event.at,
            end: Some(event.end()),
            name: event.name,
            category: "gpu",
            flow,
            from: event.args.and_then(json::call_of_activity).filter(|_| flow.is_some()),
            args: event.args,
        };
        self.painter.span(&span, out);
    }

    /// One that was measured is of a device, and has a cause; another follows from calls.
    fn idle(&mut self, event: &Record<'_>, out: &mut Vec<u8>) {
        let devices = self.waits.devices(event).filter(|_| !event.name.is_empty());
        let pid = event.pid;
        let Some(devices) = devices else {
            return self.stretch(Track::Idle { pid }, "idle", event, out);
        };
        let args = self.waits.args(event);
        let caused = Record {
            args: Some(&args),
            ..*event
        };
        self.stretch(Track::Waits { pid, devices }, event.name, &caused, out);
    }

    /// Where another one of the process is not over, it lies beside it.
    fn overhead(&mut self, event: &Record<'_>, out: &mut Vec<u8>) {
        let track = Track::Overhead {
            pid: event.pid,
            side: self.overheads.place(event.pid, event.at, event.end()),
        };
        self.stretch(track, event.name, event, out);
    }

    /// A phase as the program calls it, or a moment.
    fn annotated(&mut self, event: &Record<'_>, out: &mut Vec<u8>) {
        let Placed { track, title } = self.ranges.place(event);
        if let Some(title) = title {
            self.painter.title(track, &title, out);
        }
        let span = Span {
            track,
            at: event.at,
            end: event.ns.map(|_| event.end()),
            name: event.name,
            category: "nvtx",
            flow: None,
            from: None,
            args: event.args,
        };
        self.painter.span(&span, out);
    }

    /// Names come with rows, and may change.
    fn meet(&mut self, event: &Record<'_>, out: &mut Vec<u8>) {
        if event.pid == 0 || event.tid == 0 || event.comm.is_empty() {
            return;
        }
        let known = self.names.entry((event.pid, event.tid)).or_default();
        if known != event.comm {
            event.comm.clone_into(known);
            self.painter.name(event.pid, event.tid, event.comm, out);
            if let Some(given) = self.given_names.get(&(event.pid, event.tid)) {
                self.painter.name_thread(event.pid, event.tid, given, out);
            }
        }
    }

    fn name_thread(&mut self, event: &Record<'_>, out: &mut Vec<u8>) {
        self.painter.name_thread(event.pid, event.tid, event.name, out);
        self.given_names.insert((event.pid, event.tid), event.name.to_owned());
    }
}

/// Whether a call puts work into a stream.
fn gives_work(event: &Record<'_>) -> bool {
    let gives = matches!(
        event.class,
        Class::Launch | Class::Copy | Class::Memset | Class::Prefetch
    );
    gives && event.kind == Kind::Call
}

impl<P: Painter> Encoder for Scene<P> {
    fn start(&mut self, meta: &Meta, out: &mut Vec<u8>) {
        self.painter.start(meta, out);
    }

    fn take(&mut self, event: &Record<'_>, out: &mut Vec<u8>) {
        self.last = self.last.max(event.end());
        self.meet(event, out);
        self.waits.learn(event);
        let painter = &mut self.painter;
        self.sums
            .follow(event, |counter, at, value| painter.count(counter, at, value, out));
        match event.kind {
            Kind::Call | Kind::Kernel => self.call(event, out),
            Kind::Open => {
                let name = format!("{} (had not returned)", event.name);
                let (pid, tid) = (event.pid, event.tid);
                self.stretch(Track::Thread { pid, tid }, &name, event, out);
            }
            Kind::Process => self.process(event, out),
            Kind::Lost => self.lost(event, out),
            Kind::Xid => {
                let name = xid_name(event.args).unwrap_or_else(|| event.name.to_owned());
                self.mark(Track::Xid, event, &name, out);
            }
            Kind::Idle | Kind::DeviceIdle => self.idle(event, out),
            Kind::Overhead => self.overhead(event, out),
            Kind::Step => {
                let marked = !event.layer.is_empty();
                self.stretch(Track::Steps { pid: event.pid, marked }, event.name, event, out);
            }
            Kind::Gpu => self.executed(event, out),
            Kind::Range | Kind::Mark => self.annotated(event, out),
            Kind::ThreadName => self.name_thread(event, out),
            // others have no place of their own
            _ => {}
        }
    }

    fn finish(&mut self, ending: &Ending<'_>, out: &mut Vec<u8>) {
        self.leave(None, out);
        let mut alive: Vec<(u32, (i64, String))> = self.lives.drain().collect();
        alive.sort_unstable();
        for (pid, (from, name)) in alive {
            self.life(pid, from, self.last, &name, out);
        }
        if let Some(why) = ending.cut {
            let name = format!("no rows behind this: {why}");
            self.mark(Track::Lost, &Record::new(Kind::Lost, self.last, 0), &name, out);
        }
        self.painter.finish(ending, out);
    }
}

fn xid_name(args: Option<&str>) -> Option<String> {
    let fields: serde_json::Value = serde_json::from_str(args?).ok()?;
    Some(fields.get("name")?.as_str()?.to_owned())
}
