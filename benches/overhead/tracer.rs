//! A running tracer, ours or bpftrace, that hooks one hammer's library, and what it saw in the end.

use crate::Folder;
use crate::hammer::Hammer;
use anyhow::{Context, Result, bail};
use gpuscope::engine::{Hooks, Point};
use gpuscope::probe::{Session, Setup};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const START: Duration = Duration::from_secs(30);

/// A tracer's process and where it writes its words.
pub struct Tracer {
    child: Child,
    words: std::path::PathBuf,
}

/// The functions of our own summary, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    pub calls: u64,
    pub lost: u64,
}

impl Tracer {
    /// Starts `gpuscope trace` with these options and waits until it traces.
    ///
    /// # Errors
    /// It does not start to trace.
    pub fn gpuscope(folder: &Folder, name: &str, options: &[&str]) -> Result<Tracer> {
        let mut command = Command::new(folder.file("gpuscope"));
        command.args(["trace", "--getters", "--summary", "json"]).args(options);
        command.stdout(Stdio::null());
        let words = folder.file(&format!("{name}.stderr"));
        command.stderr(File::create(&words)?);
        Tracer::start(command, words, "gpuscope: tracing")
    }

    /// Starts `gpuscope serve` on a free port and waits until it serves.
    ///
    /// # Errors
    /// It does not start to serve.
    pub fn exporter(folder: &Folder, name: &str, options: &[&str]) -> Result<Tracer> {
        let mut command = Command::new(folder.file("gpuscope"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(options);
        command
            .env("GPUSCOPE_NVML", folder.file("sim/libnvidia-ml.so.1"))
            .env("GPUSIM_STATE", folder.file("state"))
            .env("GPUSIM_DEVICES", "8");
        let words = folder.file(&format!("{name}.words"));
        let both = File::create(&words)?;
        command.stdout(both.try_clone()?).stderr(both);
        Tracer::start(command, words, "Ctrl-C ends it")
    }

    /// Starts bpftrace with this program, which must print `ready` when it has begun.
    ///
    /// # Errors
    /// It does not start to trace.
    pub fn bpftrace(folder: &Folder, name: &str, program: &str) -> Result<Tracer> {
        let mut command = Command::new("bpftrace");
        command
            .arg("-e")
            .arg(format!("{program} interval:ms:200 {{ printf(\"ready\\n\"); }}"));
        let words = folder.file(&format!("{name}.stdout"));
        command.stdout(File::create(&words)?).stderr(Stdio::null());
        Tracer::start(command, words, "ready")
    }

    fn start(mut command: Command, words: std::path::PathBuf, sign: &str) -> Result<Tracer> {
        let child = command
            .spawn()
            .with_context(|| format!("failed to start {command:?}"))?;
        let mut tracer = Tracer { child, words };
        let started = Instant::now();
        while !tracer.words().contains(sign) {
            if started.elapsed() > START || tracer.child.try_wait()?.is_some() {
                bail!("{command:?} does not trace: {}", tracer.words());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(tracer)
    }

    /// What it wrote so far.
    pub fn words(&self) -> String {
        std::fs::read_to_string(&self.words).unwrap_or_default()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as Ctrl-C does and returns all it wrote.
    ///
    /// # Errors
    /// It does not end.
    pub fn stop(mut self) -> Result<String> {
        // SAFETY: plain numbers; the child has not been waited for, so its id is still its own
        unsafe { libc::kill(self.child.id() as i32, libc::SIGINT) };
        self.child.wait().context("failed to wait for a tracer")?;
        Ok(self.words())
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether bpftrace is installed.
pub fn has_bpftrace() -> bool {
    let version = Command::new("bpftrace").arg("--version").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// What our JSON summary counted.
///
/// # Errors
/// There is no summary.
pub fn seen(words: &str) -> Result<Seen> {
    let line = words.lines().rfind(|line| line.starts_with('{'));
    let summary: serde_json::Value = serde_json::from_str(line.context("gpuscope wrote no summary")?)?;
    let functions = summary["functions"]
        .as_array()
        .context("the summary has no functions")?;
    Ok(functions.iter().fold(Seen::default(), |sum, function| Seen {
        calls: sum.calls + function["calls"].as_u64().unwrap_or(0),
        lost: sum.lost + function["lost"].as_u64().unwrap_or(0),
    }))
}

/// A probe without a body at the function's entry, and return unless `entry_only`.
///
/// # Errors
/// The kernel refuses, or the library lacks the function.
pub fn attach_empty(session: &Session, hammer: &Hammer, function: &str, entry_only: bool) -> Result<Hooks> {
    attach_empty_at(session, &hammer.library, function, entry_only)
}

/// The same in any library.
///
/// # Errors
/// As for [`attach_empty`].
pub fn attach_empty_at(session: &Session, library: &Path, function: &str, entry_only: bool) -> Result<Hooks> {
    let point = Point::entry(offset_of(library, function)?, 0, !entry_only);
    session.attach_empty(library, &[point], entry_only)
}

/// A session whose only use is its empty programs.
///
/// # Errors
/// The kernel refuses.
pub fn empty_session() -> Result<Session> {
    Session::load(&Setup {
        spare_rows: 1,
        ring_bytes: 4096,
        ..Setup::default()
    })
}

fn offset_of(library: &Path, function: &str) -> Result<u64> {
    let file = gpuscope::elf::ElfFile::open(library)?;
    let symbols = file.symbols()?;
    let symbol = symbols.iter().find(|symbol| symbol.name == function);
    Ok(symbol
        .with_context(|| format!("no {function} in {}", library.display()))?
        .file_offset)
}
