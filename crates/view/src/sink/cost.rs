//! What tracing cost, as text and as JSON.

use crate::elf::Cost as Place;
use crate::model::activity::Seen;
use crate::model::cost::{Cost, Hits, Standstill};
use crate::model::summary::Summary;
use crate::text::quantity::{bytes, duration, plural};
use serde_json::{Value, json};

/// Of the time, from which on it is worth a word what getters cost.
const GETTERS_SHARE: f64 = 0.1;

/// The object `cost` of a summary.
#[must_use]
pub fn to_json(cost: &Cost, seconds: f64) -> Value {
    json!({
        "hits": cost.count(true) + cost.count(false),
        "hits_at_entry_only": cost.count(false),
        "ns_per_hit": cost.mean_ns(true),
        "ns_per_hit_at_entry_only": cost.mean_ns(false),
        "by_place": cost.hits.iter().map(hits_json).collect::<Vec<_>>(),
        "records": cost.records.count,
        "ns_per_record": cost.records.ns,
        "standstills": cost.standstill.times,
        "standstill_seconds": cost.standstill.ns as f64 / 1e9,
        "waits": cost.waiting.times,
        "waiting_seconds": cost.waiting.ns as f64 / 1e9,
        "unpriced_hits": cost.unpriced,
        "program_seconds": cost.in_program_ns() as f64 / 1e9,
        "slowdown_percent": cost.slowdown(seconds) * 100.0,
        "tracer_cpu_seconds": cost.cpu_seconds,
        "tracer_rss_bytes": cost.rss_bytes,
    })
}

fn hits_json(hits: &Hits) -> Value {
    let place = match hits.place {
        Place::Emulated => "emulated",
        Place::SingleStepped => "single-stepped",
        Place::Nop5 => "nop5",
    };
    json!({"place": place, "returns": hits.returns, "hits": hits.count, "ns_per_hit": hits.ns})
}

/// What is said first of a run: by how much the program was slowed, and what is not in that.
#[must_use]
pub fn headline_of(summary: &Summary) -> String {
    let headline = headline(&summary.cost, summary.seconds, summary.processes);
    match asked_cupti(summary) {
        true => format!("{headline}; what CUPTI takes is not in that, and is often more (--gpu off: none)"),
        false => headline,
    }
}

/// Whether any program told by CUPTI what its GPU executed.
fn asked_cupti(summary: &Summary) -> bool {
    let mut coverage = summary.gpu.iter().flat_map(|gpu| &gpu.coverage);
    coverage.any(|one| one.seen == Seen::Yes)
}

