//! A running hammer.c, or caller.py: calls a function as often and as fast as it is told.

use crate::Folder;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// One burst of calls.
#[derive(Debug, Clone, Copy)]
pub struct Burst<'a> {
    /// Or several with commas between them, called in turn.
    pub function: &'a str,
    pub calls: u64,
    pub threads: u32,
    /// Calls a second of all threads; 0: at full speed.
    pub rate: u64,
}

/// What the hammer says of a burst.
#[derive(Debug, Clone, Copy)]
pub struct Made {
    /// CPU time of the threads that called.
    pub ns_per_call: f64,
    pub calls: u64,
    pub seconds: f64,
}

/// What calls, and below how many frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    Native(u32),
    Python(u32),
}

impl Caller {
    /// Without its library, which comes before the number of frames.
    fn program(self, folder: &Folder) -> (Vec<PathBuf>, u32) {
        match self {
            Caller::Native(frames) => (vec![folder.file("hammer")], frames),
            Caller::Python(frames) => (vec!["python3".into(), folder.file("caller.py")], frames),
        }
    }

    fn words(self, folder: &Folder, library: &Path) -> Vec<PathBuf> {
        let (mut words, frames) = self.program(folder);
        words.extend([library.to_owned(), frames.to_string().into()]);
        words
    }
}

/// A process that waits for bursts to make, with a probed library of its own.
pub struct Hammer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub library: PathBuf,
    /// Calls made so far.
    pub made: u64,
}

impl Hammer {
    /// Starts one; `owner` names its copy of the library.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(folder: &Folder, owner: &str) -> Result<Hammer> {
        Hammer::start_of(Caller::Native(0), folder, owner)
    }

    /// The same of another caller.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_of(caller: Caller, folder: &Folder, owner: &str) -> Result<Hammer> {
        let library = folder.library(owner)?;
        let words = caller.words(folder, &library);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        Hammer::start_as(command, library, "cudaMalloc")
    }

    /// Starts one under `gpuscope run --engine inside` with these options; its summary goes to the file.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn inside(folder: &Folder, owner: &str, options: &[&str]) -> Result<(Hammer, PathBuf)> {
        Hammer::inside_of(Caller::Native(0), folder, owner, options)
    }

    /// The same of another caller.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn inside_of(caller: Caller, folder: &Folder, owner: &str, options: &[&str]) -> Result<(Hammer, PathBuf)> {
        let library = folder.library(owner)?;
        let words = folder.file(&format!("{owner}.stderr"));
        let mut command = Command::new(folder.file("gpuscope"));
        command.args(["run", "--engine", "inside", "--getters", "--summary", "json"]);
        command.args(options).arg("--").args(caller.words(folder, &library));
        command.stderr(File::create(&words)?);
        // of a function that none of these options selects
        let mut hammer = Hammer::start_as(command, library, "cudaStreamSynchronize")?;
        // the one that it begins with, where all are counted
        hammer.made = u64::from(!options.contains(&"--filter") || options.contains(&"*"));
        Ok((hammer, words))
    }

    /// Starts one under `gpuscope preload`: it can be traced, and is not.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn standing_by(folder: &Folder, owner: &str) -> Result<Hammer> {
        let library = folder.library(owner)?;
        let mut command = Command::new(folder.file("gpuscope"));
        command
            .args(["preload", "--folder"])
            .arg(folder.file("state"))
            .arg("--");
        command.arg(folder.file("hammer")).arg(&library);
        Hammer::start_as(command, library, "cudaMalloc")
    }

    /// Starts `program` with a library that has `function`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn of(program: &Path, library: PathBuf, function: &str) -> Result<Hammer> {
        let mut command = Command::new(program);
        command.arg(&library);
        Hammer::start_as(command, library, function)
    }

    fn start_as(mut command: Command, library: PathBuf, function: &str) -> Result<Hammer> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("failed to start the hammer")?;
        let input = Some(child.stdin.take().context("the hammer has no stdin")?);
        let output = BufReader::new(child.stdout.take().context("the hammer has no stdout")?);
        let mut hammer = Hammer {
            child,
            input,
            output,
            library,
            made: 0,
        };
        // once answered, the library is mapped
        hammer.strike(Burst {
            function,
            calls: 1,
            threads: 1,
            rate: 0,
        })?;
        hammer.made = 0;
        Ok(hammer)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Makes the calls and waits for them.
    ///
    /// # Errors
    /// The hammer has ended.
    pub fn strike(&mut self, burst: Burst<'_>) -> Result<Made> {
        let Burst {
            function,
            calls,
            threads,
            rate,
        } = burst;
        let input = self.input.as_mut().context("the hammer has ended")?;
        writeln!(input, "{function} {calls} {threads} {rate}").context("the hammer has ended")?;
        let mut line = String::new();
        self.output.read_line(&mut line).context("the hammer has ended")?;
        let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [ns_per_call, calls, seconds] = numbers[..] else {
            anyhow::bail!("the hammer answered {line:?}");
        };
        self.made += calls as u64;
        Ok(Made {
            ns_per_call,
            calls: calls as u64,
            seconds,
        })
    }
}

impl Hammer {
    /// Ends it, and whoever has started it.
    ///
    /// # Errors
    /// It does not end.
    pub fn end(&mut self) -> Result<()> {
        // at the end of its input
        drop(self.input.take());
        self.child.wait().context("failed to wait for the hammer")?;
        Ok(())
    }
}

impl Drop for Hammer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
