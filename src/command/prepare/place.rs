//! Which engine a run gets, and why.

use crate::cli::EngineChoice;
use crate::probe::{EnginePlace, machine};
use crate::refusal::Usage;
use crate::tracer::Scope;
use anyhow::{Result, bail};

/// For tests: `inside` takes that engine where none was asked for and a command is started.
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
    let refused = machine::programs_refused();
    let is_forced = choice == EngineChoice::Auto && std::env::var_os(FORCED).is_some_and(|engine| engine == "inside");
    if is_forced && starts_a_command(scope) {
        return decide(EngineChoice::Inside, scope, refused);
    }
    decide(choice, scope, refused)
}

fn starts_a_command(scope: &Scope) -> bool {
    matches!(scope, Scope::Processes(pids) if pids.is_empty())
}

/// `refused`: why programs in the kernel are.
fn decide(choice: EngineChoice, scope: &Scope, refused: Option<&'static str>) -> Result<Place> {
    let starts = starts_a_command(scope);
    let of = |is, why| Ok(Place { is, why });
    match choice {
        EngineChoice::Inside if !starts => bail!(Usage(
            "--engine inside: only a command that gpuscope starts loads its agent\nhint: -- CMD; or --engine kernel, as root"
                .to_owned()
        )),
        EngineChoice::Inside => of(EnginePlace::Inside, None),
        EngineChoice::Auto if starts && refused.is_some() => of(EnginePlace::Inside, refused),
        EngineChoice::Auto | EngineChoice::Kernel => of(EnginePlace::Kernel, None),
    }
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
