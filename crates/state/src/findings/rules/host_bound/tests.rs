//! Hosts that are away, and what they do there.

use super::*;
use crate::findings::fixture::{Fixture, MS, US};
use crate::findings::seen::NOT_READY;
use crate::model::activity::Why;

/// Two launches, five milliseconds of something else, a wait.
fn steps(fixture: &mut Fixture, number: u64, wait_ns: u64) {
    for _ in 0..number {
        fixture.launch();
        fixture.launch();
        fixture.pass(5 * MS);
        fixture.sync(wait_ns);
    }
}

#[test]
fn what_the_host_does_while_the_device_is_long_done_is_lost() {
    let mut fixture = Fixture::of(HostBound::default());
    steps(&mut fixture, 300, 10 * US);
    let finding = fixture.finding();
    assert_eq!((finding.count, finding.cost_ns), (300, 300 * 5 * MS));
    assert_eq!(finding.certainty, Certainty::Bound);
    let moment = &finding.moments[0];
    assert_eq!((moment.name.as_str(), moment.ns), ("outside CUDA", 5 * MS));
}

/// Steps that sleep where a stack says.
fn sampled_steps(fixture: &mut Fixture, number: u64, stack: &'static str) {
    for _ in 0..number {
        fixture.launch();
        fixture.launch();
        fixture.outside(5 * MS, stack);
        fixture.sync(10 * US);
    }
}

fn places(finding: &Finding) -> Vec<(&str, u64)> {
    let places = finding.places.iter();
    places.map(|placed| (placed.place.as_str(), placed.percent)).collect()
}

#[test]
fn of_measured_gaps_it_is_said_where_the_thread_was_that_ended_them() {
    let mut fixture = Fixture::of(HostBound::default());
    for _ in 0..100 {
        fixture.launch();
        let since = fixture.at.saturating_add_unsigned(20 * US);
        let other = fixture.at;
        fixture.outside(9 * MS, LOGS);
        // the thread that will launch waits for that one
        let now = std::mem::replace(&mut fixture.at, other);
        fixture.tid += 1;
        fixture.outside(9 * MS, LOADS);
        fixture.tid -= 1;
        fixture.at = now;
        fixture.ran_dry(since, Why::HostCode);
    }
    fixture.launch();
    let finding = fixture.finding();
    assert_eq!(places(&finding), [("train.py:20 log", 100)]);
    assert!(finding.what.contains("(of 100 samples)"), "{}", finding.what);
}

const LOADS: &str = r#"[{"function":"sleep","module":"libc.so.6"},{"function":"load_batch","file":"/x/train.py","line":10,"language":"python"}]"#;
const LOGS: &str = r#"[{"function":"log","file":"/x/train.py","line":20,"language":"python"}]"#;

#[test]
fn where_the_host_was_is_said_by_its_shares_of_the_samples() {
    let mut fixture = Fixture::of(HostBound::default());
    fixture.outside(3000 * MS, LOGS); // before anything was launched
    sampled_steps(&mut fixture, 291, LOADS);
    sampled_steps(&mut fixture, 9, LOGS);
    let finding = fixture.finding();
    assert_eq!(
        places(&finding),
        [("train.py:10 load_batch", 97), ("train.py:20 log", 3)]
    );
    assert_eq!(finding.site.as_deref(), Some(LOADS));
    let said = "where it was: 97 % in train.py:10 load_batch, 3 % in train.py:20 log (of 300 samples)";
    assert!(finding.what.ends_with(said), "{}", finding.what);
}

/// The same, where `loads` of these steps load code.
fn compiling(steps: u64, loads: u64) -> Finding {
    compiling_and_away(steps, loads, 0)
}

/// And the host is away for so long at once.
fn compiling_and_away(steps: u64, loads: u64, away: u64) -> Finding {
    let mut fixture = Fixture::of(HostBound::default());
    for step in 0..steps {
        fixture.launch();
        fixture.launch();
        fixture.pass(20 * MS + if step == steps / 2 { away } else { 0 });
        if step % steps.checked_div(loads).unwrap_or(u64::MAX) == 0 {
            fixture.call(Class::Module, 48 * US, |_| {});
        }
        fixture.sync(10 * US);
    }
    fixture.finding()
}

