//! Which engine a run gets, and why.

use crate::cli::EngineChoice;
use crate::inside::standby::{self, Standby};
use crate::model::summary::Chosen;
use crate::probe::{EnginePlace, machine};
use crate::refusal::Usage;
use crate::tracer::Scope;
use anyhow::{Result, bail};
use std::ffi::OsStr;

/// For tests: `kernel` takes that engine where none was asked for, `inside` that one where a command is started.
const FORCED: &str = "GPUSCOPE_ENGINE";
const RUNS_ALREADY: &str = "what is traced runs already";

/// The engine, and why that one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub is: EnginePlace,
    /// What follows "because".
    pub why: String,
}

impl Place {
    /// For the summary.
    pub(super) fn chosen(&self) -> Chosen {
        let engine = match self.is {
            EnginePlace::Inside => "inside",
            EnginePlace::Kernel => "kernel",
        };
        Chosen {
            engine,
            why: self.why.clone(),
        }
    }
}

/// Decides by what was asked for, what is traced, and what we may.
///
/// # Errors
/// What runs already carries no agent.
pub fn place(choice: EngineChoice, scope: &Scope) -> Result<Place> {
    let refused = machine::programs_refused();
    let forced = std::env::var_os(FORCED).filter(|_| choice == EngineChoice::Auto);
    let forced = match forced.as_deref().and_then(OsStr::to_str) {
        Some("kernel") => EngineChoice::Kernel,
        Some("inside") if starts_a_command(scope) => EngineChoice::Inside,
        _ => return decide(choice, scope, refused),
    };
    let place = decide(forced, scope, refused)?;
    Ok(Place {
        why: format!("{FORCED} asks for it"),
        ..place
    })
}

fn starts_a_command(scope: &Scope) -> bool {
    matches!(scope, Scope::Processes(pids) if pids.is_empty())
}

/// `refused`: why programs in the kernel are.
fn decide(choice: EngineChoice, scope: &Scope, refused: Option<&'static str>) -> Result<Place> {
    let of = |is, why: &str| {
        let why = why.to_owned();
        Ok(Place { is, why })
    };
    match (choice, refused) {
        (EngineChoice::Inside, _) => {
            reaches(scope).and_then(|()| of(EnginePlace::Inside, "--engine inside asks for it"))
        }
        (EngineChoice::Kernel, _) => of(EnginePlace::Kernel, "--engine kernel asks for it"),
        (EngineChoice::Auto, Some(why)) if reaches(scope).is_ok() => of(EnginePlace::Inside, why),
        (EngineChoice::Auto, Some(why)) => match unready(scope) {
            Some(unready) => bail!("{why}, and from inside: {unready}"),
            None => of(EnginePlace::Kernel, RUNS_ALREADY),
        },
        (EngineChoice::Auto, None) => of(EnginePlace::Kernel, "we may load programs into the kernel"),
    }
}

/// Whether all that is traced can carry the agent.
///
/// # Errors
/// Something runs without it.
fn reaches(scope: &Scope) -> Result<()> {
    let Scope::Processes(pids) = scope else {
        bail!(Usage(
            "--engine inside: not every process carries the agent\nhint: -p PID, or -- CMD; or --engine kernel, as root"
                .to_owned()
        ));
    };
    match pids.iter().find(|pid| standby::of(**pid) != Standby::Ready) {
        Some(pid) => bail!("{}", words(*pid)),
        None => Ok(()),
    }
}

/// Of processes that carry the agent, why one cannot be traced yet.
fn unready(scope: &Scope) -> Option<String> {
    let Scope::Processes(pids) = scope else { return None };
    let carried = |pid: &&u32| !matches!(standby::of(**pid), Standby::Ready | Standby::Absent);
    let unready = pids.iter().find(carried);
    unready.map(|pid| words(*pid))
}

fn words(pid: u32) -> String {
    let standing = standby::of(pid);
    format!("{}\nhint: {}", standing.words(pid), standing.hint(pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(choice: EngineChoice, scope: &Scope, may_load: bool) -> Option<EnginePlace> {
        let refused = (!may_load).then_some("it is too old");
        decide(choice, scope, refused).ok().map(|place| place.is)
    }

    #[test]
    fn a_command_is_traced_from_inside_where_the_kernel_refuses_us() {
        let (command, running) = (Scope::Processes(Vec::new()), Scope::Processes(vec![1]));
        let (inside, kernel) = (Some(EnginePlace::Inside), Some(EnginePlace::Kernel));
        assert_eq!(of(EngineChoice::Auto, &command, false), inside);
        assert_eq!(of(EngineChoice::Auto, &command, true), kernel);
        // these say themselves what is missing
        assert_eq!(of(EngineChoice::Auto, &running, false), kernel);
        assert_eq!(of(EngineChoice::Kernel, &command, false), kernel);
        assert_eq!(of(EngineChoice::Inside, &command, true), inside);
    }

    #[test]
    fn each_says_why() {
        let command = Scope::Processes(Vec::new());
        let why = |choice, scope: &Scope, refused| decide(choice, scope, refused).unwrap().why;
        assert_eq!(why(EngineChoice::Inside, &command, None), "--engine inside asks for it");
        assert_eq!(why(EngineChoice::Kernel, &command, None), "--engine kernel asks for it");
        assert_eq!(
            why(EngineChoice::Auto, &command, Some("it is too old")),
            "it is too old"
        );
        assert_eq!(
            why(EngineChoice::Auto, &Scope::All, Some("it is too old")),
            RUNS_ALREADY
        );
    }

    #[test]
    fn what_runs_already_carries_no_agent() {
        for scope in [Scope::All, Scope::Processes(vec![1])] {
            assert_eq!(of(EngineChoice::Inside, &scope, true), None);
        }
    }
}
