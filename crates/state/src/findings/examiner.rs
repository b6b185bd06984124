//! Hands rows to the rules that want them, and asks all in the end.

use super::devices::Devices;
use super::evidence::End;
use super::rules;
use super::scene::Scene;
use super::table::Grow;
use super::{Rule, Wants};
use crate::catalog::{Catalog, Class};
use crate::model::finding::{Finding, Run};
use crate::record::{Kind, Record, Taker};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Rules that want a row, one bit each.
type Mask = u32;

const CLASSES: usize = Class::ALL.len();

/// Rules whose cost is idle time, or may be.
const REST_ON_IDLE: [&str; 6] = [
    "alloc-churn",
    "hidden-sync",
    "host-bound",
    "idle-gaps",
    "sync-copy",
    "sync-stall",
];

/// Hands rows to the rules that want them.
pub struct Examiner {
    rules: Vec<Box<dyn Rule>>,
    scene: Scene,
    devices: Devices,
    /// By kind and class: of calls that count, and of all.
    work: Vec<Mask>,
    all: Vec<Mask>,
    run: Run,
    first: Option<i64>,
    last: i64,
    /// Until when calls were lost.
    lost_until: Option<i64>,
    /// From when on there are all rows.
    from: i64,
}

impl Default for Examiner {
    fn default() -> Examiner {
        Examiner::of(rules::all())
    }
}

impl Examiner {
    /// Why nobody looks for findings where [`Examiner::saw_calls`] says no.
    pub const SAW_NONE: &str = "no call was seen that they could be about";

    /// With all rules.
    #[must_use]
    pub fn new() -> Examiner {
        Examiner::default()
    }

    /// With these rules, at most 32.
    pub(super) fn of(rules: Vec<Box<dyn Rule>>) -> Examiner {
        let mask = |kind: Kind, class: Class, wish: Wants| {
            let wanting = rules
                .iter()
                .enumerate()
                .filter(|(_, rule)| rule.wants(kind, class) == wish);
            wanting.fold(0, |mask: Mask, (index, _)| mask | 1 << index)
        };
        let table = |wish: Wants| {
            let pairs = Kind::ALL
                .iter()
                .flat_map(|kind| Class::ALL.iter().map(move |class| (*kind, *class)));
            pairs
                .map(|(kind, class)| mask(kind, class, wish))
                .collect::<Vec<Mask>>()
        };
        Examiner {
            work: table(Wants::Work),
            all: table(Wants::All),
            rules,
            scene: Scene::default(),
            devices: Devices::default(),
            run: Run::default(),
            first: None,
            last: 0,
            lost_until: None,
            from: i64::MIN,
        }
    }

    /// From now on it is known that not everything that gives devices work is seen: idle time is inferred.
    pub fn doubt_idleness(&mut self) {
        self.run.blind = true;
    }

    /// Of what devices did some is missing: idle time is that at most.
    pub fn doubt_records(&mut self) {
        self.run.records_missing = true;
    }

    /// Devices were recorded in windows: for which part of the time, `words` say.
    pub fn saw_in_windows(&mut self, words: String) {
        self.doubt_records();
        self.run.measured_part = Some(words);
    }

    /// Rows are whole from `at` on: calls that began before do not make the time longer that shares are of.
    pub fn covers_from(&mut self, at: i64) {
        self.from = at;
    }

    /// Calls that have not returned, by function.
    pub fn did_not_return(&mut self, calls: std::collections::BTreeMap<String, u64>) {
        self.run.unreturned = calls;
    }

    /// What probes have cost the program's calls, about. Loading a library took longer, too, but before its first call.
    pub fn tracing_took(&mut self, ns: u64) {
        self.run.tracing_ns = ns;
    }

    /// Whether there is anything to judge: calls that are only counted come in no row.
    #[must_use]
    pub fn saw_calls(&self) -> bool {
        self.first.is_some()
    }

    /// What is known of the run so far.
    #[must_use]
    pub fn run(&self) -> Run {
        let first = self.first.unwrap_or(self.last);
        let end = self.last.max(self.lost_until.unwrap_or(self.last));
        let (from, until) = self.scene.courses.window().unwrap_or((first, self.last));
        // idle time from before is in no row, though launches may be
        let from = if self.from < until { from.max(self.from) } else { from };
        // whoever still calls so often that calls are lost is at work
        let until = until.saturating_add(end.saturating_sub(self.last));
        Run {
            wall_ns: end.saturating_sub(first).max(0).unsigned_abs(),
            steady_ns: until.saturating_sub(from).unsigned_abs(),
            start_ns: from.saturating_sub(first).unsigned_abs(),
            busy: self.devices.busy(from, until),
            outside_ns: self.outside_ns(),
            idle_ns: self.idle_ns(),
            lost_classes: classes_of(&self.run),
            ..self.run.clone()
        }
    }

