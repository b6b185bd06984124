//! A program that does everything at random, and ends in every way.

use super::account::{assert_accounts, assert_peaks, of_book, paired};
use super::book::Books;
use super::support::{Gpuscope, groups, is_inside, sim_text, ways};
use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

const ENDS: [&str; 6] = ["exit", "leak", "kill", "exec", "reset", "destroy"];
const SEEDS: [u64; 2] = [1, 20_077];
/// All that the program uses; IPC has a program of its own.
const FAMILIES: [&str; 13] = [
    "array",
    "async",
    "device",
    "external",
    "graph",
    "imported",
    "managed",
    "mapped",
    "mipmapped",
    "physical",
    "pinned",
    "registered",
    "reserved",
];

/// One way to run it.
struct Case {
    seed: u64,
    threads: u64,
    devices: u64,
    end: &'static str,
    way: &'static str,
}

impl Case {
    fn name(&self) -> String {
        let Case {
            seed,
            threads,
            devices,
            end,
            way,
        } = self;
        format!("{way}: gpusim memory --seed {seed} --steps 600 --threads {threads} --devices {devices} --end {end}")
    }

    /// Runs it and compares; the families that it used.
    fn check(&self) -> BTreeSet<String> {
        let books = Books::new();
        let (name, gpusim) = (self.name(), sim_text("gpusim"));
        let arguments = name.split(' ').skip(2);
        let command: Vec<&str> = [gpusim.as_str()].into_iter().chain(arguments).collect();
        let gpuscope = books.of(Gpuscope::leaks(&[], &command)).tier(self.way);
        let trace = gpuscope.env("GPUSIM_DEVICES", self.devices.to_string()).finish();
        let expected = if self.end == "kill" { 128 + libc::SIGKILL } else { 0 };
        assert_eq!(trace.code(), expected, "{name}\n{}", trace.stderr);
        let books = books.read();
        assert_accounts(&name, &books, &trace);
        // with more threads two calls may return in another order than the driver did their work
        if self.threads == 1 {
            for (book, process) in paired(&name, &books, &trace) {
                assert_peaks(&name, book, process);
            }
        }
        books.iter().flat_map(of_book).map(|((family, ..), _)| family).collect()
    }
}

/// Another one each time; what fails names it.
fn seed_of_the_clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    now.as_nanos() as u64 % 1_000_000
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn every_family_of_every_process_is_as_in_the_book() {
    let mut seen = BTreeSet::new();
    for end in ENDS {
        for (threads, devices) in [(1, 1), (4, 1), (1, 2), (4, 2)] {
            // with one engine all seeds are enough
            let fixed = SEEDS.into_iter().take(if is_inside() { 0 } else { SEEDS.len() });
            for seed in fixed.chain([seed_of_the_clock()]) {
                let way = groups()[0];
                seen.extend(
                    Case {
                        seed,
                        threads,
                        devices,
                        end,
                        way,
                    }
                    .check(),
                );
            }
        }
    }
    seen.remove("*");
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<&str>>(), FAMILIES);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn so_it_is_in_whatever_way_functions_are_hooked() {
    for way in ways() {
        for (end, threads) in [("leak", 4), ("kill", 1)] {
            let seed = seed_of_the_clock();
            Case {
                seed,
                threads,
                devices: 2,
                end,
                way,
            }
            .check();
        }
    }
}
