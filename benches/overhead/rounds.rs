//! What one call of a hooked function costs more, by kind of hook: short bursts in turn, each right after one of its
//! baseline, each round in another order.

use crate::Folder;
use crate::hammer::{Burst, Hammer};
use crate::report::Table;
use crate::tracer::{self, Tracer};
use anyhow::Result;
use gpuscope::engine::Hooks;
use std::path::PathBuf;
use std::time::Duration;

/// Or what OVERHEAD_ROUNDS says.
const ROUNDS: usize = 41;
const CALLS: u64 = 10_000;
/// bpftrace prints some 50,000 lines a second.
const PRINTED_CALLS: u64 = 2_000;
/// Lets a reader finish what the burst before has left.
const BETWEEN: Duration = Duration::from_millis(15);

const COPY: &str = "cudaMemcpyAsync";
const ENTRY_ONLY: &str = "cudaBenchEntryOnly";

/// What a row's cost is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Against {
    Pair,
    Entry,
}

/// One row of the table.
struct Contender {
    name: &'static str,
    function: &'static str,
    calls: u64,
    against: Against,
    target: Option<f64>,
    hammer: Hammer,
    tracer: Option<Tracer>,
    /// Where the gpuscope that has started the hammer puts its summary.
    words: Option<PathBuf>,
    _links: Hooks,
    ns: Vec<f64>,
    /// Of the baseline, right before each.
    base_ns: Vec<f64>,
}

/// Runs all rounds.
///
/// # Errors
/// A tracer does not start, or saw other calls than were made.
pub fn run(folder: &Folder) -> Result<Vec<Table>> {
    let session = tracer::empty_session()?;
    let mut all = contenders(folder, &session)?;
    for contender in &mut all {
        strike(contender)?;
    }
    let mut order = Order::new(all.len());
    for _ in 0..rounds(ROUNDS) {
        for index in order.shuffled() {
            let base = base_of(index, &all);
            let base = strike(&mut all[base])?;
            let ns = strike(&mut all[index])?;
            all[index].ns.push(ns);
            all[index].base_ns.push(base);
            std::thread::sleep(BETWEEN);
        }
    }
    Ok(vec![table(all)?])
}

/// How many rounds, where so many are usual.
pub fn rounds(usual: usize) -> usize {
    let asked = std::env::var(crate::ROUNDS_VARIABLE).ok();
    asked.and_then(|word| word.parse().ok()).unwrap_or(usual)
}

/// The row of the empty probe that a row is compared with.
fn base_of(index: usize, all: &[Contender]) -> usize {
    match (index, all[index].against) {
        (2, _) | (_, Against::Entry) => 2,
        _ => 1,
    }
}

fn strike(contender: &mut Contender) -> Result<f64> {
    let burst = Burst {
        function: contender.function,
        calls: contender.calls,
        threads: 1,
        rate: 0,
    };
    Ok(contender.hammer.strike(burst)?.ns_per_call)
}

