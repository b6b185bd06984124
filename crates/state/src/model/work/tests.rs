//! Bounds of idle time against a device whose work is known: threads put work into streams and wait, at random, and
//! are told of as the kernel programs would.

use super::name::StreamName;
use super::streams::Streams;
use super::*;
use crate::catalog::{Catalog, Step, Traffic, WorkPart};
use crate::wire::WorkCall;
use proptest::prelude::*;
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::builtin().unwrap());

const CONTEXT: u64 = 0xc0;

/// What the kernel programs do: which calls they tell of, and with which numbers.
#[derive(Default)]
struct Teller {
    generation: u64,
    streams: HashMap<StreamName, (u64, Option<u64>, u64)>,
    told: Vec<WorkCall>,
    lost: u64,
    /// Between these times what is put into streams, and waits for it, is not seen.
    shed: Option<(u64, u64)>,
    /// Of all calls.
    longest: u64,
}

/// A call under way.
#[derive(Clone, Copy)]
struct Open {
    symbol: &'static str,
    tid: u32,
    entered: u64,
    generation: u64,
    seen: bool,
}

impl Teller {
    fn is_seen(&self, symbol: &str, at: u64) -> bool {
        let (row, _) = row(symbol);
        let sheds = CATALOG.rows[row as usize].class.traffic() == Some(Traffic::Work);
        let within = self.shed.is_some_and(|(since, until)| since <= at && at < until);
        !(sheds && within)
    }

    fn enter(&mut self, symbol: &'static str, tid: u32, entered: u64) -> Open {
        let work = row(symbol).1;
        let seen = self.is_seen(symbol, entered);
        let blocks = work.step == Step::Copy && work.stream.is_none();
        if seen && (blocks || matches!(work.step, Step::Sync | Step::Query | Step::Record)) {
            self.generation += 1;
        }
        let generation = self.generation;
        Open {
            symbol,
            tid,
            entered,
            generation,
            seen,
        }
    }

    fn end(&mut self, open: Open, returned: u64, stream: u64, parts: &[(WorkPart, u64)]) {
        let (row, work) = row(open.symbol);
        self.longest = self.longest.max(returned - open.entered);
        // whoever was in a call when its probe was taken away is not seen to return
        let left = |(since, _)| open.entered < since && since <= returned && !self.is_seen(open.symbol, since);
        if !open.seen || self.shed.is_some_and(left) {
            return;
        }
        let anchor = work.step == Step::Copy && work.stream.is_none()
            || matches!(work.step, Step::Sync | Step::Query | Step::Record);
        let name = StreamName::named(stream, CONTEXT, open.tid);
        let so_far = self.streams.entry(name).or_insert((0, None, 0));
        so_far.0 += u64::from(work.step.submits());
        let known = so_far.1 == Some(self.generation) && so_far.2 <= open.entered;
        if work.step == Step::Submit && known {
            return;
        }
        let mut raw = WorkCall {
            row,
            tgid: 7,
            tid: open.tid,
            entered: open.entered,
            returned,
            context: CONTEXT,
            stream,
            submitted: so_far.0,
            generation: if anchor { open.generation } else { self.generation },
            generation_now: self.generation,
            lost: self.lost,
            copies: 1,
            ..WorkCall::default()
        };
        if work.step == Step::Submit {
            (so_far.1, so_far.2) = (Some(raw.generation), open.entered);
        }
        for (part, value) in parts {
            let index = work.parts.iter().position(|(known, _)| known == part).unwrap();
            raw.part[index] = *value;
        }
        self.told.push(raw);
    }
}

fn row(symbol: &str) -> (u32, &'static crate::catalog::Work) {
    let library = CATALOG.library("driver").unwrap();
    let id = CATALOG.find(library, symbol, None).unwrap();
    (id.0, CATALOG.row(id).unwrap().work.as_ref().unwrap())
}

