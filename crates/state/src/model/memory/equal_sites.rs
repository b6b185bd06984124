//! Call sites that nobody can tell apart: one line of a program may call from several instructions.

use super::account::Account;
use super::report::{self, Report, SiteReport};
use crate::catalog::Family;
use crate::frame::{Frame, Language};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// What a person sees of a frame; the address only where no line tells the place.
type Seen<'a> = (
    &'a str,
    Option<&'a str>,
    Option<&'a str>,
    Result<u32, Option<u64>>,
    Language,
    bool,
);

/// What sites that are merged have in common. A stack that is not known is like no other.
#[derive(PartialEq, Eq, Hash)]
struct Key<'a> {
    family: Family,
    device: i16,
    function: String,
    stack: Result<Vec<Seen<'a>>, u64>,
}

/// Makes one site of those that share family, device, function and named stack. Sums and ages are exact. The peak of
/// an [`Account`] is not: it is the highest that is known to have been reached, and the sum may have been higher.
pub fn merge_equal_sites(report: &mut Report) {
    let stacks = &report.stacks;
    for process in &mut report.processes {
        let mut merged: Vec<SiteReport> = Vec::with_capacity(process.sites.len());
        let mut places = HashMap::new();
        for site in std::mem::take(&mut process.sites) {
            match places.entry(key(&site, stacks)) {
                Entry::Vacant(place) => {
                    place.insert(merged.len());
                    merged.push(site);
                }
                Entry::Occupied(place) => {
                    if let Some(first) = merged.get_mut(*place.get()) {
                        add(first, &site, process.at);
                    }
                }
            }
        }
        report::sort(&mut merged);
        process.sites = merged;
    }
}

fn key<'a>(site: &SiteReport, stacks: &'a HashMap<u64, Vec<Frame>>) -> Key<'a> {
    let stack = stacks.get(&site.site).filter(|stack| !stack.is_empty());
    Key {
        family: site.family,
        device: site.device,
        function: site.function.clone(),
        stack: stack.map(|stack| stack.iter().map(seen).collect()).ok_or(site.site),
    }
}

fn seen(frame: &Frame) -> Seen<'_> {
    (
        &frame.function,
        frame.module.as_deref(),
        frame.file.as_deref(),
        frame.line.ok_or(frame.offset),
        frame.language,
        frame.inlined,
    )
}

fn add(site: &mut SiteReport, other: &SiteReport, at: u64) {
    if other.account.outstanding > 0 {
        let none_before = site.account.outstanding == 0;
        site.newest_ns = if none_before {
            other.newest_ns
        } else {
            site.newest_ns.min(other.newest_ns)
        };
        site.oldest_ns = if none_before {
            other.oldest_ns
        } else {
            site.oldest_ns.max(other.oldest_ns)
        };
    }
    site.peak_bytes = site.peak_bytes.saturating_add(other.peak_bytes);
    site.peak_count += other.peak_count;
    site.account = sum(&site.account, &other.account, at);
}

fn sum(one: &Account, other: &Account, at: u64) -> Account {
    let held_bytes = one.held_bytes.saturating_add(other.held_bytes);
    let peak = if other.peak_bytes > one.peak_bytes { other } else { one };
    // that much is held just now
    let now = held_bytes > peak.peak_bytes;
    Account {
        held_bytes,
        outstanding: one.outstanding + other.outstanding,
        peak_bytes: peak.peak_bytes.max(held_bytes),
        peak_at: if now { at } else { peak.peak_at },
        allocations: one.allocations + other.allocations,
        allocated_bytes: one.allocated_bytes.saturating_add(other.allocated_bytes),
        frees: one.frees + other.frees,
        freed_bytes: one.freed_bytes.saturating_add(other.freed_bytes),
        failed_allocations: one.failed_allocations + other.failed_allocations,
    }
}

#[cfg(test)]
mod tests {
    use super::super::account::Anomalies;
    use super::super::{Origin, ProcessReport};
    use super::*;
    use crate::wire::MemoryLoss;
    use proptest::prelude::*;

    const NOW: u64 = 1000;

    fn python(line: u32) -> Frame {
        Frame {
            function: "step".to_owned(),
            module: None,
            offset: None,
            file: Some("train.py".to_owned()),
            line: Some(line),
            language: Language::Python,
            inlined: false,
        }
    }

    fn native(offset: u64, line: Option<u32>) -> Frame {
        Frame {
            module: Some("app".to_owned()),
            offset: Some(offset),
            file: line.map(|_| "app.c".to_owned()),
            line,
            language: Language::Native,
            ..python(1)
        }
    }

    /// Held, peak and number outstanding; ages are the site's number, and ten more.
    fn site(number: u64, held_bytes: u64, peak_bytes: u64, outstanding: u64) -> SiteReport {
        SiteReport {
            row: 1,
            function: "cuMemAlloc_v2".to_owned(),
            site: number,
            family: Family::Device,
            device: 0,
            account: Account {
                held_bytes,
                outstanding,
                peak_bytes,
                peak_at: number,
                allocations: outstanding + 1,
                allocated_bytes: held_bytes + 7,
                frees: 1,
                freed_bytes: 7,
                failed_allocations: 1,
            },
            peak_bytes,
            peak_count: 1,
            oldest_ns: if outstanding == 0 { 0 } else { number + 10 },
            newest_ns: if outstanding == 0 { 0 } else { number },
        }
    }

