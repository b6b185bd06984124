//! The life of each process, by its launches: start-up, the steady part, the end.
//!
//! A long pause in launching begins another phase. The first phases and the last ones, with few of all launches, are
//! start-up and end: what happens there, and in the pauses beside them, is none of the steady part, of which shares of
//! time are said. What happens between two waits is a step, which [`super::pace`] judges.

use super::load::Load;
use super::pace::{Pace, Verdict};
use super::part::{PROMPT_NS, Part};
use super::past::{Fault, Gap};
use super::seen::{Seen, Stretch};
use super::table::{Bounded, Grow};
use crate::catalog::CopyKind;
use crate::record::Record;
use std::ops::RangeInclusive;

/// Processes that are told apart.
const PROCESSES: usize = 1024;
/// Nothing is launched for so long: what comes then may be another phase.
pub(crate) const PAUSE_NS: u64 = 250_000_000;
/// Of one process; what comes behind as many pauses is one phase.
const PHASES: usize = 64;
/// Of the launches of a process: those of start-up, and those of its end, at most.
pub(crate) const EDGE_PERCENT: u64 = 5;

/// One process.
#[derive(Debug, Default)]
struct Course {
    phases: Vec<Load>,
    pace: Pace,
    /// Outside CUDA since the last wait.
    outside_ns: u64,
    /// Its device has told what it did.
    is_measured: bool,
}

impl Course {
    fn take(&mut self, seen: &Seen<'_>) -> Verdict {
        self.outside_ns.grow(seen.outside_ns);
        match seen.part {
            Part::Launch if !seen.event.failed => self.launch(seen.event),
            Part::Sync | Part::Item | Part::Copy => return self.wait(seen),
            _ => {}
        }
        Verdict::Unproven
    }

    /// Whether nothing is called for so long that what comes behind it, if anything does, is another phase.
    fn is_pause(&self, ns: u64) -> bool {
        ns >= PAUSE_NS && self.phases.len() < PHASES
    }

    fn launch(&mut self, event: &Record<'_>) {
        let pause_ns = |last: &Load| event.at.saturating_sub(last.last);
        let paused = self.phases.last().is_none_or(|last| pause_ns(last) >= PAUSE_NS as i64);
        if paused && self.phases.len() < PHASES {
            self.phases.push(Load::default());
        }
        if let Some(phase) = self.phases.last_mut() {
            phase.launch(event);
        }
        self.pace.launch(event);
    }

    /// A wait, or a copy: what follows from it of the step before.
    fn wait(&mut self, seen: &Seen<'_>) -> Verdict {
        let event = seen.event;
        let is_wait = seen.part != Part::Copy;
        let verdict = match is_wait {
            true => self.pace.wait(event, seen.waited_ns()),
            false => self.pace.copy(event),
        };
        let outside_ns = match verdict {
            Verdict::Ahead => std::mem::take(&mut self.outside_ns),
            Verdict::Behind => {
                self.outside_ns = 0;
                0
            }
            Verdict::Unproven => 0,
        };
        self.reach(event);
        if let Some(phase) = self.phases.last_mut() {
            phase.outside_ns.grow(outside_ns);
            if is_wait {
                phase.waited_ns.grow(seen.waited_ns().saturating_sub(PROMPT_NS));
            }
        }
        verdict
    }

    /// A call that waits lasts until its end.
    fn reach(&mut self, event: &Record<'_>) {
        if let Some(phase) = self.phases.last_mut() {
            // what is waited for long after the last launch is of the end
            if event.at.saturating_sub(phase.last) < PAUSE_NS as i64 {
                phase.until = phase.until.max(event.end());
            }
        }
    }

    /// Its phases without start-up and end. There is always one, where anything was launched.
    fn steady(&self) -> RangeInclusive<usize> {
        let all: u64 = self.phases.iter().map(|phase| phase.launches).sum();
        let mut first = 0;
        let mut last = self.phases.len().saturating_sub(1);
        let is_edge = |launches: u64| launches.saturating_mul(100) <= all.saturating_mul(EDGE_PERCENT);
        let mut launches = 0;
        while first < last && is_edge(launches + self.phases[first].launches) {
            launches += self.phases[first].launches;
            first += 1;
        }
        launches = 0;
        while first < last && is_edge(launches + self.phases[last].launches) {
            launches += self.phases[last].launches;
            last -= 1;
        }
        first..=last
    }

