//! The choice of whose call stacks are taken, of the commands that trace calls.

use clap::ValueEnum;

/// Whose call stacks are taken and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stacks {
    /// Of calls that allocate memory
    Alloc,
    /// Also of calls that give the GPU work: launches, copies, memsets
    Launch,
    /// Also of calls that wait for the GPU: synchronisation, blocking copies
    Sync,
    /// Of all these
    All,
    /// Of none, for the summary either; nor samples of threads that are outside CUDA or in a call that hangs. Costs less
    None,
}

impl Stacks {
    /// Of calls that give a device work.
    #[must_use]
    pub(crate) fn of_launches(self) -> bool {
        matches!(self, Stacks::Launch | Stacks::All)
    }

    /// Of calls that wait for one.
    #[must_use]
    pub(crate) fn of_waits(self) -> bool {
        matches!(self, Stacks::Sync | Stacks::All)
    }

    /// Of either.
    #[must_use]
    pub(crate) fn of_work(self) -> bool {
        self.of_launches() || self.of_waits()
    }

    /// The word on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Stacks::Alloc => "alloc",
            Stacks::Launch => "launch",
            Stacks::Sync => "sync",
            Stacks::All => "all",
            Stacks::None => "none",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    #[test]
    fn the_name_of_a_choice_of_stacks_is_its_word() {
        for stacks in Stacks::value_variants() {
            let word = stacks.to_possible_value().unwrap();
            assert_eq!(stacks.name(), word.get_name());
            for command in ["run", "trace"] {
                let words = ["gpuscope", command, "--stacks", stacks.name()];
                let rest: &[&str] = if command == "run" { &["--", "true"] } else { &["--all"] };
                assert!(Cli::try_parse_from([&words, rest].concat()).is_ok(), "{words:?}");
            }
        }
    }
}