    fn merged(sites: Vec<SiteReport>, stacks: Vec<(u64, Vec<Frame>)>) -> Vec<SiteReport> {
        let process = ProcessReport {
            pid: 1,
            comm: String::new(),
            origin: Origin::Start,
            first_at: 0,
            ended_at: None,
            at: NOW,
            devices: Vec::new(),
            host: Account::default(),
            families: Vec::new(),
            sites,
            map: None,
            pools: Vec::new(),
            tensors: None,
            peaks: Vec::new(),
            freed_by: Vec::new(),
            endings: Vec::new(),
            anomalies: Anomalies::default(),
            lost: MemoryLoss::default(),
        };
        let mut report = Report {
            processes: vec![process],
            stacks: stacks.into_iter().collect(),
            ..Report::default()
        };
        merge_equal_sites(&mut report);
        report.processes.remove(0).sites
    }

    #[test]
    fn sites_of_one_line_are_one() {
        let stacks = vec![(20, vec![python(4)]), (21, vec![python(4)]), (22, vec![python(5)])];
        let sites = merged(
            vec![site(20, 100, 300, 2), site(22, 90, 90, 1), site(21, 50, 200, 1)],
            stacks,
        );
        let expected = Account {
            held_bytes: 150,
            outstanding: 3,
            peak_bytes: 300,
            peak_at: 20,
            allocations: 5,
            allocated_bytes: 164,
            frees: 2,
            freed_bytes: 14,
            failed_allocations: 2,
        };
        assert_eq!((sites.len(), sites[0].site, sites[0].account), (2, 20, expected));
        assert_eq!((sites[0].peak_bytes, sites[0].peak_count), (500, 2));
        assert_eq!((sites[0].oldest_ns, sites[0].newest_ns), (31, 20));
        assert_eq!(sites[1], site(22, 90, 90, 1));
    }

    #[test]
    fn what_is_no_longer_held_has_no_age() {
        let stacks = vec![(20, vec![python(4)]), (21, vec![python(4)])];
        let sites = merged(vec![site(20, 0, 300, 0), site(21, 50, 50, 1)], stacks.clone());
        assert_eq!((sites[0].oldest_ns, sites[0].newest_ns), (31, 21));
        let sites = merged(vec![site(21, 50, 50, 1), site(20, 0, 300, 0)], stacks);
        assert_eq!((sites[0].oldest_ns, sites[0].newest_ns), (31, 21));
    }

    #[test]
    fn a_peak_is_never_below_what_is_held() {
        let stacks = vec![(20, vec![python(4)]), (21, vec![python(4)])];
        let sites = merged(vec![site(20, 100, 100, 1), site(21, 50, 60, 1)], stacks);
        assert_eq!((sites[0].account.peak_bytes, sites[0].account.peak_at), (150, NOW));
    }

    #[test]
    fn what_is_merged_grows_in_order() {
        let stacks = vec![(20, vec![python(4)]), (21, vec![python(4)]), (22, vec![python(5)])];
        let sites = merged(
            vec![site(22, 90, 90, 1), site(20, 60, 60, 1), site(21, 50, 50, 1)],
            stacks,
        );
        let order: Vec<u64> = sites.iter().map(|site| site.account.held_bytes).collect();
        assert_eq!(order, [110, 90]);
    }

    #[test]
    fn sites_that_differ_stay_apart() {
        let other_family = SiteReport {
            family: Family::Pinned,
            ..site(20, 1, 1, 1)
        };
        let other_device = SiteReport {
            device: 1,
            ..site(20, 1, 1, 1)
        };
        let other_function = SiteReport {
            function: "cuMemCreate".to_owned(),
            ..site(20, 1, 1, 1)
        };
        let sites = vec![site(20, 1, 1, 1), other_family, other_device, other_function];
        assert_eq!(merged(sites, vec![(20, vec![python(4)])]).len(), 4);
    }

    #[test]
    fn an_address_counts_where_no_line_is_known() {
        let sites = || vec![site(20, 1, 1, 1), site(21, 1, 1, 1)];
        let with = |line| vec![(20, vec![native(0x10, line)]), (21, vec![native(0x20, line)])];
        assert_eq!(merged(sites(), with(Some(4))).len(), 1);
        assert_eq!(merged(sites(), with(None)).len(), 2);
    }

    #[test]
    fn stacks_that_are_not_known_are_like_no_other() {
        let sites = || vec![site(1, 1, 1, 1), site(20, 1, 1, 1), site(21, 1, 1, 1)];
        assert_eq!(merged(sites(), Vec::new()).len(), 3);
        assert_eq!(merged(sites(), vec![(20, Vec::new()), (21, Vec::new())]).len(), 3);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_counted_twice(sites in proptest::collection::vec((0_u64..9, 0_u64..99, 0_u64..3), 0..20)) {
            let stacks = (0..9).map(|number| (number, vec![python(number as u32 % 3)])).collect();
            let sites: Vec<SiteReport> = sites.into_iter().map(|(number, held, count)| site(number, held, held, count)).collect();
            let total = |sites: &[SiteReport]| {
                let add = |sum: Account, site: &SiteReport| super::sum(&sum, &site.account, 0);
                let sum = sites.iter().fold(Account::default(), add);
                let at_peak: u64 = sites.iter().map(|site| site.peak_bytes).sum();
                (sum.held_bytes, sum.outstanding, sum.allocations, sum.allocated_bytes, sum.freed_bytes, at_peak)
            };
            let before = total(&sites);
            let merged = merged(sites, stacks);
            prop_assert!(merged.len() <= 3);
            prop_assert_eq!(total(&merged), before);
        }
    }
}