#[test]
fn a_host_that_loads_code_again_and_again_may_be_making_it() {
    let finding = compiling(300, 300);
    assert!(
        finding.title.contains("mostly before it loads code"),
        "{}",
        finding.title
    );
    assert!(
        finding.what.contains("it came back 300 times to load code"),
        "{}",
        finding.what
    );
    assert!(finding.cure.contains("compile"), "{}", finding.cure);
    let sometimes = compiling(300, 100);
    assert!(
        !sometimes.title.contains("code") && sometimes.what.contains("it came back 100 times to load code"),
        "{sometimes:?}"
    );
    assert!(!sometimes.cure.contains("compiled"), "{}", sometimes.cure);
    let once = compiling_and_away(300, 300, 7000 * MS);
    assert!(!once.title.contains("code"), "{once:?}");
    for other in [compiling(300, 0), compiling(300, 3)] {
        assert!(
            !other.title.contains("code") && !other.what.contains("load code"),
            "{other:?}"
        );
    }
}

#[test]
fn code_that_is_loaded_behind_a_small_part_of_the_lost_time_is_not_what_it_is_lost_for() {
    let mut fixture = Fixture::of(HostBound::default());
    for _ in 0..300 {
        fixture.launch();
        fixture.pass(2 * MS);
        fixture.call(Class::Module, 48 * US, |_| {});
        fixture.sync(10 * US);
        fixture.launch();
        fixture.pass(50 * MS);
        fixture.sync(10 * US);
    }
    let finding = fixture.finding();
    assert_eq!(finding.count, 600);
    assert!(
        !finding.title.contains("code") && !finding.cure.contains("compiled"),
        "{finding:?}"
    );
}

#[test]
fn a_host_that_itself_waits_is_told_what_helps_then() {
    let found = |why| {
        let mut fixture = Fixture::of(HostBound::default());
        measured_steps(&mut fixture, 100, 10 * US, why);
        fixture.finding()
    };
    let waits = found(Why::Blocked);
    assert!(
        waits.title.starts_with("The thread that launches waits outside CUDA"),
        "{}",
        waits.title
    );
    assert!(
        waits
            .what
            .ends_with("for 451.0 ms the thread that launches slept, or waited for others"),
        "{}",
        waits.what
    );
    assert!(waits.cure.contains("num_workers"), "{}", waits.cure);
    let works = found(Why::HostCode);
    assert!(
        works.title.starts_with("The host is outside CUDA while"),
        "{}",
        works.title
    );
    assert!(works.cure.contains("in other threads"), "{}", works.cure);
}

#[test]
fn a_host_that_looks_code_up_between_its_launches_is_not_making_it() {
    let mut fixture = Fixture::of(HostBound::default());
    for _ in 0..300 {
        fixture.pass(20 * MS);
        for _ in 0..20 {
            fixture.launch();
            fixture.call(Class::Module, 2 * US, |_| {});
            fixture.launch();
        }
        fixture.pass(20 * MS);
        fixture.sync(10 * US);
    }
    let finding = fixture.finding();
    assert!(!finding.title.contains("code"), "{finding:?}");
    assert!(finding.cure.contains("a step ahead"), "{}", finding.cure);
}

#[test]
fn a_host_that_comes_back_to_look_up_what_it_launches_is_not_making_it() {
    let mut fixture = Fixture::of(HostBound::default());
    for _ in 0..300 {
        fixture.launch();
        fixture.launch();
        fixture.pass(20 * MS);
        fixture.call(Class::Module, 2 * US, |_| {});
        fixture.sync(10 * US);
    }
    let finding = fixture.finding();
    assert!(
        !finding.title.contains("code") && !finding.what.contains("load code"),
        "{finding:?}"
    );
}

#[test]
fn a_place_that_few_samples_saw_is_said_and_does_not_stand_for_the_whole() {
    let site_of = |samples| {
        let mut fixture = Fixture::of(HostBound::default());
        steps(&mut fixture, 300, 10 * US);
        sampled_steps(&mut fixture, samples, LOGS);
        let finding = fixture.finding();
        assert_eq!(places(&finding), [("train.py:20 log", 100)]);
        finding.site
    };
    assert!(site_of(1).is_none());
    assert!(site_of(300).is_some());
}

#[test]
fn where_samples_stand_for_little_of_the_time_that_is_said() {
    let found = |unsampled, sampled| {
        let mut fixture = Fixture::of(HostBound::default());
        steps(&mut fixture, unsampled, 10 * US);
        sampled_steps(&mut fixture, sampled, LOGS);
        fixture.finding()
    };
    let few = found(291, 9);
    let said = "100 % in train.py:20 log (of 9 samples, which stand for 45.0 ms of that time only)";
    assert!(few.what.contains(said), "{}", few.what);
    assert!(few.site.is_none());
    let enough = found(240, 60);
    assert!(enough.what.contains("(of 60 samples)"), "{}", enough.what);
    assert!(enough.site.is_some());
}