/// A device that does what CUDA documents, and remembers when it worked.
#[derive(Default)]
struct Device {
    ends: HashMap<u64, u64>,
    events: HashMap<u64, u64>,
    busy: Vec<(u64, u64)>,
}

/// Streams: the default one, two that wait for it, one that does not.
const STREAMS: [u64; 4] = [0, 0x100, 0x200, 0x300];
const FREE: u64 = 0x300;

impl Device {
    fn end(&self, stream: u64) -> u64 {
        self.ends.get(&stream).copied().unwrap_or(0)
    }

    /// When everything is done that a stream waits for.
    fn done(&self, stream: u64) -> u64 {
        let all = STREAMS.iter().filter(|one| **one != FREE).map(|one| self.end(*one));
        match stream {
            0 => all.max().unwrap_or(0),
            FREE => self.end(FREE),
            _ => self.end(stream),
        }
    }

    fn run(&mut self, stream: u64, at: u64, ns: u64) -> u64 {
        let mut start = at.max(self.done(stream));
        if stream != FREE {
            start = start.max(self.end(0));
        }
        self.ends.insert(stream, start + ns);
        self.busy.push((start, start + ns));
        start + ns
    }
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Launch { stream: usize, ns: u64 },
    SyncStream { stream: usize },
    SyncContext,
    QueryStream { stream: usize },
    Record { event: u64, stream: usize },
    SyncEvent { event: u64 },
    Join { event: u64, stream: usize },
    CopyBack { ns: u64 },
    Think { ns: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    let stream = 0usize..STREAMS.len();
    prop_oneof![
        4 => (stream.clone(), 0u64..400).prop_map(|(stream, ns)| Op::Launch { stream, ns }),
        2 => stream.clone().prop_map(|stream| Op::SyncStream { stream }),
        1 => Just(Op::SyncContext),
        1 => stream.clone().prop_map(|stream| Op::QueryStream { stream }),
        1 => (1u64..4, stream.clone()).prop_map(|(event, stream)| Op::Record { event, stream }),
        1 => (1u64..4).prop_map(|event| Op::SyncEvent { event }),
        1 => (1u64..4, stream).prop_map(|(event, stream)| Op::Join { event, stream }),
        1 => (0u64..300).prop_map(|ns| Op::CopyBack { ns }),
        2 => (0u64..1000).prop_map(|ns| Op::Think { ns }),
    ]
}

/// One thing that happens in a thread, at a time: a call begins, takes effect, ends.
struct Run {
    teller: Teller,
    device: Device,
}

struct Thread {
    tid: u32,
    ops: std::vec::IntoIter<Op>,
    phase: Phase,
    at: u64,
}

enum Phase {
    Outside,
    Inside(Op, Open),
    Leaving(Op, Open),
}

impl Run {
    /// The next thing of a thread.
    fn step(&mut self, thread: &mut Thread, pause: u64) -> bool {
        match std::mem::replace(&mut thread.phase, Phase::Outside) {
            Phase::Outside => {
                let Some(op) = thread.ops.next() else { return false };
                if let Op::Think { ns } = op {
                    thread.at += ns;
                    return true;
                }
                let open = self.teller.enter(symbol(op), thread.tid, thread.at);
                thread.at += pause;
                thread.phase = Phase::Inside(op, open);
            }
            Phase::Inside(op, open) => {
                thread.at = self.act(op, thread.at) + pause;
                thread.phase = Phase::Leaving(op, open);
            }
            Phase::Leaving(op, open) => self.leave(op, open, thread.at),
        }
        true
    }