    /// Of its steady part.
    fn load(&self) -> Load {
        let phases = self.phases.get(self.steady()).unwrap_or_default();
        let mut phases = phases.iter();
        let mut load = phases.next().copied().unwrap_or_default();
        phases.for_each(|phase| load.join(phase));
        load.outside_ns.grow(self.outside_ns);
        load.is_measured = self.is_measured;
        load.is_hosts = self.pace.is_hosts(load.last);
        load
    }

    /// The phase that was under way at `at`, or had been last.
    fn phase_at(&self, at: i64) -> usize {
        let begun = |phase: &Load| phase.first.is_some_and(|first| first <= at);
        self.phases.partition_point(begun).saturating_sub(1)
    }

    fn idle(&mut self, event: &Record<'_>, gap: &Gap) -> Stretch {
        let (phase, next) = (self.phase_at(event.at), self.phase_at(event.end()));
        let behind = phase != next || self.is_pause(event.ns.unwrap_or(0));
        if let Some(load) = self.phases.get_mut(phase) {
            let from = event.at.max(load.first.unwrap_or(i64::MAX));
            let ns = u64::try_from(event.end().saturating_sub(from)).unwrap_or(0);
            match gap.fault {
                Fault::Away => load.away_ns.grow(ns),
                // what follows from calls alone has none while work is given and not waited for: that is what rules on launches look at
                Fault::Nobody if gap.measured => {}
                _ if behind => load.pause_idle_ns.grow(ns),
                _ => load.idle_ns.grow(ns),
            }
        }
        stretch(phase, behind)
    }
}

fn stretch(phase: usize, behind: bool) -> Stretch {
    2 * phase as Stretch + Stretch::from(behind)
}

/// The life of each process.
#[derive(Debug)]
pub struct Courses(Bounded<Course>);

impl Default for Courses {
    fn default() -> Courses {
        Courses(Bounded::new(PROCESSES))
    }
}

/// The most that any process has done.
#[derive(Debug, Clone, Copy, Default)]
struct Most {
    launches: u64,
    ran_ns: u64,
}

impl Most {
    /// Whether that is more than a few times as much.
    fn counts(self, load: &Load) -> bool {
        let is_more = |own: u64, most: u64| own.saturating_mul(100) > most.saturating_mul(EDGE_PERCENT);
        is_more(load.launches, self.launches) || is_more(load.ran_ns, self.ran_ns)
    }
}

impl Courses {
    /// A call that counts. Of one that waits: what follows of the step before it; and where in the life of its process
    /// it is, or was what it ends.
    pub fn take(&mut self, seen: &Seen<'_>) -> (Verdict, Stretch) {
        let Some(course) = self.0.entry(u64::from(seen.event.pid)) else {
            return (Verdict::Unproven, 0);
        };
        let before = course.phases.len();
        let verdict = course.take(seen);
        let paused = course.phases.len() > before || course.is_pause(seen.outside_ns);
        let paused = paused && before > 0;
        (verdict, stretch(before.saturating_sub(1), paused))
    }

    /// A call that had not returned by the end, within no other.
    pub(crate) fn hang(&mut self, event: &Record<'_>) {
        if let Some(course) = self.0.get_mut(u64::from(event.pid)) {
            course.reach(event);
        }
    }

    /// Where in its life a process is.
    #[must_use]
    pub(crate) fn stretch(&self, pid: u32) -> Stretch {
        let phases = self.0.get(u64::from(pid)).map_or(0, |course| course.phases.len());
        stretch(phases.saturating_sub(1), false)
    }

    /// Where in the life of a process that time was; `None`: before its first launch.
    #[must_use]
    pub(crate) fn stretch_of(&self, pid: u32, at: i64, until: i64) -> Option<Stretch> {
        let course = self.0.get(u64::from(pid))?;
        let (phase, next) = (course.phase_at(at), course.phase_at(until));
        let load = course
            .phases
            .get(phase)
            .filter(|load| load.first.is_some_and(|first| first <= at))?;
        let paused = phase != next || at.saturating_sub(load.last) >= PAUSE_NS as i64;
        Some(stretch(phase, paused))
    }