#[test]
fn without_samples_that_is_said_and_no_place() {
    let mut fixture = Fixture::of(HostBound::default());
    steps(&mut fixture, 300, 10 * US);
    let finding = fixture.finding();
    assert!(finding.places.is_empty() && finding.site.is_none());
    assert!(
        finding.what.ends_with("what it did there was not sampled"),
        "{}",
        finding.what
    );
}

#[test]
fn a_device_that_is_not_done_when_it_is_asked_was_at_work_until_then() {
    for (answer, found) in [(NOT_READY, 0), (0, 1)] {
        let mut fixture = Fixture::of(HostBound::default());
        for _ in 0..300 {
            (0..20).for_each(|_| fixture.launch());
            for _ in 0..4 {
                fixture.pass(2 * MS);
                fixture.call(Class::Query, US, |event| event.result = Some(answer));
            }
        }
        fixture.sync(10 * US);
        assert_eq!(fixture.findings().len(), found);
    }
}

#[test]
fn beside_a_device_that_is_not_done_the_host_may_do_what_it_likes() {
    let mut fixture = Fixture::of(HostBound::default());
    steps(&mut fixture, 300, 2 * MS);
    assert_eq!(fixture.findings(), []);
}

#[test]
fn a_program_that_never_waits_is_its_hosts_where_its_queue_never_fills() {
    let steps = |steps: u64| {
        let mut fixture = Fixture::of(HostBound::default());
        for _ in 0..steps {
            (0..200).for_each(|_| fixture.launch());
            fixture.pass(5 * MS);
        }
        fixture.findings()
    };
    assert_eq!(steps(51), [], "its queue may have held nearly all");
    let findings = steps(100);
    assert_eq!((findings.len(), findings[0].count), (1, 99));
}

/// A launch of which the device is done after half a millisecond, five milliseconds of something else, a wait.
fn measured_steps(fixture: &mut Fixture, number: u64, wait_ns: u64, why: Why) {
    for _ in 0..number {
        fixture.launch();
        let done = fixture.at.saturating_add_unsigned(500 * US);
        fixture.pass(5 * MS);
        fixture.sync(wait_ns);
        fixture.ran_dry(done, why);
    }
}

#[test]
fn where_the_device_tells_the_time_is_measured_in_which_it_had_nothing_to_do() {
    let mut fixture = Fixture::of(HostBound::default());
    measured_steps(&mut fixture, 300, 10 * US, Why::Blocked);
    let finding = fixture.finding();
    assert_eq!((finding.count, finding.cost_ns), (300, 300 * (4510 * US)));
    assert_eq!(finding.certainty, Certainty::Measured);
    assert!(!finding.what.contains("at most"), "{}", finding.what);
}

#[test]
fn what_is_measured_counts_where_no_wait_proves_it_and_in_one_finding() {
    let mut fixture = Fixture::new(crate::findings::rules::all());
    // each wait takes longer than launches do: calls alone prove nothing
    measured_steps(&mut fixture, 300, 2 * MS, Why::Blocked);
    let rules: Vec<&str> = fixture.findings().iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, ["host-bound"]);
}

#[test]
fn where_records_are_missing_calls_tell_as_before() {
    let mut fixture = Fixture::of(HostBound::default());
    measured_steps(&mut fixture, 300, 10 * US, Why::Blocked);
    fixture.doubt_records();
    let finding = fixture.finding();
    assert_eq!((finding.cost_ns, finding.certainty), (300 * 5 * MS, Certainty::Bound));
}

#[test]
fn start_up_and_end_are_not_counted() {
    let mut fixture = Fixture::of(HostBound::default());
    fixture.launch();
    fixture.pass(3000 * MS);
    (0..1000).for_each(|_| fixture.launch());
    fixture.sync(10 * US);
    fixture.launch();
    fixture.pass(3000 * MS);
    fixture.sync(10 * US);
    steps(&mut fixture, 9, 10 * US);
    assert_eq!(fixture.findings(), []);
}

#[test]
fn where_the_device_has_nothing_idle_gaps_say_so() {
    let mut fixture = Fixture::of(HostBound::default());
    for _ in 0..300 {
        fixture.launch();
        fixture.sync(10 * US);
        fixture.idle(5 * MS);
    }
    assert_eq!(fixture.findings(), []);
}
