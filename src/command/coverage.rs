//! What can still be told when only some functions are traced, and what is refused because it cannot.

use crate::catalog::{Catalog, Layer};
use crate::cli::Stacks;
use crate::filter::Filter;
use crate::probe::{self, EnginePlace};
use crate::refusal::Usage;
use crate::rule::Rule;
use anyhow::{Result, bail};

/// What can still be told when only some functions are traced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Coverage {
    /// Who holds memory.
    pub memory: bool,
    /// What devices are given to do, and when it is done.
    pub work: bool,
    driver: bool,
    runtime: bool,
    /// Why no return can be hooked, on a kernel where it would harm the program.
    pub refused: Option<String>,
}

impl Coverage {
    /// Of the functions that `filter` selects, as `place` sees them.
    pub(crate) fn of(filter: &Filter, catalog: &Catalog, place: EnginePlace) -> Coverage {
        let refused = match place {
            EnginePlace::Kernel => probe::machine::returns_refused(),
            // nobody's return address is replaced
            EnginePlace::Inside => None,
        };
        let memory = refused.is_none() && filter.covers_memory(catalog);
        Coverage {
            memory,
            work: memory && filter.covers_work(catalog),
            driver: filter.has_layer(Layer::Driver),
            runtime: filter.has_layer(Layer::Runtime),
            refused,
        }
    }

    /// A rule that could not match would always let pass.
    ///
    /// # Errors
    /// Says why it could not, and the cure.
    pub(crate) fn check_rule(&self, rule: Rule) -> Result<()> {
        match (rule, &self.refused) {
            // whether findings are looked for depends on more than functions
            (Rule::Xid | Rule::Finding { .. }, _) => Ok(()),
            (Rule::Launches { .. }, _) if self.work => Ok(()),
            (Rule::Launches { .. }, _) => bail!(Usage(
                "--fail-on launches needs the driver's launches, which --layer or --filter leaves out\n\
                 hint: drop --layer and --filter"
                    .to_owned()
            )),
            (Rule::Leak { .. }, None) if self.memory => Ok(()),
            (Rule::Error, None) if self.driver || self.runtime => Ok(()),
            (Rule::Leak { .. }, Some(reason)) => bail!("--fail-on leak cannot be told: {reason}"),
            (Rule::Error, Some(reason)) => bail!("--fail-on error cannot be told: {reason}"),
            (Rule::Error, None) => bail!(Usage(
                "--fail-on error needs calls of CUDA, which --layer leaves out\nhint: --layer runtime,driver"
                    .to_owned()
            )),
            (Rule::Leak { .. }, None) => bail!(Usage(
                "--fail-on leak needs every function that takes or gives back memory, and --filter leaves some out\n\
                 hint: drop --filter; gpuscope leaks --fail-on leak traces these functions alone"
                    .to_owned()
            )),
        }
    }

    /// Stacks are taken where calls are followed one by one.
    ///
    /// # Errors
    /// Says why they are not, and the cure.
    pub(crate) fn check_stacks(&self, stacks: Option<Stacks>) -> Result<()> {
        let Some(stacks) = stacks.filter(|stacks| *stacks != Stacks::None) else {
            return Ok(());
        };
        let (needed, followed) = match stacks.of_work() {
            true => (
                "of the driver that gives the GPU work or waits for it, and every one ",
                self.work,
            ),
            false => ("", self.memory),
        };
        let name = stacks.name();
        match (followed, &self.refused) {
            (true, _) => Ok(()),
            (false, Some(reason)) => bail!("--stacks {name} cannot be taken: {reason}"),
            (false, None) => bail!(Usage(format!(
                "--stacks {name} needs every function {needed}that takes or gives back memory, and {}",
                self.cure()
            ))),
        }
    }

    /// `stacks`, or what can be taken of them.
    #[must_use]
    pub(crate) fn most_stacks(&self, stacks: Stacks) -> Option<Stacks> {
        match (stacks.of_work() && !self.work, self.memory) {
            (false, true) => Some(stacks),
            (true, true) => Some(Stacks::Alloc),
            (_, false) => None,
        }
    }

