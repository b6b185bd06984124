//! Which labels are wanted, by what words, and under which names they appear.

use std::fmt;
use std::str::FromStr;

/// Something that is known of a process and can be a label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Label {
    /// Name of the main thread, cut by the kernel to 15 bytes.
    Comm,
    /// Path of the program, as the process sees it.
    Exe,
    /// Its arguments, with spaces between.
    Cmdline,
    /// A variable of the environment that the program was started with.
    Env(String),
    ContainerId,
    Namespace,
    Pod,
    Container,
    PodUid,
    /// Of systemd.
    Unit,
    SlurmJob,
    SlurmStep,
    /// Whose process it is, by name.
    User,
    /// Of Slurm, PBS, LSF or, in a pod, what controls it.
    Job,
    /// Script or module rather than interpreter.
    Program,
    /// In a parallel program.
    Rank,
    Pid,
}

/// All but [`Label::Env`].
const PLAIN: [(Label, &str); 16] = [
    (Label::Comm, "comm"),
    (Label::Exe, "exe"),
    (Label::Cmdline, "cmdline"),
    (Label::ContainerId, "container_id"),
    (Label::Namespace, "namespace"),
    (Label::Pod, "pod"),
    (Label::Container, "container"),
    (Label::PodUid, "pod_uid"),
    (Label::Unit, "unit"),
    (Label::SlurmJob, "slurm_job"),
    (Label::SlurmStep, "slurm_step"),
    (Label::User, "user"),
    (Label::Job, "job"),
    (Label::Program, "program"),
    (Label::Rank, "rank"),
    (Label::Pid, "pid"),
];
const LONGEST_VARIABLE_BYTES: usize = 128;

/// Why something is no label, or not beside another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongLabel {
    #[error("there is no label {0:?}\nhint: {all}", all = words())]
    Unknown(String),
    #[error("env: needs the name of a variable, not {0:?}\nhint: env:JOB_NAME")]
    Variable(String),
    #[error("{0} and {1} would both be the label {name}\nhint: leave one out", name = .0.name())]
    SameName(Label, Label),
}

fn words() -> String {
    let names: Vec<&str> = PLAIN.iter().map(|(_, name)| *name).collect();
    format!("{}, env:NAME", names.join(", "))
}

impl Label {
    /// The name of the label: `[a-z0-9_]`.
    #[must_use]
    pub fn name(&self) -> String {
        let variable = match self {
            Label::Env(variable) => variable,
            // `job` is Prometheus' own, for what it scrapes
            Label::Job => return "batch_job".to_owned(),
            plain => return plain.to_string(),
        };
        let clean = |character: char| match character.to_ascii_lowercase() {
            kept @ ('a'..='z' | '0'..='9') => kept,
            _ => '_',
        };
        format!("env_{}", variable.chars().map(clean).collect::<String>())
    }

    /// Whether it names what runs, not where: it changes when a process executes another program.
    #[must_use]
    pub(crate) fn is_of_program(&self) -> bool {
        matches!(self, Label::Comm | Label::Pid | Label::Job) || self.is_read_alone()
    }

    /// Whether it names where a process runs; a job does both.
    #[must_use]
    pub(crate) fn is_of_place(&self) -> bool {
        !self.is_of_program() || *self == Label::Job
    }

    /// Whether only a look at the process tells it: the kernel does not tell it with a call.
    #[must_use]
    pub(crate) fn is_read_alone(&self) -> bool {
        matches!(
            self,
            Label::Exe | Label::Cmdline | Label::Env(_) | Label::User | Label::Program | Label::Rank
        )
    }

    /// Whether each program has it.
    #[must_use]
    pub(crate) fn is_never_empty(&self) -> bool {
        matches!(self, Label::Exe | Label::Cmdline | Label::Program)
    }

    /// Whether it is known from a container runtime or the kubelet alone.
    #[must_use]
    pub(crate) fn is_name_of_container(&self) -> bool {
        matches!(self, Label::Namespace | Label::Pod | Label::Container | Label::Job)
    }
}

/// As it is written in a configuration.
impl fmt::Display for Label {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match (self, PLAIN.iter().find(|(label, _)| label == self)) {
            (Label::Env(variable), _) => write!(out, "env:{variable}"),
            (_, Some((_, name))) => out.write_str(name),
            (_, None) => Err(fmt::Error),
        }
    }
}

impl FromStr for Label {
    type Err = WrongLabel;