    /// What a call does at `at`; when it can return.
    fn act(&mut self, op: Op, at: u64) -> u64 {
        let device = &mut self.device;
        match op {
            Op::Launch { stream, ns } => {
                device.run(STREAMS[stream], at, ns);
                at
            }
            Op::SyncStream { stream } => at.max(device.done(STREAMS[stream])),
            Op::SyncContext => STREAMS.iter().map(|one| device.end(*one)).fold(at, u64::max),
            Op::Record { event, stream } => {
                device.events.insert(event, device.done(STREAMS[stream]));
                at
            }
            Op::SyncEvent { event } => device.events.get(&event).map_or(at, |end| at.max(*end)),
            Op::Join { event, stream } => {
                let end = device.events.get(&event).copied().unwrap_or(0);
                let joined = device.end(STREAMS[stream]).max(end);
                device.ends.insert(STREAMS[stream], joined);
                at
            }
            Op::CopyBack { ns } => device.run(0, at, ns),
            Op::QueryStream { .. } | Op::Think { .. } => at,
        }
    }

    fn leave(&mut self, op: Op, open: Open, at: u64) {
        let (stream, parts) = match op {
            Op::Launch { stream, .. } | Op::SyncStream { stream } => (STREAMS[stream], vec![]),
            // whatever it says, it says of the time at which it is asked, which is before its return
            Op::QueryStream { stream } if self.device.done(STREAMS[stream]) > open.entered => return,
            Op::QueryStream { stream } => (STREAMS[stream], vec![]),
            Op::Record { event, stream } | Op::Join { event, stream } => {
                (STREAMS[stream], vec![(WorkPart::Event, event)])
            }
            Op::SyncEvent { event } => (0, vec![(WorkPart::Event, event)]),
            _ => (0, vec![]),
        };
        self.teller.end(open, at, stream, &parts);
    }
}

fn symbol(op: Op) -> &'static str {
    match op {
        Op::Launch { .. } => "cuLaunchKernel",
        Op::SyncStream { .. } => "cuStreamSynchronize",
        Op::SyncContext | Op::Think { .. } => "cuCtxSynchronize",
        Op::QueryStream { .. } => "cuStreamQuery",
        Op::Record { .. } => "cuEventRecord",
        Op::SyncEvent { .. } => "cuEventSynchronize",
        Op::Join { .. } => "cuStreamWaitEvent",
        Op::CopyBack { .. } => "cuMemcpyDtoH_v2",
    }
}

fn feed(streams: &mut Streams, raw: &WorkCall) {
    let call = Call::decode(raw, &CATALOG).unwrap();
    streams.note(&call);
    match call.step {
        Step::Submit => streams.submit(&call),
        Step::Copy => streams.copy(&call, true, true),
        Step::Sync | Step::Query => streams.anchor(&call),
        Step::Record => streams.record(&call),
        Step::Wait => streams.wait(&call),
        Step::StreamCreate => streams.create(&call),
        other => panic!("{other:?}"),
    }
}

/// Runs threads against each other: always the one goes on whose time is least.
fn run(threads: Vec<Vec<Op>>, pauses: &[u64]) -> Run {
    run_shed(threads, pauses, None)
}

