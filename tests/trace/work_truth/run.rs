//! A program of the simulator, watched.

use super::log::{Log, Logs};
use super::support::{Gpuscope, Trace, sim_text};
use serde_json::Value;

/// What the program counted itself, and what it planted, comes after that.
const OWN: &str = "GPUSIM-WORK ";

/// A run that has ended.
pub struct Run {
    pub name: String,
    pub trace: Trace,
    pub log: Log,
}

/// `PROGRAM ARGUMENTS…` of the simulator as a command line.
pub fn command_of(text: &str) -> Vec<String> {
    let (program, arguments) = text.split_once(' ').expect("arguments");
    let program = sim_text(program);
    [program.as_str()]
        .into_iter()
        .chain(arguments.split(' '))
        .map(str::to_owned)
        .collect()
}

/// Runs `PROGRAM ARGUMENTS…` of the simulator under gpuscope, with options of that and `NAME=VALUE`s.
pub fn watch(text: &str, options: &[&str], settings: &[(&str, &str)]) -> Run {
    let set = |gpuscope: Gpuscope, (name, value): &(&str, &str)| gpuscope.env(name, value);
    watch_as(&format!("{text} {settings:?}"), text, options, |gpuscope| {
        settings.iter().fold(gpuscope, set)
    })
}

/// The same, attached in that way.
pub fn watch_by(way: &str, text: &str) -> Run {
    watch_as(&format!("{text} by {way}"), text, &[], |gpuscope| gpuscope.tier(way))
}

fn watch_as(name: &str, text: &str, options: &[&str], set: impl FnOnce(Gpuscope) -> Gpuscope) -> Run {
    let (logs, command) = (Logs::new(), command_of(text));
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let trace = set(logs.of(Gpuscope::run(options, &command))).finish().ok();
    Run {
        name: name.to_owned(),
        trace,
        log: logs.only(),
    }
}

impl Run {
    /// What gpuscope told of the program's work.
    pub fn report(&self) -> &Value {
        super::told::only(&self.trace)
    }

    /// What the program itself says of its work.
    pub fn own(&self) -> Value {
        let line = self.trace.stdout.lines().find_map(|line| line.strip_prefix(OWN));
        line.expect("its own counts").parse().expect("JSON")
    }
}
