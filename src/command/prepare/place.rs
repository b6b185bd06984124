//! Which engine a run gets, and why.

use super::{Subject, program};
use crate::catalog::{Catalog, Layer};
use crate::cli::{EngineChoice, Whose};
use crate::discover;
use crate::filter::Filter;
use crate::inside;
use crate::inside::standby::{self, Standby};
use crate::model::summary::Chosen;
use crate::probe::{EnginePlace, machine};
use crate::refusal::{Usage, hint_apart};
use crate::tracer::Scope;
use anyhow::{Result, bail};
use std::ffi::OsStr;

/// For tests: `kernel` takes that engine where none was asked for, `inside` that one where a command is started.
const FORCED: &str = "GPUSCOPE_ENGINE";
const CARRIES: &str = "what is traced runs already and carries an agent";
const RUNS_ALREADY: &str = "what is traced runs already";
const COSTS_LESS: &str = "what is traced runs already; it carries an agent, so --engine inside would cost it less";

/// The engine, and why that one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub is: EnginePlace,
    /// What follows "because".
    pub why: String,
    /// Why the program itself will not be seen all the same.
    pub hindrance: Option<String>,
}

impl Place {
    fn inside(why: impl Into<String>) -> Place {
        Place::of(EnginePlace::Inside, why)
    }

    fn kernel(why: impl Into<String>) -> Place {
        Place::of(EnginePlace::Kernel, why)
    }

    fn of(is: EnginePlace, why: impl Into<String>) -> Place {
        let why = why.into();
        let hindrance = None;
        Place { is, why, hindrance }
    }

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

/// What speaks for one engine or the other, where a command is started.
#[derive(Debug, Default, Clone)]
struct Need {
    /// What was asked for, and the kernel alone sees.
    kernel: Option<&'static str>,
    /// Why the agent can be laid nowhere.
    impossible: Option<String>,
    /// Why what is started will not load it.
    hindrance: Option<String>,
}

/// What was asked for of the engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub whose: &'a Whose,
    /// What of functions is traced that no agent sees.
    pub only_in_kernel: Option<&'static str>,
    /// Users' files name functions of any program.
    pub has_hooks: bool,
}

/// Decides by what was asked for, what is traced, and what we may.
///
/// # Errors
/// What runs already carries no agent.
pub(crate) fn place(asked: Asked, subject: &Subject) -> Result<Place> {
    let (scope, refused) = (subject.scope(), machine::programs_refused());
    let none = Need::default();
    let forced = std::env::var_os(FORCED).filter(|_| asked.whose.engine == EngineChoice::Auto);
    let forced = match (forced.as_deref().and_then(OsStr::to_str), subject) {
        (Some("kernel"), _) => EngineChoice::Kernel,
        (Some("inside"), Subject::Command(..)) => EngineChoice::Inside,
        _ if asked.whose.engine != EngineChoice::Auto => return decide(asked.whose.engine, &scope, refused, none),
        _ => return decide(EngineChoice::Auto, &scope, refused, need(asked, subject)?),
    };
    let place = decide(forced, &scope, refused, none)?;
    Ok(Place {
        why: format!("{FORCED} asks for it"),
        ..place
    })
}

/// The same of what runs already, where nothing was asked for.
///
/// # Errors
/// As [`place`].
pub(super) fn place_of_running(scope: &Scope) -> Result<Place> {
    decide(EngineChoice::Auto, scope, machine::programs_refused(), Need::default())
}

/// What of functions is traced that no agent sees.
pub(super) fn only_in_kernel(catalog: &Catalog, filter: &Filter) -> Option<&'static str> {
    if filter.has_layer(Layer::Kernel) {
        Some("--layer kernel asks for system calls")
    } else if catalog.rows.iter().any(|row| row.site.is_in_kernel()) {
        Some("functions of the kernel were asked for")
    } else {
        None
    }
}

