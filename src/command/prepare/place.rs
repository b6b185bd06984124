//! Which engine a run gets, and why.

use crate::cli::EngineChoice;
use crate::inside::standby::{self, Standby};
use crate::probe::{EnginePlace, machine};
use crate::refusal::Usage;
use crate::tracer::Scope;
use anyhow::{Result, bail};
use std::ffi::OsStr;

/// For tests: `kernel` takes that engine where none was asked for, `inside` that one where a command is started.
const FORCED: &str = "GPUSCOPE_ENGINE";

/// The engine, and what to say of that where it was not asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub is: EnginePlace,
    pub why: Option<&'static str>,
}

/// Decides by what was asked for, what is traced, and what we may.
///
/// # Errors
/// What runs already carries no agent.
pub fn place(choice: EngineChoice, scope: &Scope) -> Result<Place> {
    let forced = std::env::var_os(FORCED).filter(|_| choice == EngineChoice::Auto);
    let choice = match forced.as_deref().and_then(OsStr::to_str) {
        Some("kernel") => EngineChoice::Kernel,
        Some("inside") if starts_a_command(scope) => EngineChoice::Inside,
        _ => choice,
    };
    decide(choice, scope, machine::programs_refused())
}

fn starts_a_command(scope: &Scope) -> bool {
    matches!(scope, Scope::Processes(pids) if pids.is_empty())
}

/// `refused`: why programs in the kernel are.
fn decide(choice: EngineChoice, scope: &Scope, refused: Option<&'static str>) -> Result<Place> {
    let of = |is, why| Ok(Place { is, why });
    match (choice, refused) {
        (EngineChoice::Inside, _) => of(EnginePlace::Inside, None).and_then(|place| reaches(scope).map(|()| place)),
        (EngineChoice::Auto, Some(_)) if reaches(scope).is_ok() => of(EnginePlace::Inside, refused),
        (EngineChoice::Auto, Some(why)) => match unready(scope) {
            Some(unready) => bail!("{why}, and from inside: {unready}"),
            None => of(EnginePlace::Kernel, None),
        },
        _ => of(EnginePlace::Kernel, None),
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
    fn what_runs_already_carries_no_agent() {
        for scope in [Scope::All, Scope::Processes(vec![1])] {
            assert_eq!(of(EngineChoice::Inside, &scope, true), None);
        }
    }
}