    fn cure(&self) -> &'static str {
        match self.driver {
            true => "--filter leaves some out\nhint: drop --filter",
            false => "--layer leaves the driver out\nhint: drop --layer",
        }
    }

    /// What the selection leaves untold.
    #[must_use]
    pub(crate) fn unseen(&self) -> Option<String> {
        if self.refused.is_some() {
            return self.refused.clone();
        }
        let what = "copies one by one, waits, and when the GPU was idle";
        let why = match self.driver {
            true => "they follow from many functions together, of which --filter leaves some out",
            false => "they are seen in the driver, which --layer leaves out",
        };
        (!self.work).then(|| format!("{what}: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage(rules: &[&str], layer: &str) -> Coverage {
        let catalog = Catalog::builtin().unwrap();
        let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
        let filter = Filter::parse(&rules, &[layer.to_owned()]).unwrap();
        Coverage {
            memory: filter.covers_memory(&catalog),
            work: filter.covers_memory(&catalog) && filter.covers_work(&catalog),
            driver: filter.has_layer(Layer::Driver),
            runtime: filter.has_layer(Layer::Runtime),
            refused: None,
        }
    }

    #[test]
    fn stacks_are_refused_where_their_calls_are_not_followed() {
        use Stacks::{All, Alloc, Launch, Sync};
        let refusal = |rules: &[&str], layer: &str, stacks: Stacks| {
            let checked = coverage(rules, layer).check_stacks(Some(stacks));
            checked.err().map(|error| error.to_string()).unwrap_or_default()
        };
        for stacks in [Alloc, Launch, Sync, All] {
            assert_eq!(refusal(&[], "all", stacks), "");
            let name = stacks.name();
            let said = refusal(&["@alloc"], "all", stacks);
            assert!(
                said.starts_with(&format!("--stacks {name} needs every function")),
                "{said}"
            );
            assert!(said.ends_with("hint: drop --filter"), "{said}");
        }
        for stacks in [Launch, Sync, All] {
            assert!(refusal(&[], "runtime", stacks).ends_with("hint: drop --layer"));
            assert!(refusal(&["!@sync"], "driver", stacks).ends_with("hint: drop --filter"));
        }
        assert_eq!(refusal(&["!@sync"], "all", Alloc), "");
        assert_eq!(refusal(&[], "runtime", Alloc), "");
    }

    #[test]
    fn a_selection_says_what_it_leaves_untold() {
        let said = |rules: &[&str], layer: &str| coverage(rules, layer).unseen().unwrap_or_default();
        assert_eq!(said(&[], "all"), "");
        assert_eq!(said(&["!cudaGetDevice", "!cuGetProcAddress*"], "driver"), "");
        assert!(said(&["@launch"], "all").contains("--filter leaves some out"));
        assert!(said(&[], "runtime").contains("--layer leaves out"));
    }

    #[test]
    fn a_rule_that_could_not_match_is_refused() {
        let said = |layer: &str, rule| match coverage(&[], layer).check_rule(rule) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        };
        assert_eq!(said("runtime", Rule::Error), "");
        assert!(said("kernel", Rule::Error).ends_with("hint: --layer runtime,driver"));
        assert_eq!(said("kernel", Rule::Xid), "");
    }

    #[test]
    fn a_kernel_that_refuses_returns_is_named_instead() {
        let refused = Coverage {
            memory: false,
            work: false,
            refused: Some("no returns here".to_owned()),
            ..coverage(&[], "all")
        };
        assert_eq!(refused.unseen().as_deref(), Some("no returns here"));
        let said = refused.check_stacks(Some(Stacks::Sync)).unwrap_err().to_string();
        assert_eq!(said, "--stacks sync cannot be taken: no returns here");
        assert!(refused.check_stacks(Some(Stacks::None)).is_ok() && refused.check_stacks(None).is_ok());
    }
}
