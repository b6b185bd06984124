//! Recordings and reports that keys begin: gpuscope itself, as a process of its own for each.
//!
//! What such a process says is the last line of the screen.

use crate::refusal::NO_THREAD;
use crate::text::quantity::escaped;
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// A recording that is asked to end writes its last rows.
const PATIENCE: Duration = Duration::from_secs(5);
const LEAKS_FOR: &str = "10s";

/// Recordings and reports that keys begin.
pub(super) struct Children {
    recordings: HashMap<u32, Recording>,
    others: Vec<(u32, Child)>,
    said: (Sender<String>, Receiver<String>),
}

struct Recording {
    child: Child,
    /// It was interrupted, which a second time ends it at once.
    ends: bool,
}

impl Recording {
    fn end(&mut self) {
        if !std::mem::replace(&mut self.ends, true) {
            interrupt(&self.child);
        }
    }
}

impl Children {
    pub(super) fn new() -> Children {
        Children {
            recordings: HashMap::new(),
            others: Vec::new(),
            said: channel(),
        }
    }

    /// Begins a recording of a process; what to say of that.
    pub(super) fn record(&mut self, pid: u32) -> Result<String> {
        let child = self.start(&["record", "-p", &pid.to_string()])?;
        self.recordings.insert(pid, Recording { child, ends: false });
        Ok(format!("recording {pid} to the folder traces; r ends it"))
    }

    /// Ends a recording of a process; `None`: there is none.
    pub(super) fn end_recording(&mut self, pid: u32) -> Option<String> {
        self.forget_ended();
        self.recordings.get_mut(&pid)?.end();
        Some(format!("the recording of {pid} ends"))
    }

    /// Begins a report of who holds memory.
    pub(super) fn leaks(&mut self, pid: u32) -> Result<String> {
        let file = format!("leaks_{pid}.txt");
        let words = format!("a report of {pid} is in {file} in {LEAKS_FOR}");
        let child = self.start(&["leaks", "-p", &pid.to_string(), "--duration", LEAKS_FOR, "-o", &file])?;
        self.others.push((pid, child));
        Ok(words)
    }

    /// Processes that are looked at.
    pub(super) fn processes(&mut self) -> impl Iterator<Item = u32> {
        self.forget_ended();
        let others = self.others.iter().map(|(pid, _)| *pid);
        self.recordings.keys().copied().chain(others)
    }

    /// Whether that process is looked at.
    pub(super) fn has(&mut self, pid: u32) -> bool {
        self.processes().any(|of| of == pid)
    }

    /// What one of them has said since this was last asked.
    pub(super) fn take_words(&self) -> Option<String> {
        self.said.1.try_iter().last()
    }

    fn forget_ended(&mut self) {
        let is_running = |child: &mut Child| matches!(child.try_wait(), Ok(None));
        self.recordings.retain(|_, recording| is_running(&mut recording.child));
        self.others.retain_mut(|(_, child)| is_running(child));
    }

    fn start(&self, arguments: &[&str]) -> Result<Child> {
        let own = std::env::current_exe().context("failed to find gpuscope itself")?;
        let mut command = Command::new(own);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("failed to start gpuscope {}", arguments.join(" ")))?;
        if let Some(stderr) = child.stderr.take() {
            let said = self.said.0.clone();
            let follow = move || {
                let lines = BufReader::new(stderr).lines().map_while(Result::ok);
                lines
                    .filter(|line| is_news(line))
                    .for_each(|line| drop(said.send(escaped(&line))));
            };
            std::thread::Builder::new()
                .name("words".to_owned())
                .spawn(follow)
                .context(NO_THREAD)?;
        }
        Ok(child)
    }
}

impl Drop for Children {
    /// Recordings are finished.
    fn drop(&mut self) {
        self.recordings.values_mut().for_each(Recording::end);
        self.others.iter().for_each(|(_, child)| interrupt(child));
        let recordings = self.recordings.values_mut().map(|recording| &mut recording.child);
        let others = self.others.iter_mut().map(|(_, child)| child);
        let mut children: Vec<&mut Child> = recordings.chain(others).collect();
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && children.iter_mut().any(|child| matches!(child.try_wait(), Ok(None))) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What it attaches to was asked for, and what one could do next is not said on a screen.
fn is_news(line: &str) -> bool {
    line.starts_with("gpuscope: ") && !line.ends_with("Ctrl-C ends it")
}

/// As Ctrl-C does.
fn interrupt(child: &Child) {
    // SAFETY: plain numbers; the child has not been waited for, so its id is its own
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
}
