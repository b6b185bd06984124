//! A program finds no memory, and does nothing more: it ends of it.

use crate::catalog::Class;
use crate::findings::cases::Cases;
use crate::findings::evidence::{End, Evidence};
use crate::findings::interner::Id;
use crate::findings::part::Part;
use crate::findings::seen::{OUT_OF_MEMORY, Seen};
use crate::findings::table::{Bounded, Grow, pair};
use crate::findings::{Rule, Wants};
use crate::frame::json::place_of;
use crate::model::finding::Finding;
use crate::record::Kind;
use crate::text::quantity::{bytes, plural};
use std::collections::BTreeMap;

/// Allocations that are remembered until they are given back.
const LIVE: usize = 1 << 16;
/// Lines of the program that are named.
const SITES: usize = 3;

/// Of one process: the allocation that failed last, unless it went on.
#[derive(Debug, Default)]
struct Short {
    asked: u64,
    tries: u64,
    held: u64,
    /// Of the last try.
    evidence: Evidence,
}

/// A program finds no memory, and does nothing more.
#[derive(Debug)]
pub(crate) struct OutOfMemory {
    /// Bytes, and where they were taken.
    live: Bounded<(u32, u64, Id)>,
    cases: Cases<Option<Short>>,
}

impl Default for OutOfMemory {
    fn default() -> OutOfMemory {
        OutOfMemory {
            live: Bounded::new(LIVE),
            cases: Cases::default(),
        }
    }
}

impl OutOfMemory {
    fn fail(&mut self, seen: &Seen<'_>) {
        let Some((_, short)) = self.cases.of(seen) else { return };
        let tries = short.take().map_or(0, |short| short.tries);
        let mut evidence = Evidence::default();
        evidence.add(seen, seen.ns());
        *short = Some(Short {
            asked: seen.event.bytes.unwrap_or(0),
            tries: tries + 1,
            held: seen.process.held,
            evidence,
        });
    }

    fn follow(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        let Some(address) = event.address else { return };
        let key = pair(event.pid, address);
        if seen.part == Part::Free {
            self.live.remove(key);
        } else if let Some(live) = self.live.entry(key) {
            *live = (event.pid, event.bytes.unwrap_or(0), seen.site);
        }
    }

    /// Who holds how much, of a process, most first.
    fn holders(&self, pid: u32, end: &End<'_>) -> String {
        let mut sites: BTreeMap<Id, u64> = BTreeMap::new();
        let live = self.live.iter().map(|(_, live)| live);
        for (_, size, site) in live.filter(|(owner, ..)| *owner == pid) {
            sites.entry(*site).or_default().grow(*size);
        }
        let mut sites: Vec<(Id, u64)> = sites.into_iter().filter(|(site, _)| *site != 0).collect();
        sites.sort_by_key(|(site, size)| (u64::MAX - size, *site));
        let named = sites.iter().take(SITES).filter_map(|(site, size)| {
            let place = place_of(end.interner.site(*site)?)?;
            Some(format!("{} by {place}", bytes(*size)))
        });
        let named: Vec<String> = named.collect();
        match named.is_empty() {
            true => String::new(),
            false => format!(", of it {}", named.join(", ")),
        }
    }
}

impl Rule for OutOfMemory {
    fn name(&self) -> &'static str {
        "out-of-memory"
    }

    fn wants(&self, kind: Kind, class: Class) -> Wants {
        match (kind, class) {
            (Kind::Call, Class::Alloc | Class::Free | Class::Launch) => Wants::Work,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        if event.failed {
            if seen.part == Part::Alloc && event.result == Some(OUT_OF_MEMORY) {
                self.fail(seen);
            }
            return;
        }
        match seen.part {
            // it has found a way without
            Part::Launch => {
                if let Some((_, short)) = self.cases.of(seen) {
                    *short = None;
                }
            }
            _ => self.follow(seen),
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let short = self
            .cases
            .iter()
            .filter_map(|(pid, _, short)| Some((pid, short.as_ref()?)));
        let (pid, short) = short.max_by_key(|(pid, short)| (short.asked, *pid))?;
        let others = self.cases.iter().filter(|(other, ..)| *other != pid).count() as u64;
        let others = match others {
            0 => String::new(),
            others => format!("; {} of this run may hold more", plural(others, "other process")),
        };
        Some(Finding {
            grave: true,
            cost_ns: 0,
            count: short.tries,
            title: format!("Out of memory: {} asked for", bytes(short.asked)),
            what: format!(
                "process {pid} asked for {} of device memory, found none, {} in a row, and launched nothing more; it \
                 held {}{}{others}",
                bytes(short.asked),
                plural(short.tries, "time"),
                bytes(short.held),
                self.holders(pid, end)
            ),
            cure: "need less at once (a smaller batch, activation checkpointing), give back what is held for nothing \
                   (gpuscope leaks names every line), or look who else holds memory of the device (gpuscope top)"
                .to_owned(),
            thresholds: "an allocation that finds no memory, with no launch of its process behind it".to_owned(),
            weakened: end.weakness(&[Class::Alloc, Class::Launch]),
            ..short.evidence.finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, MS, US};

    fn fail(fixture: &mut Fixture, size: u64) {
        fixture.call(Class::Alloc, 100 * US, |event| {
            (event.bytes, event.failed, event.result) = (Some(size), true, Some(OUT_OF_MEMORY));
        });
    }

    fn take(fixture: &mut Fixture, address: u64, line: u64) {
        let stack = format!(r#"[{{"function":"step","file":"/x/train.py","line":{line},"language":"python"}}]"#);
        fixture.call(Class::Alloc, 100 * US, |event| {
            (event.bytes, event.address, event.held) = (Some(1 << 30), Some(address), Some((address + 1) << 30));
            event.stack = Some(Box::leak(stack.into_boxed_str()));
        });
    }

    #[test]
    fn what_was_asked_for_last_and_who_holds_what_is_said() {
        let mut fixture = Fixture::of(OutOfMemory::default());
        (0..3).for_each(|address| take(&mut fixture, address, 7));
        take(&mut fixture, 3, 9);
        fixture.healthy(10);
        fail(&mut fixture, 8 << 30);
        fixture.free(0, MS);
        fail(&mut fixture, 8 << 30);
        fixture.free(1, MS);
        let finding = fixture.finding();
        assert_eq!((finding.count, finding.grave), (2, true));
        assert_eq!(finding.title, "Out of memory: 8.0 GiB asked for");
        assert!(
            finding
                .what
                .contains("held 4.0 GiB, of it 1.0 GiB by train.py:7 step, 1.0 GiB by train.py:9 step"),
            "{}",
            finding.what
        );
    }

    #[test]
    fn who_goes_on_has_found_a_way() {
        let mut fixture = Fixture::of(OutOfMemory::default());
        fail(&mut fixture, 8 << 30);
        fixture.launch();
        assert_eq!(fixture.findings(), []);
    }
}
