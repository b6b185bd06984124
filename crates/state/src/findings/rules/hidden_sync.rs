//! A value is fetched from the device, and the program waits for it: `.item()`, `print(loss)`, `if tensor > 0`.
//!
//! Where the wait is short the device was nearly done: the host is what limits, and the wait itself is what it loses.
//! Where it is long the device limits, and what it loses is the idle time behind the wait.

use crate::catalog::Class;
use crate::findings::cases::{Phased, Sum as Sums};
use crate::findings::evidence::End;
use crate::findings::part::Part;
use crate::findings::past;
use crate::findings::past::Fault;
use crate::findings::scene::{ITEM_BYTES, ITEM_GAP_NS};
use crate::findings::seen::Seen;
use crate::findings::table::Grow;
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::model::work::Certainty;
use crate::record::Kind;
use crate::text::quantity::{duration, form, plural};

/// Values a second.
const RATE: f64 = 10.0;
const AT_LEAST: u64 = 10;
const PERCENT: u64 = 1;

/// Of a wait, and of the copy before it.
const SHORT_NS: u64 = 100_000;

#[derive(Debug, Default)]
struct Sum {
    items: u64,
    waited_ns: u64,
    short: u64,
    short_ns: u64,
}

impl Sums for Sum {
    fn join(&mut self, other: &Sum) {
        self.items.grow(other.items);
        self.waited_ns.grow(other.waited_ns);
        self.short.grow(other.short);
        self.short_ns.grow(other.short_ns);
    }
}

/// A value is fetched from the device, and the program waits for it.
#[derive(Debug, Default)]
pub(crate) struct HiddenSync(Phased<Sum>);

impl Rule for HiddenSync {
    fn name(&self) -> &'static str {
        "hidden-sync"
    }

    fn wants(&self, kind: Kind, class: Class) -> Wants {
        match kind {
            Kind::Call if matches!(class, Class::Copy | Class::Sync) => Wants::Work,
            Kind::Idle => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        if seen.gap.is_none() && seen.part != Part::Item {
            return;
        }
        let Some((evidence, sum)) = self.0.of(seen) else {
            return;
        };
        let Some(gap) = seen.gap else {
            let ns = seen.waited_ns();
            sum.items += 1;
            sum.waited_ns.grow(ns);
            if ns <= SHORT_NS {
                sum.short += 1;
                sum.short_ns.grow(ns);
                evidence.add(seen, ns);
            }
            return evidence.add_site(seen.site.max(seen.copy.map_or(0, |copy| copy.site)), 1);
        };
        let long = gap.behind.is_some_and(|behind| behind.waited_ns > SHORT_NS);
        if gap.fault == Fault::Item && long {
            evidence.add_gap(seen, gap.ns);
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (evidence, sum) = self.0.costliest(end)?;
        let often = sum.items >= AT_LEAST && end.rate(sum.items) >= RATE;
        if !often || !end.is_share(evidence.ns, PERCENT) {
            return None;
        }
        Some(Finding {
            count: sum.items,
            certainty: match sum.short_ns > evidence.ns / 2 {
                true => Certainty::Measured,
                false => evidence.idle_certainty(end),
            },
            title: format!("A value is fetched and waited for {}", plural(sum.items, "time")),
            what: format!(
                "{} a value of at most {ITEM_BYTES} bytes was fetched and waited for ({:.0}/s, {} in all): {} {} own \
                 time ({}), long ones the idle time behind them ({})",
                plural(sum.items, "time"),
                end.rate(sum.items),
                duration(sum.waited_ns),
                plural(sum.short, "short wait"),
                form(sum.short, "costs its", "cost their"),
                duration(sum.short_ns),
                duration(evidence.ns.saturating_sub(sum.short_ns))
            ),
            cure: "keep the value on the device and fetch it every hundredth step, or copy it without waiting \
                   (non_blocking, pinned memory) and read it a step later"
                .to_owned(),
            thresholds: format!(
                "a copy to the host of at most {ITEM_BYTES} B and a wait on its thread within {}, at least {AT_LEAST} and \
                 {RATE:.0}/s; {PERCENT} % of the time in waits of up to {} and in idle gaps ({} to {}) behind longer ones",
                duration(ITEM_GAP_NS),
                duration(SHORT_NS),
                duration(past::SHORT_NS),
                duration(past::LONG_NS)
            ),
            weakened: end.weakness(&[Class::Copy, Class::Sync]),
            ..evidence.finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::CopyKind;
    use crate::findings::fixture::{Fixture, MS, US};

    fn steps(fixture: &mut Fixture, gap_ns: u64, until_wait_ns: u64, wait_ns: u64) {
        for _ in 0..100 {
            fixture.launch();
            fixture.copy(CopyKind::DtoH, 4, 1);
            fixture.pass(until_wait_ns);
            fixture.call(Class::Sync, wait_ns, |event| event.stream = Some(1));
            fixture.idle(gap_ns);
        }
    }

    #[test]
    fn a_value_for_each_step_costs_the_idle_time_behind_it() {
        let mut fixture = Fixture::of(HiddenSync::default());
        steps(&mut fixture, 300 * US, 10 * US, 2 * MS);
        let finding = fixture.finding();
        assert_eq!((finding.count, finding.cost_ns), (100, 100 * 300 * US));
        assert_eq!(finding.certainty, Certainty::Bound);
        assert_eq!(
            (finding.moments[0].name.as_str(), finding.moments[0].ns),
            ("sync", 2 * MS)
        );
    }

    #[test]
    fn where_the_host_limits_a_value_costs_its_wait_and_the_copy() {
        let mut fixture = Fixture::of(HiddenSync::default());
        steps(&mut fixture, 300 * US, 10 * US, 40 * US);
        let finding = fixture.finding();
        assert_eq!((finding.count, finding.cost_ns), (100, 100 * 45 * US));
        assert_eq!(finding.certainty, Certainty::Measured);
    }

    #[test]
    fn a_wait_much_later_is_not_for_the_value() {
        let mut fixture = Fixture::of(HiddenSync::default());
        steps(&mut fixture, 300 * US, 60 * US, 2 * MS);
        assert_eq!(fixture.findings(), []);
    }

    #[test]
    fn values_that_keep_no_device_waiting_are_none() {
        let mut fixture = Fixture::of(HiddenSync::default());
        steps(&mut fixture, 15 * US, 10 * US, 2 * MS);
        assert_eq!(fixture.findings(), []);
    }
}