    /// When a process has launched first, also if it is gone.
    #[must_use]
    pub fn first(&self, pid: u32) -> Option<i64> {
        let course = self.0.get(u64::from(pid))?;
        course.phases.first().and_then(|phase| phase.first)
    }

    /// A gap, and where in the life of its process it is; what is before the first launch is none of it.
    pub fn idle(&mut self, event: &Record<'_>, gap: &Gap) -> Stretch {
        let course = self.0.get_mut(u64::from(event.pid));
        course.map_or(0, |course| course.idle(event, gap))
    }

    /// The device of a process has told of something that it did.
    pub(crate) fn ran(&mut self, event: &Record<'_>) {
        let Some(course) = self.0.entry(u64::from(event.pid)) else {
            return;
        };
        course.is_measured = true;
        let phase = course.phase_at(event.at);
        if let Some(load) = course
            .phases
            .get_mut(phase)
            .filter(|_| event.direction != Some(CopyKind::HtoH))
        {
            load.ran_ns.grow(event.ns.unwrap_or(0));
        }
    }

    /// Whether idle time of a process is what its device has told.
    #[must_use]
    pub(crate) fn is_measured(&self, pid: u32) -> bool {
        self.0.get(u64::from(pid)).is_some_and(|course| course.is_measured)
    }

    /// Whether that is of the steady part of a process. All of a process is that never launched.
    #[must_use]
    pub(crate) fn is_steady(&self, pid: u32, place: Stretch) -> bool {
        let Some(course) = self.0.get(u64::from(pid)).filter(|course| !course.phases.is_empty()) else {
            return true;
        };
        let steady = course.steady();
        // the pause behind the last phase leads to the end
        (stretch(*steady.start(), false)..=stretch(*steady.end(), false)).contains(&place)
    }

    /// The steady part of the process that launches most.
    #[must_use]
    pub(crate) fn heaviest(&self) -> Load {
        let loads = self.0.iter().map(|(pid, course)| (pid, course.load()));
        let heaviest = loads.max_by_key(|(pid, load)| (load.launches, u64::MAX - pid));
        heaviest.map(|(_, load)| load).unwrap_or_default()
    }

    /// How many processes have launched anything.
    pub(crate) fn launching(&self) -> usize {
        let loads = self.0.iter().map(|(_, course)| course.load());
        loads.filter(|load| load.launches > 0).count()
    }

    /// The steady part of a process; `None`: it has launched nothing.
    #[must_use]
    pub(crate) fn steady_of(&self, pid: u32) -> Option<(i64, i64)> {
        let load = self.0.get(u64::from(pid))?.load();
        load.first.map(|first| (first, load.until))
    }

    /// The most that steady parts of processes have done.
    fn most(&self) -> Most {
        let loads = self.0.iter().map(|(_, course)| course.load());
        loads.fold(Most::default(), |most, load| Most {
            launches: most.launches.max(load.launches),
            ran_ns: most.ran_ns.max(load.ran_ns),
        })
    }

