//! How long a report of a long recording takes, and its exports, and how much memory:
//! `cargo bench --bench report -- FILE [MILLIONS [LAUNCHES]]`.
//!
//! Makes FILE of so many million rows (default 10) of a training loop with so many launches a step (default 500), unless
//! it is there; reports it, and exports it to files beside it, which go away again.

#![allow(clippy::expect_used, reason = "the file that is made is a test's, too")]

#[path = "../../tests/recording/report/fixture.rs"]
mod fixture;

use anyhow::{Context, Result, anyhow};
use gpuscope::export::{Writing, chrome, perfetto};
use gpuscope::part::Part;
use gpuscope::record::{Encoder, Ending};
use gpuscope::trace::{Files, Reader};
use std::fs::File;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let path = Path::new(words.first().context("usage: report FILE [MILLIONS [LAUNCHES]]")?);
    let number = |index: usize, usual: u64| words.get(index).map_or(Ok(usual), |word| word.parse::<u64>());
    if !path.exists() {
        make(path, number(1, 10)? * 1_000_000, number(2, 500)?)?;
    }
    let rows = measured("report", || {
        Ok(gpuscope::report::load(&Files::open(path)?, &Part::All, &mut |_, _| {})?
            .source
            .rows)
    })?;
    let size = std::fs::metadata(path)?.len();
    println!("{rows} rows, {:.1} bytes each", size as f64 / rows as f64);
    let encoders: Vec<(&str, Box<dyn Encoder>)> = vec![
        ("perfetto", Box::new(perfetto::encoder())),
        ("chrome", Box::new(chrome::encoder())),
        #[cfg(feature = "parquet")]
        ("parquet", Box::<gpuscope::export::parquet::Parquet>::default()),
    ];
    for (name, encoder) in encoders {
        measured(name, || export(path, encoder))?;
    }
    Ok(())
}

/// Does it, and prints how fast that was and the most memory so far.
fn measured(what: &str, act: impl FnOnce() -> Result<u64>) -> Result<u64> {
    let (begun, cpu) = (Instant::now(), cpu_seconds()?);
    let rows = act()?;
    let (took, cpu) = (begun.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
    let rate = |seconds: f64| rows as f64 / seconds / 1e6;
    println!(
        "{what}: {took:.2} s, {:.2} million rows/s; {cpu:.2} CPU s, {:.2} million rows/CPU s; peak {} MiB",
        rate(took),
        rate(cpu),
        peak_bytes() >> 20
    );
    Ok(rows)
}

fn export(from: &Path, encoder: Box<dyn Encoder>) -> Result<u64> {
    let path = from.with_extension("exported");
    let mut writing = Writing::new(encoder, File::create(&path)?);
    let end = Reader::open(from)?.read_ahead(&mut writing);
    let ending = Ending {
        summary: end.summary.as_deref(),
        cut: end.cut.as_deref(),
    };
    let written = writing.end(&ending);
    std::fs::remove_file(path)?;
    written?;
    Ok(end.rows)
}

fn make(path: &Path, rows: u64, launches: u64) -> Result<()> {
    let mut bytes = Vec::new();
    let mut file = std::io::BufWriter::new(File::create(path)?);
    let begun = Instant::now();
    let mut made = fixture::Loop::new(&mut bytes);
    let mut number = 0;
    while made.rows < rows {
        made.step(number, launches, number % 4 == 0);
        made.pour(&mut file)?;
        number += 1;
    }
    let rows = made.end(None);
    std::io::Write::write_all(&mut file, &bytes)?;
    println!("made {rows} rows in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Of all threads of this process so far, in user space and in the kernel.
fn cpu_seconds() -> Result<f64> {
    // proc_pid_stat(5): behind the name, which may hold anything, the 12th and 13th word, in hundredths
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let words = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: Vec<u64> = words.skip(11).take(2).map_while(|word| word.parse().ok()).collect();
    match ticks[..] {
        [user, system] => Ok((user + system) as f64 / 100.0),
        _ => Err(anyhow!("/proc/self/stat is odd: {stat}")),
    }
}

/// The most memory that this process ever had.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
