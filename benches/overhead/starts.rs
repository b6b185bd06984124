//! What a program that has nothing to do with CUDA pays for the agent: `/bin/true`, alone, standing by, and within a traced run.

use crate::Folder;
use crate::report::Table;
use crate::rounds::{Order, middle, rounds, spread};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Or what OVERHEAD_ROUNDS says.
const ROUNDS: usize = 300;
const PATIENCE: Duration = Duration::from_secs(30);
/// What gpuscope adds to an environment.
const VARIABLES: [&str; 4] = [
    "LD_PRELOAD=",
    "GPUSCOPE_AGENT=",
    "NVTX_INJECTION64_PATH=",
    "ASAN_OPTIONS=",
];

struct Contender {
    name: &'static str,
    target: &'static str,
    environment: Vec<(String, String)>,
    cpu_us: Vec<f64>,
    wall_us: Vec<f64>,
}

/// A traced command that goes on until it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // its command ends at the end of its input
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Runs all rounds.
///
/// # Errors
/// gpuscope or `/bin/true` does not start.
pub fn run(folder: &Folder) -> Result<Vec<Table>> {
    let (_running, traced) = traced(folder)?;
    let mut all = [
        contender("alone", "", Vec::new()),
        contender("under `gpuscope preload`, nobody looks", "≤ 300", standing_by(folder)?),
        contender("within `gpuscope run -q`", "", traced),
    ];
    let mut order = Order::new(all.len());
    for _ in 0..rounds(ROUNDS) {
        for index in order.shuffled() {
            let (cpu_us, wall_us) = start(&all[index].environment)?;
            all[index].cpu_us.push(cpu_us);
            all[index].wall_us.push(wall_us);
        }
    }
    Ok(vec![table(&all)])
}

fn contender(name: &'static str, target: &'static str, environment: Vec<(String, String)>) -> Contender {
    Contender {
        name,
        target,
        environment,
        cpu_us: Vec::new(),
        wall_us: Vec::new(),
    }
}

fn variables(text: &str) -> Vec<(String, String)> {
    let ours = text
        .lines()
        .filter(|line| VARIABLES.iter().any(|name| line.starts_with(name)));
    let split = ours.filter_map(|line| line.split_once('='));
    split.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn standing_by(folder: &Folder) -> Result<Vec<(String, String)>> {
    let mut command = Command::new(folder.file("gpuscope"));
    command.args(["preload", "--folder"]).arg(folder.file("state"));
    let output = command.output().context("failed to start gpuscope")?;
    Ok(variables(&String::from_utf8_lossy(&output.stdout)))
}

/// A traced shell, and what its children are started with.
fn traced(folder: &Folder) -> Result<(Running, Vec<(String, String)>)> {
    let mut command = Command::new(folder.file("gpuscope"));
    command.args([
        "run",
        "-q",
        "--engine",
        "inside",
        "--",
        "sh",
        "-c",
        "env; echo all; cat",
    ]);
    let words = folder.file("starts.stdout");
    command
        .stdin(Stdio::piped())
        .stdout(File::create(&words)?)
        .stderr(Stdio::null());
    let running = Running(command.spawn().context("failed to start gpuscope")?);
    let (started, mut text) = (Instant::now(), String::new());
    while !text.ends_with("all\n") {
        anyhow::ensure!(started.elapsed() < PATIENCE, "gpuscope does not start a shell: {text}");
        std::thread::sleep(Duration::from_millis(20));
        text.clear();
        File::open(&words)?.read_to_string(&mut text)?;
    }
    Ok((running, variables(&text)))
}

/// CPU time and time of one, µs.
fn start(environment: &[(String, String)]) -> Result<(f64, f64)> {
    let started = Instant::now();
    let mut command = Command::new("/bin/true");
    command.env_clear().envs(environment.iter().cloned());
    let child = command.spawn().context("failed to start /bin/true")?;
    // SAFETY: all zero is one, and the call fills both for a child that nobody else has waited for
    let (status, usage) = unsafe {
        let (mut status, mut usage): (i32, libc::rusage) = (0, std::mem::zeroed());
        libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage);
        (status, usage)
    };
    let wall_us = started.elapsed().as_secs_f64() * 1e6;
    anyhow::ensure!(status == 0, "/bin/true ended with status {status}");
    let micros = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
    Ok((micros(usage.ru_utime) + micros(usage.ru_stime), wall_us))
}

fn table(all: &[Contender]) -> Table {
    let alone = (middle(&all[0].cpu_us), middle(&all[0].wall_us));
    let row = |contender: &Contender| {
        let (cpu, wall) = (middle(&contender.cpu_us), middle(&contender.wall_us));
        vec![
            contender.name.to_owned(),
            spread(&contender.cpu_us, 0),
            format!("{:.2}", cpu / alone.0),
            format!("{:.0}", cpu - alone.0),
            spread(&contender.wall_us, 0),
            format!("{:.2}", wall / alone.1),
            format!("{:.0}", wall - alone.1),
            contender.target.to_owned(),
        ]
    };
    Table {
        title: "Starting `/bin/true`".to_owned(),
        columns: vec![
            "how",
            "CPU µs, median (min–max)",
            "of alone",
            "added µs",
            "µs from start to end",
            "of alone",
            "added µs",
            "target",
        ],
        rows: all.iter().map(row).collect(),
        note: format!(
            "{} times each, in turn, each round in another order. CPU: user and system time of the program itself.",
            rounds(ROUNDS)
        ),
    }
}
