//! What naming a call's place costs: calls below twenty frames, native ones without frame pointers and Python's, with both engines,
//! with stacks and without, in turn.

use crate::Folder;
use crate::hammer::{Burst, Caller, Hammer};
use crate::report::Table;
use crate::rounds::{Order, middle, rounds, spread};
use crate::tracer::{self, Tracer};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::time::Duration;

/// Or what OVERHEAD_ROUNDS says.
const ROUNDS: usize = 21;
const CALLS: u64 = 5_000;
/// Lets a reader finish what the burst before has left.
const BETWEEN: Duration = Duration::from_millis(15);
const FRAMES: u32 = 20;
const ALLOCATION: &str = "cudaMalloc";

/// Names of callers, who they are, and what a place may cost inside, ns.
const CALLERS: [(&str, Caller, f64); 2] = [
    ("native, no frame pointers", Caller::Native(FRAMES), 2000.0),
    ("Python", Caller::Python(FRAMES), 1500.0),
];

enum Way {
    Alone,
    Inside(&'static str),
    Kernel(&'static str),
}

/// Each row with stacks follows the one without.
const WAYS: [Way; 5] = [
    Way::Alone,
    Way::Inside("none"),
    Way::Inside("alloc"),
    Way::Kernel("none"),
    Way::Kernel("alloc"),
];

struct Contender {
    caller: usize,
    way: usize,
    hammer: Hammer,
    tracer: Option<Tracer>,
    /// Where the gpuscope that has started the hammer puts its summary.
    words: Option<PathBuf>,
    ns: Vec<f64>,
}

/// Runs all rounds.
///
/// # Errors
/// A tracer does not start, or saw other calls than were made.
pub fn run(folder: &Folder) -> Result<Vec<Table>> {
    let mut all = Vec::new();
    for caller in 0..CALLERS.len() {
        for way in 0..WAYS.len() {
            all.push(contender(folder, caller, way)?);
        }
    }
    for contender in &mut all {
        strike(contender)?;
    }
    let mut order = Order::new(all.len());
    for _ in 0..rounds(ROUNDS) {
        for index in order.shuffled() {
            let ns = strike(&mut all[index])?;
            all[index].ns.push(ns);
            std::thread::sleep(BETWEEN);
        }
    }
    Ok(vec![table(all)?])
}

fn strike(contender: &mut Contender) -> Result<f64> {
    let burst = Burst {
        function: ALLOCATION,
        calls: CALLS,
        threads: 1,
        rate: 0,
    };
    Ok(contender.hammer.strike(burst)?.ns_per_call)
}

fn contender(folder: &Folder, caller: usize, way: usize) -> Result<Contender> {
    let (name, who) = (format!("sites{caller}{way}"), CALLERS[caller].1);
    let options = |stacks| ["-q", "--stacks", stacks];
    let (mut tracer, mut words) = (None, None);
    let hammer = match WAYS[way] {
        Way::Alone => Hammer::start_of(who, folder, &name)?,
        Way::Inside(stacks) => {
            let (hammer, summary) = Hammer::inside_of(who, folder, &name, &options(stacks))?;
            words = Some(summary);
            hammer
        }
        Way::Kernel(stacks) => {
            let hammer = Hammer::start_of(who, folder, &name)?;
            let pid = hammer.pid().to_string();
            let options = [&["-p", &pid][..], &options(stacks)].concat();
            tracer = Some(Tracer::gpuscope(folder, &name, &options)?);
            hammer
        }
    };
    Ok(Contender {
        caller,
        way,
        hammer,
        tracer,
        words,
        ns: Vec::new(),
    })
}

fn table(all: Vec<Contender>) -> Result<Table> {
    let middles: Vec<f64> = all.iter().map(|contender| middle(&contender.ns)).collect();
    let rows = all.into_iter().enumerate().map(|(index, contender)| {
        let alone = middles[index - contender.way];
        let without =
            matches!(WAYS[contender.way], Way::Inside("alloc") | Way::Kernel("alloc")).then(|| middles[index - 1]);
        row(contender, alone, without)
    });
    Ok(Table {
        title: format!("A call of cudaMalloc below {FRAMES} frames, and where it is made"),
        columns: vec![
            "caller",
            "way",
            "CPU ns a call, median (min–max)",
            "added ns",
            "of it for the place",
            "target",
        ],
        rows: rows.collect::<Result<_>>()?,
        note: format!(
            "{} rounds in another order each; a burst is {CALLS} calls of one thread, always from the same place, so that what is \
             known of it is known. For the place: what a call takes with `--stacks alloc` above one with `--stacks none`.",
            rounds(ROUNDS)
        ),
    })
}

fn row(mut contender: Contender, alone: f64, without: Option<f64>) -> Result<Vec<String>> {
    let (name, _, target) = CALLERS[contender.caller];
    let (way, is_inside) = match WAYS[contender.way] {
        Way::Alone => ("not traced".to_owned(), false),
        Way::Inside(stacks) => (format!("inside, `--stacks {stacks}`"), true),
        Way::Kernel(stacks) => (format!("kernel, `--stacks {stacks}`"), false),
    };
    check(&mut contender)?;
    let took = middle(&contender.ns);
    let place = without.map(|without| took - without);
    Ok(vec![
        name.to_owned(),
        way,
        spread(&contender.ns, 0),
        if contender.way > 0 {
            format!("{:.0}", took - alone)
        } else {
            String::new()
        },
        place.map_or(String::new(), |place| format!("{place:.0}")),
        place
            .filter(|_| is_inside)
            .map_or(String::new(), |_| format!("≤ {target:.0}")),
    ])
}

/// Totals must be exact.
fn check(contender: &mut Contender) -> Result<()> {
    let made = contender.hammer.made;
    let words = match (contender.tracer.take(), &contender.words) {
        (Some(tracer), _) => tracer.stop()?,
        (None, Some(words)) => {
            contender.hammer.end()?;
            std::fs::read_to_string(words).context("gpuscope wrote nothing")?
        }
        (None, None) => return Ok(()),
    };
    let counted = tracer::seen(&words)?.calls;
    anyhow::ensure!(counted == made, "{made} calls were made, {counted} were counted");
    Ok(())
}