    /// When a process was past its start-up and not yet at its end; `None`: it has launched nothing.
    #[must_use]
    pub fn steady_of(&self, pid: u32) -> Option<(i64, i64)> {
        self.scene.courses.steady_of(pid)
    }

    /// As devices told it, where they told all.
    fn idle_ns(&self) -> Option<u64> {
        (self.is_measured() && self.scene.courses.launching() == 1).then(|| self.scene.courses.heaviest().idle_ns)
    }

    fn is_measured(&self) -> bool {
        self.scene.courses.heaviest().is_measured && !self.run.records_missing
    }

    /// Outside CUDA, where nothing tells whether that kept the device waiting.
    fn outside_ns(&self) -> u64 {
        match self.is_measured() {
            true => 0,
            false => self.scene.courses.heaviest().outside_ns,
        }
    }

    /// What is wrong: first what is grave, then by cost.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let run = self.run();
        let end = End {
            run: &run,
            interner: &self.scene.interner,
            pinned: self.scene.bandwidth(),
            load: self.scene.courses.heaviest(),
            courses: &self.scene.courses,
        };
        let concluded = self.rules.iter().filter_map(|rule| rule.conclude(&end));
        let mut findings: Vec<Finding> = concluded.map(|finding| in_windows(finding, &run)).collect();
        findings.sort_by(|a, b| (b.grave, b.cost_ns, a.rule).cmp(&(a.grave, a.cost_ns, b.rule)));
        findings
    }
}

/// What rests on idle time says which part of the time that was measured in, where devices were recorded in windows.
fn in_windows(finding: Finding, run: &Run) -> Finding {
    let part = run
        .measured_part
        .as_ref()
        .filter(|_| REST_ON_IDLE.contains(&finding.rule));
    let Some(part) = part else { return finding };
    let words = format!("idle time is {part}, and else what calls prove: it may be more");
    Finding {
        weakened: Some(match finding.weakened {
            Some(weakness) => format!("{weakness}; {words}"),
            None => words,
        }),
        ..finding
    }
}

/// Of the functions whose calls were lost, as far as the built-in tables have them.
fn classes_of(run: &Run) -> BTreeMap<String, Class> {
    // reading the tables takes longer than most reports: once, and only where something was lost
    static CLASSES: LazyLock<BTreeMap<String, Class>> = LazyLock::new(|| {
        let rows = Catalog::builtin().map(|catalog| catalog.rows).unwrap_or_default();
        rows.into_iter().map(|row| (row.symbol, row.class)).collect()
    });
    let class = |name: &String| Some((name.clone(), *CLASSES.get(name)?));
    run.lost.keys().filter_map(class).collect()
}