fn contenders(folder: &Folder, session: &gpuscope::probe::Session) -> Result<Vec<Contender>> {
    let mut all = Vec::new();
    let mut empty = |name, entry_only, attach: bool| -> Result<()> {
        let mut contender = bare(folder, all.len(), name)?;
        if attach {
            contender._links = tracer::attach_empty(session, &contender.hammer, COPY, entry_only)?;
        }
        all.push(contender);
        Ok(())
    };
    empty("no probe", false, false)?;
    empty("empty probe, entry and return", false, true)?;
    empty("empty probe, entry", true, true)?;
    empty("empty probe, entry and return, once more: the noise", false, true)?;
    for (name, function, options, against, target) in OURS {
        let mut contender = bare(folder, all.len(), name)?;
        (contender.function, contender.against, contender.target) = (function, *against, Some(*target));
        let pid = contender.hammer.pid().to_string();
        let mut words = vec!["-p", pid.as_str(), "--filter", COPY, "--filter", function];
        words.extend(*options);
        contender.tracer = Some(Tracer::gpuscope(folder, &format!("rounds{}", all.len()), &words)?);
        all.push(contender);
    }
    for (name, function, options, against, target) in INSIDE {
        let mut words = vec!["--filter", COPY, "--filter", function];
        words.extend(*options);
        let mut contender = bare(folder, all.len(), name)?;
        let (hammer, summary) = Hammer::inside(folder, &format!("inside{}", all.len()), &words)?;
        (contender.hammer, contender.words) = (hammer, Some(summary));
        (contender.function, contender.against, contender.target) = (function, *against, Some(*target));
        all.push(contender);
    }
    let mut standing_by = bare(folder, all.len(), "gpuscope preload, nobody looks: cudaMemcpyAsync")?;
    standing_by.hammer = Hammer::standing_by(folder, &format!("standby{}", all.len()))?;
    all.push(standing_by);
    for (name, program, against, calls) in BPFTRACE.iter().filter(|_| tracer::has_bpftrace()) {
        let mut contender = bare(folder, all.len(), name)?;
        (contender.against, contender.calls) = (*against, *calls);
        let program = program.replace("FUNCTION", &format!("{}:{COPY}", contender.hammer.library.display()));
        contender.tracer = Some(Tracer::bpftrace(folder, &format!("rounds{}", all.len()), &program)?);
        all.push(contender);
    }
    Ok(all)
}

type Ours = (&'static str, &'static str, &'static [&'static str], Against, f64);

const JSONL: &[&str] = &["-o", "/dev/null", "--format", "jsonl"];
const TEXT: &[&str] = &["-o", "/dev/null", "--format", "text"];
const QUIET: &[&str] = &["-q", "--filter", "*"];

const OURS: &[Ours] = &[
    (
        "gpuscope, one event a call, JSON lines: cudaMemcpyAsync (5 arguments)",
        COPY,
        JSONL,
        Against::Pair,
        1.25,
    ),
    ("gpuscope, the same as text", COPY, TEXT, Against::Pair, 1.25),
    (
        "gpuscope, JSON lines: cudaLaunchKernel (2 arguments on the stack)",
        "cudaLaunchKernel",
        JSONL,
        Against::Pair,
        1.25,
    ),
    (
        "gpuscope, JSON lines: cudaMalloc (reads the address it gave)",
        "cudaMalloc",
        JSONL,
        Against::Pair,
        1.25,
    ),
    (
        "gpuscope -q, counting: cudaMemcpyAsync (with bytes by direction)",
        COPY,
        QUIET,
        Against::Pair,
        1.15,
    ),
    (
        "gpuscope -q, counting: cudaLaunchKernel",
        "cudaLaunchKernel",
        QUIET,
        Against::Pair,
        1.15,
    ),
    (
        "gpuscope, entry only, JSON lines: 6 raw arguments",
        ENTRY_ONLY,
        JSONL,
        Against::Entry,
        1.2,
    ),
    (
        "gpuscope -q, entry only, counting",
        ENTRY_ONLY,
        QUIET,
        Against::Entry,
        1.2,
    ),
];

const INSIDE: &[Ours] = &[
    (
        "gpuscope inside, one event a call, JSON lines: cudaMemcpyAsync (5 arguments)",
        COPY,
        JSONL,
        Against::Pair,
        0.1,
    ),
    (
        "gpuscope inside, JSON lines: cudaLaunchKernel (2 arguments on the stack)",
        "cudaLaunchKernel",
        JSONL,
        Against::Pair,
        0.1,
    ),
    (
        "gpuscope inside -q, counting: cudaMemcpyAsync (with bytes by direction)",
        COPY,
        QUIET,
        Against::Pair,
        0.1,
    ),
    (
        "gpuscope inside -q, entry only, counting",
        ENTRY_ONLY,
        QUIET,
        Against::Pair,
        0.04,
    ),
];

