//! What a scrape of `gpuscope serve` takes with 200 living processes and eight devices.

use crate::Folder;
use crate::exporter::{Exporter, OPEN_METRICS, PLAIN, Series};
use crate::idle::{cpu_seconds, memory_kib};
use crate::report::Table;
use crate::rounds::spread;
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const PROCESSES: usize = 200;
const ROUNDS: usize = 50;
/// An answer younger than a fifth of a second would be given again.
const BETWEEN: Duration = Duration::from_millis(250);
const FORMS: [(&str, &str, bool); 4] = [
    ("OpenMetrics", OPEN_METRICS, false),
    ("OpenMetrics, gzip", OPEN_METRICS, true),
    ("text 0.0.4", PLAIN, false),
    ("text 0.0.4, gzip", PLAIN, true),
];

/// Simulated training loops, each under a name of its own.
struct Crowd {
    children: Vec<Child>,
    /// What these leave for NVML, which must not be asked about them later.
    state: PathBuf,
}

impl Crowd {
    fn start(folder: &Folder) -> Result<Crowd> {
        let own = folder.file("bin-crowd");
        std::fs::create_dir_all(&own)?;
        let program = std::fs::canonicalize(folder.file("sim/gpusim"))?;
        let mut crowd = Crowd {
            children: Vec::new(),
            state: folder.file("state"),
        };
        for number in 0..PROCESSES {
            let link = own.join(format!("train-{number}"));
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(&program, &link)?;
            let child = Command::new(&link)
                .args(["train", "0"])
                .env("LD_LIBRARY_PATH", folder.file("sim"))
                .env("GPUSIM_STATE", folder.file("state"))
                .env("GPUSIM_DEVICES", "8")
                // a step of some seconds: it sleeps
                .env("GPUSIM_KERNEL_US", "250000")
                .stdout(Stdio::null())
                .spawn()
                .context("failed to start gpusim")?;
            crowd.children.push(child);
        }
        Ok(crowd)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.state);
        let _ = std::fs::create_dir(&self.state);
    }
}

/// Measures each form.
///
/// # Errors
/// `serve` does not answer, or has not seen all processes.
pub fn run(folder: &Folder) -> Result<Vec<Table>> {
    let exporter = Exporter::start(folder, "scrape", &[])?;
    let _crowd = Crowd::start(folder)?;
    let series = settled(&exporter)?;
    let mut took: Vec<(Vec<f64>, usize)> = FORMS.iter().map(|_| (Vec::new(), 0)).collect();
    let mut gathering = Vec::new();
    exporter.wait_until_alone()?;
    let before = cpu_seconds(exporter.pid())?;
    for _ in 0..ROUNDS {
        for ((_, accept, gzip), (ms, bytes)) in FORMS.iter().zip(&mut took) {
            std::thread::sleep(BETWEEN);
            let answer = exporter.ask(accept, *gzip)?;
            ms.push(answer.took.as_secs_f64() * 1e3);
            *bytes = answer.body.len();
            if !gzip {
                let series = Series::of(answer.body)?;
                gathering.push(series.sum("gpuscope_gather_duration_seconds", |_| true) * 1e3);
            }
        }
    }
    let cpu = (cpu_seconds(exporter.pid())? - before) * 1e3 / (ROUNDS * FORMS.len()) as f64;
    let memory = memory_kib(exporter.pid(), "VmRSS:")? as f64 / 1024.0;
    exporter.stop()?;
    Ok(vec![table(&took, &gathering, series, cpu, memory)])
}

/// When every process has been seen, and no series are added any more.
fn settled(exporter: &Exporter) -> Result<usize> {
    let mut before = 0;
    for _ in 0..60 {
        std::thread::sleep(Duration::from_secs(2));
        let series = exporter.series()?;
        if std::mem::replace(&mut before, series.len()) != series.len() {
            continue;
        }
        let seen = (0..PROCESSES).filter(|number| series.mentions(&format!("comm=\"train-{number}\"")));
        if seen.count() == PROCESSES {
            return Ok(series.len());
        }
    }
    anyhow::bail!("serve has not seen all {PROCESSES} processes")
}

fn table(took: &[(Vec<f64>, usize)], gathering: &[f64], series: usize, cpu: f64, memory: f64) -> Table {
    let row = |((name, ..), (ms, bytes)): (&(&str, &str, bool), &(Vec<f64>, usize))| {
        let mib = *bytes as f64 / (1 << 20) as f64;
        vec![
            (*name).to_owned(),
            format!("{} ms", spread(ms, 0)),
            format!("{:.0} ms", nearly_all(ms)),
            format!("{mib:.2} MiB"),
            "< 50 ms".to_owned(),
        ]
    };
    let mut rows: Vec<Vec<String>> = FORMS.iter().zip(took).map(row).collect();
    rows.push(vec![
        "of it, gathering".to_owned(),
        format!("{} ms", spread(gathering, 0)),
        format!("{:.0} ms", nearly_all(gathering)),
        String::new(),
        String::new(),
    ]);
    Table {
        title: format!("A scrape of `serve` with {PROCESSES} processes and 8 devices"),
        columns: vec![
            "form",
            "time, median (min–max)",
            "95 % are faster than",
            "size",
            "target",
        ],
        rows,
        note: format!(
            "{ROUNDS} scrapes of each form in turn, {} ms between; {series} series of {PROCESSES} owners. Time: from before the \
             connection until the last byte, on the same machine. Every scrape is gathered anew. CPU of `serve` in this time, \
             with what it asks NVML every second: {cpu:.0} ms a scrape. Resident memory at the end: {memory:.1} MiB.",
            BETWEEN.as_millis()
        ),
    }
}

fn nearly_all(ms: &[f64]) -> f64 {
    let mut sorted = ms.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() - 1) * 95 / 100]
}