/// The same, where it is not seen what is put into streams between these times.
fn run_shed(threads: Vec<Vec<Op>>, pauses: &[u64], shed: Option<(u64, u64)>) -> Run {
    let mut run = Run {
        teller: Teller {
            shed,
            ..Teller::default()
        },
        device: Device::default(),
    };
    for (at, stream) in STREAMS.iter().enumerate().skip(1) {
        let open = run.teller.enter("cuStreamCreate", 1, at as u64);
        let parts = [(WorkPart::Key, *stream), (WorkPart::Flags, u64::from(*stream == FREE))];
        run.teller.end(open, at as u64, 0, &parts);
    }
    let mut threads: Vec<Thread> = (1..)
        .zip(threads)
        .map(|(tid, ops)| Thread {
            tid,
            ops: ops.into_iter(),
            phase: Phase::Outside,
            at: 100 + u64::from(tid),
        })
        .collect();
    let mut pauses = pauses.iter().cycle();
    while let Some(next) = threads.iter_mut().min_by_key(|thread| thread.at) {
        let pause = pauses.next().copied().unwrap_or(1);
        if !run.step(next, pause) {
            let tid = next.tid;
            threads.retain(|thread| thread.tid != tid);
        }
    }
    run
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400)))]

    #[test]
    fn what_is_called_idle_never_was_busy(
        threads in proptest::collection::vec(proptest::collection::vec(op(), 0..40), 1..4),
        pauses in proptest::collection::vec(1u64..60, 1..20),
    ) {
        let mut run = run(threads, &pauses);
        run.teller.told.sort_by_key(|call| call.returned);
        let mut streams = Streams::default();
        run.teller.told.iter().for_each(|raw| feed(&mut streams, raw));
        for (since, until) in streams.recent_gaps() {
            for (start, end) in &run.device.busy {
                prop_assert!(*end <= since || until <= *start, "idle {since}..{until}, busy {start}..{end}");
            }
        }
    }

    #[test]
    fn what_is_called_idle_never_was_busy_though_most_of_it_was_left_unseen_for_a_while(
        threads in proptest::collection::vec(proptest::collection::vec(op(), 0..60), 1..4),
        pauses in proptest::collection::vec(1u64..60, 1..20),
        (since, ns) in (0u64..12_000, 0u64..6000),
    ) {
        // calls go on being seen, and are seen again, while those end that were under way
        let longest = run(threads.clone(), &pauses).teller.longest + 1;
        let (gone, back) = (since + longest, since + longest + ns);
        let mut run = run_shed(threads, &pauses, Some((gone, back)));
        run.teller.told.sort_by_key(|call| call.returned);
        let sees_again = back + longest;
        let mut streams = Streams::default();
        let mut changes = [(since, true), (sees_again, false)].into_iter().peekable();
        for raw in &run.teller.told {
            while let Some((at, blind)) = changes.next_if(|(at, _)| *at <= raw.returned) {
                streams.set_blind(blind, at);
            }
            feed(&mut streams, raw);
        }
        for (from, until) in streams.recent_gaps() {
            for (start, end) in &run.device.busy {
                prop_assert!(*end <= from || until <= *start, "idle {from}..{until}, busy {start}..{end}");
            }
        }
    }

    #[test]
    fn what_is_called_idle_while_nobody_calls_never_was_busy(
        threads in proptest::collection::vec(proptest::collection::vec(op(), 0..40), 1..4),
        pauses in proptest::collection::vec(1u64..60, 1..20),
        looks in proptest::collection::vec(0u64..20_000, 1..20),
    ) {
        let mut run = run(threads, &pauses);
        run.teller.told.sort_by_key(|call| call.returned);
        for look in looks {
            let (told, open): (Vec<&WorkCall>, Vec<&WorkCall>) =
                run.teller.told.iter().partition(|call| call.returned <= look);
            let mut streams = Streams::default();
            told.into_iter().for_each(|raw| feed(&mut streams, raw));
            let until = open.iter().map(|call| call.entered).min().unwrap_or(look).min(look);
            let before = streams.window(look).1;
            streams.quiet_until(until, 0);
            let more = streams.window(look).1 - before;
            prop_assert!(more == 0 || streams.is_idle());
            for (start, end) in &run.device.busy {
                let since = until - more;
                prop_assert!(more == 0 || *end <= since || until <= *start, "idle {since}..{until}, busy {start}..{end}");
            }
        }
    }
}

#[test]
fn a_program_that_launches_waits_and_thinks_is_idle_while_it_thinks() {
    let step = [
        Op::Launch { stream: 1, ns: 500 },
        Op::SyncStream { stream: 1 },
        Op::Think { ns: 2000 },
    ];
    let mut streams = Streams::default();
    let run = run(vec![step.repeat(50)], &[1]);
    run.teller.told.iter().for_each(|raw| feed(&mut streams, raw));
    let (window, idle) = streams.window(u64::MAX);
    let busy: u64 = run.device.busy.iter().map(|(start, end)| end - start).sum();
    assert_eq!(busy, 50 * 500);
    let truly_idle = window - busy;
    assert!(
        idle <= truly_idle && idle * 100 >= truly_idle * 95,
        "{idle} of {truly_idle}"
    );
    assert_eq!(streams.gaps().0, 49);
}