    /// Whose idle time counts: of those that launch, or keep their devices busy, for more than a few times as much as others, and of
    /// those that never launch.
    pub(crate) fn counting(&self) -> impl Fn(u32) -> bool + '_ {
        let most = self.most();
        move |pid| {
            let load = self
                .0
                .get(u64::from(pid))
                .map(Course::load)
                .filter(|load| load.launches > 0);
            load.is_none_or(|load| most.counts(&load))
        }
    }

    /// From the begin of the first steady part to the end of the last, of processes that count. `None`: nothing was launched.
    #[must_use]
    pub fn window(&self) -> Option<(i64, i64)> {
        let most = self.most();
        let loads = self.0.iter().map(|(_, course)| course.load());
        let counting = loads.filter(|load| most.counts(load));
        let windows = counting.filter_map(|load| Some((load.first?, load.until)));
        windows.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }

    /// Whether the device of a process has always kept up, though nobody has waited for it since long.
    #[must_use]
    pub(crate) fn keeps_up_unasked(&self, pid: u32) -> bool {
        let course = self.0.get(u64::from(pid));
        course.is_some_and(|course| {
            course
                .pace
                .keeps_up_unasked(course.phases.last().map_or(0, |phase| phase.last))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::scene::Scene;
    use crate::record::Kind;

    const MS: i64 = 1_000_000;

    fn launches(scene: &mut Scene, at: &mut i64, number: u32) {
        launches_of(scene, 7, at, number);
    }

    fn launches_of(scene: &mut Scene, pid: u32, at: &mut i64, number: u32) {
        for _ in 0..number {
            let event = Record {
                ns: Some(5_000),
                layer: "driver",
                class: crate::catalog::Class::Launch,
                ..Record::new(Kind::Call, *at, pid)
            };
            scene.look_at(&event);
            *at += MS;
        }
    }

    #[test]
    fn who_launches_little_counts_where_that_takes_devices_long() {
        let (mut scene, mut at) = (Scene::default(), 0);
        launches_of(&mut scene, 7, &mut at, 1000);
        launches_of(&mut scene, 8, &mut at, 10);
        launches_of(&mut scene, 9, &mut at, 10);
        for (pid, ns) in [(7, 900), (8, 500), (9, 1)] {
            scene.courses.ran(&Record {
                ns: Some(ns * MS as u64),
                ..Record::new(Kind::Kernel, at, pid)
            });
        }
        assert_eq!(
            scene.courses.window(),
            Some((0, 1009 * MS + 5_000)),
            "9 goes on behind it"
        );
        let counts = scene.courses.counting();
        assert_eq!([7, 8, 9, 10].map(counts), [true, true, false, true]);
    }

    /// Three launches, a pause of two seconds, as many as are said, another one, three more.
    fn life(steady: u32) -> Scene {
        let (mut scene, mut at) = (Scene::default(), 0);
        launches(&mut scene, &mut at, 3);
        at += 2000 * MS;
        launches(&mut scene, &mut at, steady);
        at += 1000 * MS;
        launches(&mut scene, &mut at, 3);
        scene
    }

    #[test]
    fn what_few_launches_are_apart_from_is_start_up_and_end() {
        let scene = life(100);
        assert_eq!(scene.courses.window(), Some((2003 * MS, 2102 * MS + 5_000)));
        assert_eq!(scene.courses.heaviest().launches, 100);
        let steady: Vec<bool> = (0..5).map(|place| scene.courses.is_steady(7, place)).collect();
        assert_eq!(steady, [false, false, true, false, false]);
    }

    #[test]
    fn a_call_that_has_not_returned_lasts_until_the_end_of_the_steady_part() {
        let (mut scene, mut at) = (Scene::default(), 0);
        launches(&mut scene, &mut at, 100);
        let open = Record {
            ns: Some(60_000 * MS as u64),
            ..Record::new(Kind::Open, at, 7)
        };
        scene.look_at(&Record { depth: 1, ..open });
        assert_eq!(
            scene.courses.window(),
            Some((0, 99 * MS + 5_000)),
            "it is within another"
        );
        scene.look_at(&open);
        assert_eq!(scene.courses.window(), Some((0, at + 60_000 * MS)));
    }

    #[test]
    fn a_pause_between_as_many_launches_is_of_the_steady_part() {
        let scene = life(10);
        assert_eq!(scene.courses.heaviest().launches, 16);
        assert!((0..5).all(|place| scene.courses.is_steady(7, place)));
    }

    #[test]
    fn idle_time_of_a_pause_belongs_where_the_pause_does() {
        let mut scene = life(100);
        let idle = |at: i64, until: i64| Record {
            ns: Some((until - at).unsigned_abs()),
            ..Record::new(Kind::Idle, at, 7)
        };
        let mut place = |at: i64, until: i64| scene.look_at(&idle(at, until)).stretch;
        assert_eq!(
            place(3 * MS, 2003 * MS),
            1,
            "the launch that ends it is of the next phase"
        );
        assert_eq!(place(2010 * MS, 2011 * MS), 2);
        assert_eq!(place(2103 * MS, 3103 * MS), 3);
        assert_eq!(scene.courses.heaviest().idle_ns, 1_000_000);
    }

    #[test]
    fn a_process_that_never_launched_is_steady() {
        let courses = Courses::default();
        assert!(courses.is_steady(7, 0));
        assert_eq!((courses.window(), courses.first(7)), (None, None));
    }
}