fn need(asked: Asked, subject: &Subject) -> Result<Need> {
    let Subject::Command(command, start) = subject else {
        return Ok(Need::default());
    };
    let whose = asked.whose;
    let selects = whose.uid.is_some() || whose.cgroup.is_some() || !whose.comm.is_empty();
    let way = std::env::var_os("GPUSCOPE_TIER").is_some();
    let kernel = asked
        .only_in_kernel
        .or_else(|| selects.then_some("--uid, --cgroup and --comm select whom the kernel lets through"))
        .or_else(|| way.then_some("GPUSCOPE_TIER asks for a way of its own"));
    if kernel.is_some() {
        return Ok(Need {
            kernel,
            ..Need::default()
        });
    }
    let runner = super::runner(start)?;
    let possible = inside::is_possible(runner.is_some());
    Ok(Need {
        kernel,
        impossible: possible.err().map(|error| format!("{error:#}")),
        hindrance: program::hindrance(command, runner.as_ref(), asked.has_hooks),
    })
}

/// `refused`: why programs in the kernel are.
fn decide(choice: EngineChoice, scope: &Scope, refused: Option<&'static str>, need: Need) -> Result<Place> {
    match choice {
        EngineChoice::Inside => reaches(scope).map(|()| Place::inside("--engine inside asks for it")),
        EngineChoice::Kernel => Ok(Place::kernel("--engine kernel asks for it")),
        EngineChoice::Auto => match scope {
            Scope::Processes(pids) if pids.is_empty() => of_command(refused, need),
            running => of_running(running, refused),
        },
    }
}

fn of_command(refused: Option<&'static str>, need: Need) -> Result<Place> {
    if let Some(why) = need.kernel {
        // without rights it says itself which are missing
        return Ok(Place::kernel(why));
    }
    match (need.impossible, need.hindrance, refused) {
        (Some(why), _, Some(refused)) => bail!("{refused}, and from inside: {why}"),
        (Some(said), _, None) => {
            let (why, _) = hint_apart(&said);
            Ok(Place::kernel(format!("nothing can be loaded into programs: {why}")))
        }
        (None, Some(why), None) => Ok(Place::kernel(why)),
        (None, hindrance, _) => Ok(Place {
            hindrance,
            ..Place::inside("gpuscope starts the program")
        }),
    }
}

fn of_running(scope: &Scope, refused: Option<&'static str>) -> Result<Place> {
    match refused {
        Some(why) if reaches(scope).is_ok() => Ok(Place::inside(format!("{CARRIES}, and {why}"))),
        Some(why) => match unready(scope) {
            Some(unready) => bail!("{why}, and from inside: {unready}"),
            // it says itself what is missing
            None => Ok(Place::kernel(RUNS_ALREADY)),
        },
        None if reaches(scope).is_ok() => Ok(Place::kernel(COSTS_LESS)),
        None => Ok(Place::kernel(RUNS_ALREADY)),
    }
}

/// Whether of each process that was asked for, or of who descends from it, somebody carries the agent.
///
/// # Errors
/// Somebody does not.
fn reaches(scope: &Scope) -> Result<()> {
    let Scope::Processes(pids) = scope else {
        bail!(Usage(
            "--engine inside: not every process carries the agent\nhint: -p PID, or -- CMD; or --engine kernel, as root"
                .to_owned()
        ));
    };
    let has_ready = |pid: u32| {
        discover::descendants([pid])
            .into_iter()
            .any(|pid| standby::of(pid) == Standby::Ready)
    };
    match pids.iter().find(|pid| !has_ready(**pid)) {
        Some(pid) => bail!("{}", words(*pid)),
        None => Ok(()),
    }
}

/// Of processes that carry the agent, why one cannot be traced yet.
fn unready(scope: &Scope) -> Option<String> {
    let Scope::Processes(pids) = scope else { return None };
    let carried = |pid: &u32| !matches!(standby::of(*pid), Standby::Ready | Standby::Absent);
    discover::descendants(pids.iter().copied())
        .into_iter()
        .find(carried)
        .map(words)
}

