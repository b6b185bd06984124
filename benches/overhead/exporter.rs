//! A running `gpuscope serve`, and what it answers.

use crate::Folder;
use crate::tracer::Tracer;
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

pub const PLAIN: &str = "text/plain; version=0.0.4";
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0";

/// A running `gpuscope serve`.
pub struct Exporter {
    tracer: Tracer,
    address: String,
    /// BPF programs of everybody when it had just begun.
    programs: usize,
}

/// One answer.
pub struct Answer {
    /// From before the connection until the last byte.
    pub took: Duration,
    pub body: Vec<u8>,
}

impl Exporter {
    /// Starts it with these options; `name` names the file of its words.
    ///
    /// # Errors
    /// It does not serve.
    pub fn start(folder: &Folder, name: &str, options: &[&str]) -> Result<Exporter> {
        let tracer = Tracer::exporter(folder, name, options)?;
        let words = tracer.words();
        let address = words
            .split_once("serving http://")
            .and_then(|(_, rest)| rest.split('/').next());
        let address = address.context("gpuscope serve names no address")?.to_owned();
        Ok(Exporter {
            tracer,
            address,
            programs: loaded_programs(),
        })
    }

    pub fn pid(&self) -> u32 {
        self.tracer.pid()
    }

    /// Waits until nobody else has BPF programs that came after ours were counted: they might hook the same functions,
    /// and their cost would be added to ours.
    ///
    /// # Errors
    /// Some stay for minutes.
    pub fn wait_until_alone(&self) -> Result<()> {
        wait_for_programs(self.programs)
    }

    /// Whether somebody has added BPF programs, or removed some.
    pub fn is_alone(&self) -> bool {
        loaded_programs() == self.programs
    }

    /// Asks for the metrics in one form.
    ///
    /// # Errors
    /// It does not answer, or with an error.
    pub fn ask(&self, accept: &str, gzip: bool) -> Result<Answer> {
        let begun = Instant::now();
        let mut stream = TcpStream::connect(&self.address).context("failed to connect to gpuscope serve")?;
        let coding = if gzip { "Accept-Encoding: gzip\r\n" } else { "" };
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: {}\r\nAccept: {accept}\r\n{coding}Connection: close\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let took = begun.elapsed();
        anyhow::ensure!(
            answer.starts_with(b"HTTP/1.1 200 "),
            "gpuscope serve answered with an error"
        );
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let body = answer.split_off(end.context("gpuscope serve answered half a head")? + 4);
        Ok(Answer { took, body })
    }

    /// All series at this moment.
    ///
    /// # Errors
    /// As for [`Exporter::ask`].
    pub fn series(&self) -> Result<Series> {
        // an answer of a moment ago is given again
        std::thread::sleep(Duration::from_millis(300));
        Series::of(self.ask(PLAIN, false)?.body)
    }

    /// Ends it as Ctrl-C does.
    ///
    /// # Errors
    /// It does not end.
    pub fn stop(self) -> Result<String> {
        self.tracer.stop()
    }
}

/// Waits until so many BPF programs are loaded, of all processes.
///
/// # Errors
/// It lasts for minutes.
pub fn wait_for_programs(count: usize) -> Result<()> {
    let begun = Instant::now();
    while loaded_programs() != count {
        anyhow::ensure!(
            begun.elapsed() < Duration::from_secs(180),
            "others load BPF programs all the time, which may hook what is measured\nhint: end other tracers, and measure again"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// BPF programs of all processes.
pub fn loaded_programs() -> usize {
    const BPF_PROG_GET_NEXT_ID: libc::c_int = 11;
    let mut attributes = [0u32; 32];
    let mut count = 0;
    loop {
        let (place, size) = (attributes.as_mut_ptr(), size_of_val(&attributes));
        // SAFETY: the call reads the id to begin after, and writes the next one behind it, in memory of ours
        if unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_GET_NEXT_ID, place, size) } != 0 {
            return count;
        }
        attributes[0] = attributes[1];
        count += 1;
    }
}

/// A text of metrics.
pub struct Series(String);

impl Series {
    /// Of an answer that is not compressed.
    ///
    /// # Errors
    /// It is no text.
    pub fn of(body: Vec<u8>) -> Result<Series> {
        Ok(Series(String::from_utf8(body)?))
    }

    /// The sum of a metric's series that `choose` takes, by their labels.
    pub fn sum(&self, metric: &str, choose: impl Fn(&str) -> bool) -> f64 {
        let samples = self.0.lines().filter_map(|line| line.rsplit_once(' '));
        let of_metric = samples.filter_map(|(series, value)| Some((series.strip_prefix(metric)?, value)));
        let chosen = of_metric.filter(|(labels, _)| (labels.is_empty() || labels.starts_with('{')) && choose(labels));
        chosen.filter_map(|(_, value)| value.parse::<f64>().ok()).sum()
    }

    /// A sum of counts.
    pub fn count(&self, metric: &str, choose: impl Fn(&str) -> bool) -> u64 {
        self.sum(metric, choose) as u64
    }

    /// Whether the text stands anywhere.
    pub fn mentions(&self, text: &str) -> bool {
        self.0.contains(text)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.lines().filter(|line| !line.starts_with('#')).count()
    }
}