    fn from_str(text: &str) -> Result<Label, WrongLabel> {
        if let Some(variable) = text.strip_prefix("env:") {
            let fits = !variable.is_empty() && variable.len() <= LONGEST_VARIABLE_BYTES;
            let fits = fits && !variable.contains(|c: char| c == '=' || c.is_control() || c.is_whitespace());
            let label = fits.then(|| Label::Env(variable.to_owned()));
            return label.ok_or_else(|| WrongLabel::Variable(variable.to_owned()));
        }
        let found = PLAIN.into_iter().find(|(_, name)| *name == text);
        found.map_or_else(|| Err(WrongLabel::Unknown(text.to_owned())), |(label, _)| Ok(label))
    }
}

/// What processes are told apart by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    labels: Vec<Label>,
    /// How many owners there can be at one time; processes of further ones are counted for [`super::Owner::other`].
    pub max_owners: usize,
}

impl Wanted {
    /// These labels, in this order; the same one twice is there once.
    ///
    /// # Errors
    /// Two would have one name.
    pub fn new(labels: Vec<Label>, max_owners: usize) -> Result<Wanted, WrongLabel> {
        let mut kept: Vec<Label> = Vec::new();
        for label in labels {
            match kept.iter().find(|known| known.name() == label.name()) {
                None => kept.push(label),
                Some(same) if *same == label => {}
                Some(other) => return Err(WrongLabel::SameName(other.clone(), label)),
            }
        }
        Ok(Wanted {
            labels: kept,
            max_owners,
        })
    }

    #[must_use]
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// Whether the environment says one of them.
    #[must_use]
    pub(crate) fn reads_environment(&self) -> bool {
        let is_there = |label: &Label| matches!(label, Label::Env(_) | Label::Job | Label::Rank);
        self.labels.iter().any(is_there)
    }

    /// Whether the kubelet alone may know one of them.
    #[must_use]
    pub(crate) fn asks_for_controllers(&self) -> bool {
        self.labels.contains(&Label::Job)
    }
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted {
            labels: vec![
                Label::Comm,
                Label::Namespace,
                Label::Pod,
                Label::Container,
                Label::ContainerId,
                Label::Unit,
                Label::SlurmJob,
            ],
            max_owners: 1000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_label_is_written_as_it_is_read() {
        for (label, name) in PLAIN {
            assert_eq!((label.to_string().as_str(), name.parse()), (name, Ok(label.clone())));
            let shown = if label == Label::Job { "batch_job" } else { name };
            assert_eq!(label.name(), shown);
        }
        let env: Label = "env:JOB_NAME".parse().unwrap();
        assert_eq!(
            (env.to_string().as_str(), env.name().as_str()),
            ("env:JOB_NAME", "env_job_name")
        );
    }

    #[test]
    fn an_unknown_word_is_refused_with_those_that_exist() {
        for word in ["", "jobs", "COMM", "comm ", "environ", "slurm"] {
            let words = word.parse::<Label>().unwrap_err().to_string();
            assert!(
                words.contains("comm, exe, cmdline, container_id") && words.ends_with("env:NAME"),
                "{words}"
            );
        }
    }

    #[test]
    fn a_variable_has_a_name_that_an_environment_can_hold() {
        for word in [
            "env:",
            "env:A=B",
            "env:A B",
            "env:A\n",
            &format!("env:{}", "A".repeat(129)),
        ] {
            assert!(
                matches!(word.parse::<Label>(), Err(WrongLabel::Variable(_))),
                "{word:?}"
            );
        }
    }

    #[test]
    fn two_labels_of_one_name_are_refused_and_the_same_twice_is_one() {
        let labels = |words: &[&str]| words.iter().map(|word| word.parse().unwrap()).collect();
        let same = Wanted::new(labels(&["env:A-B", "comm", "env:a_b"]), 10).unwrap_err();
        assert!(
            same.to_string()
                .starts_with("env:A-B and env:a_b would both be the label env_a_b"),
            "{same}"
        );
        let once = Wanted::new(labels(&["pid", "comm", "pid"]), 10).unwrap();
        assert_eq!(once.labels(), [Label::Pid, Label::Comm]);
    }

    proptest! {
        #[test]
        fn the_name_of_a_label_is_one_for_every_format(variable in "[^=\\s\\p{Cc}]{1,40}") {
            let label: Label = format!("env:{variable}").parse().unwrap();
            let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            prop_assert!(label.name().chars().all(fits), "{}", label.name());
        }
    }
}