impl Taker for Examiner {
    fn take(&mut self, event: &Record<'_>) {
        match event.kind {
            Kind::Lost => {
                let lost = self.run.lost.entry(event.name.to_owned()).or_default();
                lost.grow(event.count);
                self.lost_until = self.lost_until.max(Some(event.end()));
            }
            Kind::Call | Kind::Open | Kind::Kernel => {
                self.first.get_or_insert(event.at.max(self.from));
                self.last = self.last.max(event.end());
            }
            Kind::Sample => self.devices.take(event),
            _ => {}
        }
        let seen = self.scene.look_at(event);
        let place = event.kind as usize * CLASSES + event.class as usize;
        let mut mask = self.all.get(place).copied().unwrap_or(0);
        if seen.counts || event.kind != Kind::Call {
            mask |= self.work.get(place).copied().unwrap_or(0);
        }
        while mask != 0 {
            let index = mask.trailing_zeros() as usize;
            self.rules[index].take(&seen);
            mask &= mask - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;
    use crate::catalog::{CopyKind, HostMemory};
    use proptest::prelude::*;
    use proptest::sample::select;

    #[test]
    fn shares_are_of_the_time_of_which_there_are_all_rows() {
        const MS: i64 = 1_000_000;
        let launch = |at: i64| Record {
            ns: Some(MS as u64),
            layer: "driver",
            class: Class::Launch,
            ..Record::new(Kind::Call, at * MS, 7)
        };
        let steady_ms = |from: Option<i64>| {
            let mut examiner = Examiner::new();
            from.into_iter().for_each(|from| examiner.covers_from(from * MS));
            (900..2000).step_by(10).for_each(|at| examiner.take(&launch(at)));
            examiner.run().steady_ns / MS as u64
        };
        assert_eq!(steady_ms(None), 1091);
        assert_eq!(steady_ms(Some(1000)), 991);
        assert_eq!(steady_ms(Some(3000)), 1091, "there is nothing else");
    }

    #[test]
    fn a_run_without_evidence_has_no_findings() {
        let mut fixture = Fixture::new(rules::all());
        fixture.healthy(2000);
        assert_eq!(fixture.findings(), []);
        assert_eq!(Examiner::new().findings(), []);
    }

    fn any_number() -> impl Strategy<Value = u64> {
        prop_oneof![3 => 0u64..3, 3 => 0u64..100_000_000, 1 => any::<u64>()]
    }

    fn any_row() -> impl Strategy<Value = Record<'static>> {
        let kind = (
            select(Kind::ALL),
            select(Class::ALL),
            prop_oneof![4 => 0i64..3_000_000_000, 1 => any::<i64>()],
        );
        let times = (
            proptest::option::of(any_number()),
            any_number(),
            any::<bool>(),
            any::<bool>(),
            0u8..2,
        );
        let memory = proptest::array::uniform4(proptest::option::of(any_number()));
        let names = select(&["driver", "runtime", "thread.runnable_ns", "memory.held", "exit", "x"][..]);
        let copy = (
            select(&CopyKind::ALL[..]),
            select(&[HostMemory::Pinned, HostMemory::Pageable][..]),
            0u32..3,
        );
        (kind, times, memory, [names.clone(), names], copy).prop_map(|(kind, times, memory, names, copy)| Record {
            class: kind.1,
            ns: times.0,
            count: times.1,
            failed: times.2,
            blocking: times.3,
            depth: times.4,
            result: memory[0].map(|code| code as i64),
            bytes: memory[1],
            held: memory[2],
            address: memory[3],
            layer: names[0],
            name: names[1],
            direction: Some(copy.0),
            host: Some(copy.1),
            stack: Some("[]"),
            tid: copy.2,
            ..Record::new(kind.0, kind.2, copy.2)
        })
    }

    /// `1 gaps`, but not `thread 1 was`.
    fn says_one_of_many(what: &str) -> bool {
        let words: Vec<&str> = what.split(' ').collect();
        let is_many = |word: &str| word.ends_with('s') && !["ns", "µs", "ms", "s", "was"].contains(&word);
        words.windows(2).any(|pair| pair[0] == "1" && is_many(pair[1]))
    }

    proptest! {
        #[test]
        fn any_rows_are_judged(rows in proptest::collection::vec(any_row(), 0..400)) {
            let mut examiner = Examiner::new();
            rows.iter().for_each(|row| examiner.take(row));
            let (run, findings) = (examiner.run(), examiner.findings());
            prop_assert!(findings.iter().all(|finding| (0.0..=1.0).contains(&finding.share(&run))));
            prop_assert_eq!(findings.iter().find(|finding| says_one_of_many(&finding.what)), None);
        }
    }

    #[test]
    fn each_rule_has_a_bit_of_its_own_and_a_name() {
        let rules = rules::all();
        assert!(rules.len() <= Mask::BITS as usize);
        let names: Vec<&str> = rules.iter().map(|rule| rule.name()).collect();
        assert_eq!(names, rules::NAMES);
    }

    #[test]
    fn the_run_goes_on_until_its_last_calls_were_lost() {
        let mut examiner = Examiner::of(Vec::new());
        for at in [1_000, 3_000] {
            examiner.take(&Record {
                ns: Some(500),
                class: Class::Launch,
                ..Record::new(Kind::Call, at, 7)
            });
        }
        for (until, wall_ns) in [(3_400, 2_500), (9_000, 8_000)] {
            examiner.take(&Record::lost("late", 3, 0, until));
            let run = examiner.run();
            assert_eq!(run.wall_ns, wall_ns);
            assert_eq!(run.start_ns + run.steady_ns, wall_ns);
        }
    }

    #[test]
    fn lost_calls_are_counted_by_function_with_their_class() {
        let mut examiner = Examiner::new();
        for _ in 0..2 {
            let name = "cuMemAlloc_v2";
            examiner.take(&Record {
                name,
                count: 4,
                ..Record::new(Kind::Lost, 0, 7)
            });
        }
        let run = examiner.run();
        assert_eq!(
            (run.lost["cuMemAlloc_v2"], run.lost_classes["cuMemAlloc_v2"]),
            (8, Class::Alloc)
        );
        assert!(
            run.weakness(|class| class == Class::Alloc)
                .unwrap()
                .starts_with("8 calls")
        );
        assert_eq!(run.weakness(|class| class == Class::Copy), None);
        let one = Run {
            lost: [("x".to_owned(), 1)].into(),
            ..Run::default()
        };
        assert!(
            one.weakness(|_| true)
                .unwrap()
                .starts_with("1 call that it may rest on has no row:")
        );
    }
}