fn words(pid: u32) -> String {
    let standing = standby::of(pid);
    format!("{}\nhint: {}", standing.words(pid), standing.hint(pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Scope {
        Scope::Processes(Vec::new())
    }

    /// The engine and why; or why none.
    fn decided(choice: EngineChoice, scope: &Scope, may_load: bool, need: &Need) -> (&'static str, String) {
        let refused = (!may_load).then_some("it is too old");
        match decide(choice, scope, refused, need.clone()) {
            Ok(place) => (place.chosen().engine, place.why),
            Err(error) => ("none", error.to_string()),
        }
    }

    #[test]
    fn what_is_started_is_traced_from_inside_where_that_sees_what_was_asked_for() {
        let none = Need::default();
        let kernel = Need {
            kernel: Some("--layer kernel"),
            ..Need::default()
        };
        let impossible = Need {
            impossible: Some("all noexec".to_owned()),
            ..Need::default()
        };
        let hindrance = Need {
            hindrance: Some("app is linked statically".to_owned()),
            ..Need::default()
        };
        for (need, may_load, engine, why) in [
            (&none, true, "inside", "gpuscope starts the program"),
            (&none, false, "inside", "gpuscope starts the program"),
            (&kernel, true, "kernel", "--layer kernel"),
            (&kernel, false, "kernel", "--layer kernel"),
            (
                &impossible,
                true,
                "kernel",
                "nothing can be loaded into programs: all noexec",
            ),
            (&impossible, false, "none", "it is too old, and from inside: all noexec"),
            (&hindrance, true, "kernel", "app is linked statically"),
            (&hindrance, false, "inside", "gpuscope starts the program"),
        ] {
            let found = decided(EngineChoice::Auto, &command(), may_load, need);
            assert_eq!(found, (engine, why.to_owned()), "{need:?}, may load: {may_load}");
        }
    }

    #[test]
    fn who_cannot_be_reached_is_named_where_nothing_else_reaches_it() {
        let need = Need {
            hindrance: Some("app is linked statically".to_owned()),
            ..Need::default()
        };
        let place = |refused| decide(EngineChoice::Auto, &command(), refused, need.clone()).unwrap();
        assert_eq!(
            place(Some("it is too old")).hindrance.as_deref(),
            Some("app is linked statically")
        );
        assert_eq!(place(None).hindrance, None);
    }

    #[test]
    fn what_runs_already_is_traced_from_the_kernel() {
        let running = Scope::Processes(vec![std::process::id()]);
        for scope in [&running, &Scope::All] {
            for may_load in [true, false] {
                let found = decided(EngineChoice::Auto, scope, may_load, &Need::default());
                assert_eq!(found, ("kernel", RUNS_ALREADY.to_owned()), "{scope:?}");
            }
            let (engine, why) = decided(EngineChoice::Inside, scope, true, &Need::default());
            assert_eq!(engine, "none", "it carries no agent: {why}");
        }
    }

    #[test]
    fn who_asks_for_an_engine_gets_it() {
        let need = Need {
            kernel: Some("--layer kernel"),
            ..Need::default()
        };
        for (choice, engine) in [(EngineChoice::Inside, "inside"), (EngineChoice::Kernel, "kernel")] {
            let found = decided(choice, &command(), true, &need);
            assert_eq!(found, (engine, format!("--engine {engine} asks for it")));
        }
    }

    #[test]
    fn what_only_the_kernel_sees_is_known_by_layer_and_row() {
        let of = |layers: &[&str], group: Option<&str>| {
            let mut catalog = Catalog::builtin().unwrap();
            group
                .into_iter()
                .for_each(|group| catalog.add_kernel_group(group).unwrap());
            let layers: Vec<String> = layers.iter().map(|layer| (*layer).to_owned()).collect();
            only_in_kernel(&catalog, &Filter::parse(&[], &layers).unwrap())
        };
        assert_eq!(of(&["runtime", "driver"], None), None);
        assert!(of(&["all"], None).is_some() && of(&["kernel"], None).is_some());
        assert!(of(&["driver"], Some("ioctl")).is_some());
    }
}