#[test]
fn over_a_loss_nothing_is_called_idle() {
    let step = [
        Op::Launch { stream: 0, ns: 500 },
        Op::SyncContext,
        Op::Think { ns: 2000 },
    ];
    let mut told = run(vec![step.repeat(3)], &[1]).teller.told;
    let of_second_step = told.iter().position(|call| call.entered > 2500).unwrap();
    told.drain(of_second_step..of_second_step + 2);
    told[of_second_step..].iter_mut().for_each(|call| call.lost = 2);
    let mut streams = Streams::default();
    told.iter().for_each(|raw| feed(&mut streams, raw));
    assert_eq!(streams.gaps().0, 0, "{:?}", streams.recent_gaps());
    assert_eq!(streams.doubts, 1);
}

#[test]
fn what_was_left_unseen_for_a_while_ends_idle_time_until_everything_was_waited_for() {
    let step = [
        Op::Launch { stream: 0, ns: 500 },
        Op::SyncContext,
        Op::Think { ns: 2000 },
    ];
    let told = run_shed(vec![step.repeat(12)], &[1], Some((7_000, 14_000))).teller.told;
    let mut streams = Streams::default();
    for raw in &told {
        match raw.entered {
            entered if entered < 7_000 => {}
            entered if entered < 19_000 => streams.set_blind(true, 7_000),
            _ if streams.is_blind() => streams.set_blind(false, 19_000),
            _ => {}
        }
        feed(&mut streams, raw);
    }
    let gaps = streams.recent_gaps();
    assert!(gaps.iter().any(|(_, until)| *until < 7_000), "{gaps:?}");
    assert!(gaps.iter().any(|(since, _)| *since > 19_000), "{gaps:?}");
    assert!(
        gaps.iter().all(|(since, until)| *until < 7_100 || *since > 19_000),
        "{gaps:?}"
    );
}

#[test]
fn what_was_put_into_a_stream_before_an_event_may_all_have_been_waiting() {
    let launch = Op::Launch { stream: 1, ns: 500 };
    let event = [Op::Record { event: 1, stream: 1 }, Op::SyncEvent { event: 1 }];
    let step = [vec![launch; 4], event.to_vec()].concat();
    let mut streams = Streams::default();
    let run = run(vec![step.repeat(3)], &[1]);
    run.teller.told.iter().for_each(|raw| feed(&mut streams, raw));
    let depths: Vec<u64> = streams.iter().map(|(_, stream)| stream.depth_at_most).collect();
    assert_eq!(depths.iter().max(), Some(&4), "{depths:?}");
}

#[test]
fn time_before_the_first_work_is_not_idle() {
    let early = [Op::SyncContext, Op::SyncStream { stream: 1 }, Op::Think { ns: 2000 }];
    let work = [Op::Launch { stream: 1, ns: 500 }, Op::SyncContext];
    let mut streams = Streams::default();
    let run = run(vec![[&early[..], &work[..]].concat()], &[1]);
    run.teller.told.iter().for_each(|raw| feed(&mut streams, raw));
    let (window, idle) = streams.window(u64::MAX);
    assert!(window >= 500, "{window}");
    assert_eq!((idle, streams.gaps(), streams.likely_idle_ns()), (0, (0, 0), 0));
}

#[test]
fn a_stream_that_was_given_nothing_for_a_second_is_done_most_likely() {
    let step = [
        Op::Launch { stream: 1, ns: 500 },
        Op::SyncStream { stream: 1 },
        Op::Think { ns: 100_000_000 },
    ];
    let ops = [vec![Op::Launch { stream: 3, ns: 10 }], step.repeat(40)].concat();
    let mut streams = Streams::default();
    run(vec![ops], &[1])
        .teller
        .told
        .iter()
        .for_each(|raw| feed(&mut streams, raw));
    let (window, idle) = streams.window(5_000_000_000);
    assert_eq!(idle, 0, "nobody has waited for the other stream");
    let likely = streams.likely_idle_ns();
    assert!(
        likely > 2_700_000_000 && likely < window - 1_000_000_000,
        "{likely} of {window}"
    );
}