const BPFTRACE: &[(&str, &str, Against, u64)] = &[
    (
        "bpftrace, counting at entry",
        "uprobe:FUNCTION { @calls = count(); }",
        Against::Entry,
        CALLS,
    ),
    (
        "bpftrace, histogram of durations",
        "uprobe:FUNCTION { @start[tid] = nsecs; } uretprobe:FUNCTION /@start[tid]/ \
         { @ns = hist(nsecs - @start[tid]); delete(@start[tid]); }",
        Against::Pair,
        CALLS,
    ),
    (
        "bpftrace, printing a line a call",
        "uprobe:FUNCTION { @start[tid] = nsecs; @size[tid] = arg2; } uretprobe:FUNCTION /@start[tid]/ \
         { printf(\"%d %d %d %d\\n\", pid, nsecs - @start[tid], @size[tid], retval); delete(@start[tid]); delete(@size[tid]); }",
        Against::Pair,
        PRINTED_CALLS,
    ),
];

fn bare(folder: &Folder, number: usize, name: &'static str) -> Result<Contender> {
    Ok(Contender {
        name,
        function: COPY,
        calls: CALLS,
        against: Against::Pair,
        target: None,
        hammer: Hammer::start(folder, &format!("rounds{number}"))?,
        tracer: None,
        words: None,
        _links: Vec::new(),
        ns: Vec::new(),
        base_ns: Vec::new(),
    })
}

fn table(all: Vec<Contender>) -> Result<Table> {
    let none = middle(&all[0].ns);
    let rows = all
        .into_iter()
        .map(|contender| row(contender, none))
        .collect::<Result<_>>()?;
    Ok(Table {
        title: "Added to one call of a hooked function".to_owned(),
        columns: vec![
            "hook",
            "CPU ns a call, median (min–max)",
            "added ns",
            "of an empty probe (min–max)",
            "target",
            "events lost",
        ],
        rows,
        note: format!(
            "{} rounds in another order each; a row's burst is {CALLS} calls ({PRINTED_CALLS} when printing) of one pinned \
             thread, right after an equal burst of its baseline, with which its added cost is compared: the empty entry+return \
             probe, or, for the kernel's entry-only rows and counting at entry, the empty entry probe. Each tracer is a process of \
             its own with its reader running.{}",
            rounds(ROUNDS),
            if tracer::has_bpftrace() {
                ""
            } else {
                " bpftrace is not installed here."
            },
        ),
    })
}

fn row(mut contender: Contender, none: f64) -> Result<Vec<String>> {
    let pairs = contender.ns.iter().zip(&contender.base_ns);
    let ratios: Vec<f64> = pairs.map(|(ns, base)| (ns - none) / (base - none)).collect();
    let added = middle(&contender.ns) - none;
    let ours = contender.target.is_some();
    let lost = match contender.tracer {
        Some(tracer) if ours => lost(&tracer.stop()?, contender.hammer.made)?,
        _ => match &contender.words {
            Some(words) => {
                contender.hammer.end()?;
                lost(&std::fs::read_to_string(words)?, contender.hammer.made)?
            }
            None => String::new(),
        },
    };
    let hooked = added > 0.0;
    Ok(vec![
        contender.name.to_owned(),
        spread(&contender.ns, 0),
        if hooked { format!("{added:.0}") } else { String::new() },
        if hooked { spread(&ratios, 2) } else { String::new() },
        contender.target.map(|target| format!("≤ {target}")).unwrap_or_default(),
        lost,
    ])
}

/// Our totals must be exact; events may be lost and are then said so.
fn lost(words: &str, made: u64) -> Result<String> {
    let seen = tracer::seen(words)?;
    anyhow::ensure!(
        seen.calls == made,
        "{made} calls were made, {} were counted",
        seen.calls
    );
    Ok(seen.lost.to_string())
}

/// The median.
pub fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Median and range.
pub fn spread(values: &[f64], digits: usize) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{:.digits$} ({low:.digits$}–{high:.digits$})", middle(values))
}

/// A new order for each round; the same in every run.
pub struct Order {
    indexes: Vec<usize>,
    state: u64,
}

impl Order {
    pub fn new(count: usize) -> Order {
        Order {
            indexes: (0..count).collect(),
            state: 0x9e37_79b9_7f4a_7c15,
        }
    }

    pub fn shuffled(&mut self) -> Vec<usize> {
        for last in (1..self.indexes.len()).rev() {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            self.indexes.swap(last, (self.state % (last as u64 + 1)) as usize);
        }
        self.indexes.clone()
    }
}
