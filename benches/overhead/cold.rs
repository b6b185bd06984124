//! What calls take among other code: the same program with nothing between its calls, and with much.

use crate::Folder;
use crate::report::Table;
use crate::rounds::{Order, middle, rounds, spread};
use anyhow::{Context, Result};
use std::process::{Command, Stdio};

/// Or what OVERHEAD_ROUNDS says.
const ROUNDS: usize = 9;
const LAUNCHES: &str = "6000";
/// KiB of code, and of data, that a program goes through between its calls.
const BETWEEN: [&str; 4] = ["0", "256", "1024", "4096"];
const WAYS: [(&str, &[&str]); 4] = [
    ("alone", &[]),
    ("under `gpuscope preload`, nobody looks", &["preload"]),
    (
        "`gpuscope run -q`, inside",
        &["run", "-q", "--engine", "inside", "--gpu", "off"],
    ),
    (
        "`gpuscope record`, inside",
        &["record", "--engine", "inside", "--gpu", "off"],
    ),
];

/// Of one way, with so much between: ns of a launch and of a getter, a figure for each round.
#[derive(Default)]
struct Measured {
    launch: Vec<f64>,
    getter: Vec<f64>,
}

/// Runs all rounds.
///
/// # Errors
/// The program or gpuscope does not start, or says something else.
pub fn run(folder: &Folder) -> Result<Vec<Table>> {
    let cells = || {
        BETWEEN
            .iter()
            .flat_map(|between| WAYS.iter().map(move |way| (*between, way)))
    };
    let mut all: Vec<Measured> = cells().map(|_| Measured::default()).collect();
    let mut order = Order::new(all.len());
    for _ in 0..rounds(ROUNDS) {
        for index in order.shuffled() {
            let (between, (_, words)) = cells().nth(index).context("a cell")?;
            let (launch, getter) = once(folder, words, between)?;
            all[index].launch.push(launch);
            all[index].getter.push(getter);
        }
    }
    let named = cells().map(|(between, (way, _))| (between, *way)).zip(&all);
    Ok(vec![table(&named.collect::<Vec<_>>())])
}

/// One run of the program: ns of a launch and of a getter.
fn once(folder: &Folder, words: &[&str], between: &str) -> Result<(f64, f64)> {
    let program = folder.file("cold");
    let mut command = match words.first() {
        None => Command::new(&program),
        Some(_) => Command::new(folder.file("gpuscope")),
    };
    command.args(words);
    if words.first() == Some(&"record") {
        command.arg("-o").arg(folder.file("cold.arrows"));
    }
    if !words.is_empty() {
        command.arg("--").arg(&program);
    }
    command.args([between, LAUNCHES]).stderr(Stdio::null());
    command.env("LD_LIBRARY_PATH", folder.file("sim"));
    command.env("GPUSIM_STATE", folder.file("state"));
    let output = command.output().context("failed to start gpuscope")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().next().unwrap_or_default();
    let figures = line
        .split_once(' ')
        .and_then(|(launch, getter)| Some((launch.parse().ok()?, getter.parse().ok()?)));
    figures.with_context(|| format!("failed to measure {words:?}: it said {said:?}"))
}

fn table(all: &[((&str, &str), &Measured)]) -> Table {
    let row = |((between, way), measured): &((&str, &str), &Measured)| {
        let alone = all
            .iter()
            .find(|((other, name), _)| other == between && *name == WAYS[0].0);
        let added = |of: fn(&Measured) -> &Vec<f64>, digits: usize| {
            let base = alone.map_or(f64::NAN, |(_, alone)| middle(of(alone)));
            format!("{:.digits$}", middle(of(measured)) - base)
        };
        vec![
            (*between).to_owned(),
            (*way).to_owned(),
            spread(&measured.launch, 0),
            added(|measured| &measured.launch, 0),
            spread(&measured.getter, 0),
            added(|measured| &measured.getter, 1),
        ]
    };
    Table {
        title: "Calls among other code".to_owned(),
        columns: vec![
            "KiB between",
            "how",
            "ns a launch, median (min–max)",
            "added ns",
            "ns a getter",
            "added ns",
        ],
        rows: all.iter().map(row).collect(),
        note: format!(
            "{} runs each, in turn, each round in another order, of a program (`cold.c`) that makes {LAUNCHES} launches of the simulated runtime, of 60 kernels, each \
             with a nested one of the driver, and 35 getters before each; a run's figure is its median. Between calls it goes through so much code, and as much data, of its own.",
            rounds(ROUNDS)
        ),
    }
}