/// By how much the program was slowed.
fn headline(cost: &Cost, seconds: f64, processes: usize) -> String {
    let all = cost.in_program_ns();
    if all == 0 {
        return "Tracing cost the program nothing".to_owned();
    }
    let whom = match processes {
        0 | 1 => "the program",
        _ => "the busiest process",
    };
    let most = if cost.several_threads { "at most " } else { "" };
    let time = match processes {
        0 | 1 => duration(all),
        _ => format!("{} in all {processes} processes", duration(all)),
    };
    let slowdown = cost.slowdown(seconds);
    if cost.several_threads && slowdown >= 10.0 {
        return format!("Tracing took up to all of the time of {whom} ({time})");
    }
    format!("Tracing slowed {whom} by {most}about {} ({time})", percent(slowdown))
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 0.1 => "0.1 % or less".to_owned(),
        percent if percent < 10.0 => format!("{percent:.1} %"),
        // as good as all of its time
        percent if percent >= 1000.0 => "1,000 % or more".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// The lines of a summary.
#[must_use]
pub fn to_text(summary: &Summary) -> String {
    let cost = &summary.cost;
    let mut text = format!("{}\n", headline_of(summary));
    let parts = parts(cost);
    if !parts.is_empty() {
        text += &format!("  {} (measured here, {})\n", parts.join(" + "), summary.tier);
    }
    if cost.unpriced > 0 {
        text += &format!(
            "  not in it: {} of hooks in the kernel\n",
            plural(cost.unpriced, "pass")
        );
    }
    text += &format!(
        "  gpuscope itself took {:.2} s of CPU and {} of memory\n",
        cost.cpu_seconds,
        bytes(cost.rss_bytes)
    );
    if let Some(hint) = getters_hint(summary) {
        text += &format!("{hint}\n");
    }
    text
}

/// What the time consists of.
fn parts(cost: &Cost) -> Vec<String> {
    let hits = cost.hits.iter().map(|hits| {
        let stepped = match hits.place {
            Place::Emulated => "",
            Place::SingleStepped => " at single-stepped instructions",
            Place::Nop5 => " at nops",
        };
        let entry = if hits.returns { "" } else { " seen at entry only" };
        format!("{}{stepped}{entry} × {:.0} ns", plural(hits.count, "call"), hits.ns)
    });
    let records = (cost.records.count > 0)
        .then(|| format!("{} × {:.0} ns", plural(cost.records.count, "record"), cost.records.ns));
    let still = |standstill: Standstill, where_: &str, what: &str| {
        (standstill.ns > 0).then(|| {
            let times = plural(standstill.times, what);
            format!("{} standing still {where_} {times}", duration(standstill.ns))
        })
    };
    let loads = still(cost.standstill, "at", "library load");
    let waiting = still(
        cost.waiting,
        "until there was room for what happened to memory, in",
        "wait",
    );
    hits.chain(records).chain(loads).chain(waiting).collect()
}

/// What would make tracing much cheaper: said where getters took a good part of the program's time.
#[must_use]
pub fn getters_hint(summary: &Summary) -> Option<String> {
    let cost = &summary.cost;
    let ns = cost.count(false) as f64 * cost.mean_ns(false);
    let is_inside = summary.engine.as_ref().is_some_and(|chosen| chosen.engine == "inside");
    let cure = match is_inside {
        true => "--no-getters leaves them out",
        false => "without --getters they are left out",
    };
    (ns > summary.seconds * 1e9 * GETTERS_SHARE).then(|| {
        format!(
            "hint: {} of the {} that tracing cost the program went into calls that only ask, such as cudaGetDevice: {cure}",
            duration(ns as u64),
            duration(cost.in_program_ns())
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::activity::{Coverage, Report};
    use crate::model::cost::Records;
    use crate::model::summary::Chosen;

    fn cost() -> Cost {
        Cost {
            hits: vec![
                Hits {
                    place: Place::Emulated,
                    returns: true,
                    count: 1_252,
                    ns: 1_564.0,
                },
                Hits {
                    place: Place::SingleStepped,
                    returns: true,
                    count: 100,
                    ns: 11_000.4,
                },
            ],
            records: Records { count: 10, ns: 200.0 },
            standstill: Standstill {
                times: 1,
                ns: 1_439_000,
            },
            busiest_share: 1.0,
            ..Cost::default()
        }
    }

    #[test]
    fn the_first_words_say_by_how_much_the_program_was_slowed() {
        assert_eq!(
            headline(&cost(), 0.0545, 1),
            "Tracing slowed the program by about 9.0 % (4.5 ms)"
        );
        let threads = Cost {
            several_threads: true,
            ..cost()
        };
        assert_eq!(
            headline(&threads, 0.0545, 1),
            "Tracing slowed the program by at most about 9.0 % (4.5 ms)"
        );
        assert_eq!(
            headline(&cost(), 600.0, 3),
            "Tracing slowed the busiest process by about 0.1 % or less (4.5 ms in all 3 processes)"
        );
        assert!(headline(&cost(), 0.0046, 1).contains("by about 1,000 % or more (4.5 ms)"));
        assert_eq!(
            headline(&threads, 0.0046, 1),
            "Tracing took up to all of the time of the program (4.5 ms)"
        );
        assert_eq!(headline(&Cost::default(), 1.0, 1), "Tracing cost the program nothing");
    }

    #[test]
    fn what_cupti_takes_is_said_not_to_be_in_it() {
        let of = |seen| Summary {
            cost: cost(),
            seconds: 0.0545,
            gpu: Some(Report {
                coverage: vec![Coverage {
                    seen,
                    ..Coverage::default()
                }],
                ..Report::default()
            }),
            ..Summary::default()
        };
        let without = "Tracing slowed the program by about 9.0 % (4.5 ms)";
        assert_eq!(headline_of(&of(Seen::Absent)), without);
        assert_eq!(
            headline_of(&of(Seen::Yes)),
            format!("{without}; what CUPTI takes is not in that, and is often more (--gpu off: none)")
        );
    }

    #[test]
    fn who_pays_for_getters_is_told_how_to_do_without_them() {
        let counted = Hits {
            returns: false,
            count: 1_000_000,
            ns: 20.0,
            ..cost().hits[0]
        };
        let hint = |engine: &'static str, hits: &[Hits]| {
            getters_hint(&Summary {
                seconds: 0.1,
                cost: Cost {
                    hits: hits.to_vec(),
                    ..Cost::default()
                },
                engine: Some(Chosen {
                    engine,
                    why: String::new(),
                }),
                ..Summary::default()
            })
        };
        let inside = hint("inside", &[counted]).unwrap();
        assert!(
            inside.ends_with("cudaGetDevice: --no-getters leaves them out"),
            "{inside}"
        );
        let kernel = hint("kernel", &[counted]).unwrap();
        assert!(kernel.ends_with("without --getters they are left out"), "{kernel}");
        assert_eq!(hint("inside", &cost().hits), None);
    }

    #[test]
    fn each_part_of_the_time_is_named_with_its_price() {
        let waited = Cost {
            waiting: Standstill { times: 2, ns: 250_000 },
            ..cost()
        };
        assert_eq!(
            parts(&waited).join(" + "),
            "1,252 calls × 1564 ns + 100 calls at single-stepped instructions × 11000 ns + 10 records × 200 ns + \
             1.4 ms standing still at 1 library load + \
             250.0 µs standing still until there was room for what happened to memory, in 2 waits"
        );
    }
}