/// Any record at all, also of times and numbers that cannot be.
fn any_record() -> impl Strategy<Value = WorkCall> {
    let number = || prop_oneof![4 => 0u64..6, 1 => any::<u64>()];
    let more = (number(), number(), number(), number(), 0u64..2, any::<bool>());
    (super::sample::any_raw(), more).prop_map(|(raw, (submitted, generation, now, at, lost, far))| WorkCall {
        tgid: 7,
        submitted,
        generation,
        generation_now: now,
        lost,
        entered: if far { at } else { raw.entered },
        ..raw
    })
}

proptest! {
    #[test]
    fn whatever_is_told_can_be_reported(
        records in proptest::collection::vec(any_record(), 0..60),
        late in any::<bool>(),
        now in any::<u64>(),
    ) {
        let mut work = Work::default();
        let origin = if late { Origin::Late } else { Origin::Start };
        work.introduce(7, origin, 1);
        for raw in &records {
            work.apply(&Call::decode(raw, &CATALOG).unwrap());
        }
        work.count(7, StreamName::default(), now);
        let reports = work.report(now);
        prop_assert_eq!(reports.len(), 1);
        work.end(7, now);
        prop_assert_eq!(work.report(now).len(), 1);
        prop_assert!(!work.knows(7));
    }
}

#[test]
fn a_stream_that_is_not_told_apart_is_never_done() {
    const TOLD_APART: u64 = 1 << 16;
    let (mut teller, mut at) = (Teller::default(), 0);
    let mut call = |symbol, stream| {
        let open = teller.enter(symbol, 1, at);
        teller.end(open, at + 1, stream, &[]);
        at += 10;
    };
    (1..=TOLD_APART).for_each(|stream| call("cuLaunchKernel", stream));
    call("cuCtxSynchronize", 0);
    call("cuLaunchKernel", TOLD_APART + 1);
    call("cuStreamSynchronize", 1);
    let mut streams = Streams::default();
    teller.told.iter().for_each(|raw| feed(&mut streams, raw));
    assert!(streams.is_crowded() && streams.is_busy());
    assert_eq!(streams.gaps().0, 1, "that before the last launch");
}

#[test]
fn times_that_nobody_can_mean_add_up_to_the_longest() {
    let mut streams = Streams::default();
    let mut teller = Teller::default();
    for number in 0..1100 {
        let open = teller.enter("cuLaunchKernel", 1, 0);
        teller.end(open, if number < 1090 { 1 } else { u64::MAX }, 0x100, &[]);
        teller.generation += 1;
    }
    teller.told.iter().for_each(|raw| feed(&mut streams, raw));
    let waits: Vec<WorkCall> = (0..3)
        .map(|_| {
            let mut teller = Teller::default();
            let open = teller.enter("cuStreamSynchronize", 1, 0);
            teller.end(open, u64::MAX, 0x100, &[]);
            teller.told[0]
        })
        .collect();
    for raw in &waits {
        let _ = streams.blocked(&Call::decode(raw, &CATALOG).unwrap());
    }
    assert_eq!(streams.pressure().ns, u64::MAX);
    assert_eq!(
        streams.iter().map(|(_, stream)| stream.blocked_ns).max(),
        Some(u64::MAX)
    );
}

#[test]
fn a_program_that_was_there_before_does_not_end_the_one_that_has_become_of_it() {
    let mut work = Work::default();
    work.introduce(7, Origin::Start, 100);
    assert!(!work.is_end_of(7, 90), "told of later than the first call after it");
    assert!(work.is_end_of(7, 100));
    assert!(!work.is_end_of(8, 100));
}
