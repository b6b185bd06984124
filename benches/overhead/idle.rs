//! What tracing costs when nothing happens: attaching, detaching, memory and CPU.

use crate::Folder;
use crate::report::Table;
use crate::rounds::spread;
use crate::tracer::{self, Tracer};
use anyhow::{Context, Result};
use gpuscope::catalog::Catalog;
use gpuscope::filter::Filter;
use gpuscope::probe::attach::Attacher;
use gpuscope::probe::{Session, Setup};
use gpuscope::rows::{RunRows, Wish};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
const IDLE: Duration = Duration::from_secs(10);

/// Measures all of it.
///
/// # Errors
/// A tracer does not start.
pub fn run(folder: &Folder) -> Result<Vec<Table>> {
    let mut rows = attaching(folder)?;
    rows.extend(resting(folder)?);
    Ok(vec![Table {
        title: "Attaching, memory, and doing nothing".to_owned(),
        columns: vec!["what", "median (min–max)", "target"],
        rows,
        note: format!(
            "Attaching: {ROUNDS} rounds in one process. `trace --all` over {} s beside a program that calls once a second; \
             other CUDA programs on the machine are traced as well.",
            IDLE.as_secs()
        ),
    }])
}

/// A simulated CUDA program that has mapped both libraries and makes a call now and then.
struct Sleeper(Child);

impl Sleeper {
    fn start(folder: &Folder) -> Result<Sleeper> {
        let child = Command::new(folder.file("sim/gpusim"))
            .args(["hammer", "1", "120"])
            .stdout(Stdio::null())
            .spawn()
            .context("failed to start gpusim")?;
        std::thread::sleep(Duration::from_millis(300));
        Ok(Sleeper(child))
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All functions of the catalogue that stream, and a session for them.
///
/// # Errors
/// The kernel refuses.
pub fn everything(ring_bytes: u32) -> Result<(RunRows, Session)> {
    let wish = Wish {
        events: true,
        chatty: false,
        returns: true,
        results: false,
        memory: true,
        stacks: true,
        kernels: true,
        work: true,
        launch_stacks: false,
        sync_stacks: false,
    };
    let filter = Filter::parse(&[], &["all".to_owned()])?;
    let rows = RunRows::new(Catalog::builtin()?, filter, wish, 64);
    let session = Session::load(&Setup {
        specs: rows.specs(),
        spare_rows: 64,
        ring_bytes,
        only_targets: true,
        ..Setup::default()
    })?;
    Ok((rows, session))
}

/// Hooks everything that process `pid` has mapped.
///
/// # Errors
/// It cannot be looked at.
pub fn attached_to(pid: u32, session: &Session, rows: &mut RunRows) -> Result<Attacher> {
    let mut attacher = Attacher::default();
    for mapping in attacher.news(&rows.catalog, pid, u64::MAX, &[])?.mappings {
        attacher.consider(session, rows, pid, &mapping);
    }
    Ok(attacher)
}

fn attaching(folder: &Folder) -> Result<Vec<Vec<String>>> {
    let sleeper = Sleeper::start(folder)?;
    let started = Instant::now();
    let (mut rows, session) = everything(1 << 20)?;
    let loading = started.elapsed().as_secs_f64() * 1e3;
    let (mut attach, mut detach, mut functions) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let mut attacher = attached_to(sleeper.0.id(), &session, &mut rows)?;
        attach.push(started.elapsed().as_secs_f64() * 1e3);
        functions = attacher.attached().map(|file| file.functions()).sum();
        let started = Instant::now();
        attacher.detach_all();
        detach.push(started.elapsed().as_secs_f64() * 1e3);
    }
    let row = |what: String, ms: &[f64], target: &str| vec![what, format!("{} ms", spread(ms, 0)), target.to_owned()];
    Ok(vec![
        row("load the programs and the catalogue".to_owned(), &[loading], ""),
        row(
            format!("find and attach {functions} functions of libcuda and libcudart"),
            &attach,
            "< 1 s",
        ),
        row(format!("detach {functions} functions"), &detach, "< 0.5 s"),
    ])
}

fn resting(folder: &Folder) -> Result<Vec<Vec<String>>> {
    let _sleeper = Sleeper::start(folder)?;
    let started = Instant::now();
    let tracer = Tracer::gpuscope(folder, "idle", &["--all", "-o", "/dev/null"])?;
    let ready = started.elapsed().as_secs_f64();
    std::thread::sleep(Duration::from_secs(1));
    let before = cpu_seconds(tracer.pid())?;
    std::thread::sleep(IDLE);
    let busy = (cpu_seconds(tracer.pid())? - before) / IDLE.as_secs_f64();
    let mib = |name: &str| -> Result<String> {
        let kib = memory_kib(tracer.pid(), name)?;
        Ok(format!("{:.1} MiB", kib as f64 / 1024.0))
    };
    let (resident, largest) = (mib("VmRSS:")?, mib("VmHWM:")?);
    let seen = tracer::seen(&tracer.stop()?)?;
    let rows = [
        ("`trace --all` until it traces".to_owned(), format!("{ready:.2} s"), ""),
        ("resident memory with the default ring".to_owned(), resident, "≤ 40 MB"),
        ("largest resident memory, at the start".to_owned(), largest, ""),
        (
            format!("CPU of `trace --all` with {} calls seen meanwhile", seen.calls),
            format!("{:.2} % of a core", busy * 100.0),
            "< 0.5 %",
        ),
    ];
    let line = |(what, value, target): (String, String, &str)| vec![what, value, target.to_owned()];
    Ok(rows.into_iter().map(line).collect())
}

/// KiB of a kind of memory of a process, such as `VmRSS:`.
///
/// # Errors
/// It has ended.
pub fn memory_kib(pid: u32, name: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("the process has ended")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok())
        .with_context(|| format!("the kernel does not tell {name}"))
}

/// User and system time of a process so far.
///
/// # Errors
/// It has ended.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    // schedstat counts nanoseconds, stat only ticks of 10 ms
    let mut total = 0.0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).context("the tracer has ended")? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        total += text
            .split(' ')
            .next()
            .and_then(|word| word.parse::<f64>().ok())
            .unwrap_or(0.0)
            / 1e9;
    }
    Ok(total)
}
