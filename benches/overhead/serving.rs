//! `gpuscope serve` beside programs that make 100,000 calls a second: its CPU time and memory, and whether all is counted.

use crate::Folder;
use crate::exporter::{Exporter, OPEN_METRICS};
use crate::hammer::{Burst, Hammer};
use crate::idle::{cpu_seconds, memory_kib};
use crate::report::Table;
use crate::serve::{self, STEP};
use anyhow::{Context, Result};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const RATE: u64 = 100_000;
const SECONDS: u64 = 10;
/// As Prometheus would, rather often.
const SCRAPE_EVERY: Duration = Duration::from_secs(5);
/// Far more than it takes to hook a library: calls of before are not counted.
const ATTACHING: Duration = Duration::from_secs(1);
const LOST: &str = "gpuscope_lost_records_total";

/// Runs each program beside a `serve` of its own.
///
/// # Errors
/// A call was not counted.
pub fn run(folder: &Folder) -> Result<Vec<Table>> {
    let rows = vec![
        row(folder, "one function: cudaMemcpyAsync", || {
            hammered(folder, "cudaMemcpyAsync")
        })?,
        row(folder, "the mix of the table above", || hammered(folder, STEP))?,
        row(
            folder,
            "`gpusim hammer`: cudaStreamQuery, with cuStreamQuery within it",
            || simulated(folder, &["hammer", "50000", "10"]),
        )?,
        row(folder, "nothing", || {
            Ok(Box::new(|| {
                std::thread::sleep(Duration::from_secs(SECONDS));
                Ok(0)
            }))
        })?,
    ];
    Ok(vec![Table {
        title: format!("`serve` with all collectors beside {RATE} calls a second for {SECONDS} s"),
        columns: vec![
            "calls",
            "made",
            "counted",
            "records lost",
            "CPU of `serve`",
            "of it, for NVML",
            "target",
            "resident memory",
            "largest",
            "target",
        ],
        rows,
        note: format!(
            "One thread; eight simulated devices; scraped every {} s. CPU: of all threads of `serve` as part of one core, its \
             scrapes with it; the thread that asks NVML spends it in the simulated NVML.",
            SCRAPE_EVERY.as_secs()
        ),
    }])
}

/// Makes calls and tells how many.
type Work<'a> = Box<dyn FnOnce() -> Result<u64> + 'a>;

fn row<'a>(folder: &Folder, name: &str, prepare: impl FnOnce() -> Result<Work<'a>>) -> Result<Vec<String>> {
    let exporter = Exporter::start(folder, "serving", &["--collect", serve::ALL])?;
    let pid = exporter.pid();
    let work = prepare()?;
    std::thread::sleep(ATTACHING);
    exporter.wait_until_alone()?;
    let lost_before = exporter.series()?.count(LOST, |_| true);
    let (cpu, nvml, begun) = (cpu_seconds(pid)?, thread_seconds(pid, "nvml")?, Instant::now());
    let made = beside_scrapes(&exporter, work)?;
    let seconds = begun.elapsed().as_secs_f64();
    let busy = (cpu_seconds(pid)? - cpu) / seconds;
    let asking = (thread_seconds(pid, "nvml")? - nvml) / seconds;
    let series = exporter.series()?;
    let of_ours = |labels: &str| labels.contains(&format!("comm=\"{}\"", serve::HOOKED));
    let counted = series.count("gpuscope_api_calls_total", of_ours);
    anyhow::ensure!(counted == made, "{made} calls were made, {counted} were counted");
    let mib = |kib: u64| format!("{:.1} MiB", kib as f64 / 1024.0);
    let cells = vec![
        name.to_owned(),
        made.to_string(),
        counted.to_string(),
        (series.count(LOST, |_| true) - lost_before).to_string(),
        format!("{:.2} %", busy * 100.0),
        format!("{:.2} %", asking * 100.0),
        "≤ 1 %".to_owned(),
        mib(memory_kib(pid, "VmRSS:")?),
        mib(memory_kib(pid, "VmHWM:")?),
        "≤ 60 MB".to_owned(),
    ];
    exporter.stop()?;
    Ok(cells)
}

fn beside_scrapes<T>(exporter: &Exporter, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let scraper = scope.spawn(|| -> Result<()> {
            let mut next = Instant::now() + SCRAPE_EVERY;
            while !ended.load(Relaxed) {
                std::thread::sleep(Duration::from_millis(50));
                if Instant::now() >= next {
                    exporter.ask(OPEN_METRICS, false)?;
                    next += SCRAPE_EVERY;
                }
            }
            Ok(())
        });
        let done = work();
        ended.store(true, Relaxed);
        scraper.join().map_err(|_| anyhow::anyhow!("scraping panicked"))??;
        done
    })
}

/// What the hammer calls at [`RATE`].
fn hammered<'a>(folder: &Folder, function: &'a str) -> Result<Work<'a>> {
    let program = serve::program(folder, serve::HOOKED)?;
    let mut hammer = Hammer::of(&program, folder.library(serve::HOOKED)?, "cudaMalloc")?;
    let burst = Burst {
        function,
        calls: RATE * SECONDS,
        threads: 1,
        rate: RATE,
    };
    Ok(Box::new(move || Ok(hammer.strike(burst)?.calls)))
}

/// Runs the simulated CUDA; its libraries' own books say which calls were made.
fn simulated<'a>(folder: &'a Folder, words: &'a [&str]) -> Result<Work<'a>> {
    let own = folder.file("bin-gpusim");
    std::fs::create_dir_all(&own)?;
    let ledger = folder.file("ledger");
    let books = ledger.clone();
    let run = move |name: &str, words: &[&str]| -> Result<()> {
        let link = own.join(name);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(std::fs::canonicalize(folder.file("sim/gpusim"))?, &link)?;
        let mut command = Command::new(&link);
        command.args(words).env("LD_LIBRARY_PATH", folder.file("sim"));
        command.env("GPUSIM_LEDGER", &ledger).stdout(Stdio::null());
        let status = command.status().context("failed to start gpusim")?;
        anyhow::ensure!(status.success(), "gpusim failed");
        Ok(())
    };
    // another has its libraries hooked before
    run("serve-first", &["hammer", "1", "1"])?;
    Ok(Box::new(move || {
        run(serve::HOOKED, words)?;
        let layers = ["driver", "runtime"].iter();
        let counts = layers.map(|layer| booked(&books.with_extension(format!("{layer}.json"))));
        counts.sum()
    }))
}

fn booked(path: &std::path::Path) -> Result<u64> {
    let text = std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
    // a line for each program
    let last = text.lines().last().context("the ledger is empty")?;
    let book: serde_json::Value = serde_json::from_str(last)?;
    let calls = book["calls"].as_object().context("the ledger has no calls")?;
    Ok(calls.values().filter_map(serde_json::Value::as_u64).sum())
}

/// User and system time of the thread of that name.
fn thread_seconds(pid: u32, name: &str) -> Result<f64> {
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).context("serve has ended")? {
        let path = task?.path();
        if std::fs::read_to_string(path.join("comm"))?.trim() == name {
            let text = std::fs::read_to_string(path.join("schedstat"))?;
            let ns = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
            return Ok(ns.unwrap_or(0.0) / 1e9);
        }
    }
    Ok(0.0)
}
