//! Which processes are meant, by what they are labelled with or by the cgroup that they run in.

use super::Owner;
use super::label::{Label, WrongLabel};
use crate::catalog::glob_matches;
use std::fmt;
use std::str::FromStr;

/// The word for a process's cgroup, which is no label.
const CGROUP: &str = "cgroup";

/// Processes whose label, or path of a cgroup, matches a pattern: `LABEL=GLOB`, `cgroup=GLOB`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// `None`: the cgroup.
    label: Option<Label>,
    glob: String,
}

/// Why something chooses no processes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongChoice {
    #[error("{0:?} is not LABEL=GLOB\nhint: such as unit=render-*.service or cgroup=/batch.slice/*")]
    NoPattern(String),
    #[error("{0}, or cgroup")]
    Label(WrongLabel),
}

impl Choice {
    /// The label that a process has to have; `None`: where it runs is enough.
    #[must_use]
    pub fn label(&self) -> Option<&Label> {
        self.label.as_ref()
    }

    /// Whether it is one that belongs to `owner`, which may not be known yet, and runs in `cgroups`: its path in each hierarchy.
    pub(super) fn is_of(&self, owner: Option<&Owner>, cgroups: impl FnOnce() -> Vec<String>) -> bool {
        match &self.label {
            Some(label) => {
                let value = owner.and_then(|owner| owner.get(&label.name()));
                value.is_some_and(|value| glob_matches(&self.glob, value))
            }
            None => cgroups().iter().any(|path| glob_matches(&self.glob, path)),
        }
    }
}

/// As it is written in a configuration.
impl fmt::Display for Choice {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match &self.label {
            Some(label) => write!(out, "{label}={}", self.glob),
            None => write!(out, "{CGROUP}={}", self.glob),
        }
    }
}

impl FromStr for Choice {
    type Err = WrongChoice;

    fn from_str(text: &str) -> Result<Choice, WrongChoice> {
        let parts = text.split_once('=').filter(|(_, glob)| !glob.is_empty());
        let (name, glob) = parts.ok_or_else(|| WrongChoice::NoPattern(text.to_owned()))?;
        let label = match name {
            CGROUP => None,
            name => Some(name.parse().map_err(WrongChoice::Label)?),
        };
        Ok(Choice {
            label,
            glob: glob.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(text: &str) -> Choice {
        text.parse().unwrap()
    }

    fn owner(labels: &[(&str, &str)]) -> Owner {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Owner {
            labels: labels.iter().map(own).collect(),
        }
    }

    #[test]
    fn a_label_has_to_match_as_a_whole() {
        let owner = owner(&[("unit", "render-7.service"), ("env_team", "a=b")]);
        let is_of = |text: &str| choice(text).is_of(Some(&owner), || panic!("no cgroup is asked for"));
        for text in ["unit=render-7.service", "unit=render-*", "env:TEAM=a=b", "env:TEAM=a?b"] {
            assert!(is_of(text), "{text}");
        }
        for text in ["unit=render", "unit=*.slice", "comm=*", "env:TEAM=a"] {
            assert!(!is_of(text), "{text}");
        }
        assert!(!choice("unit=*").is_of(None, Vec::new), "whose it is, is not known yet");
    }

    #[test]
    fn a_cgroup_is_a_path_in_any_hierarchy() {
        let paths = || vec!["/".to_owned(), "/batch.slice/a/b".to_owned()];
        for (text, expected) in [
            ("cgroup=/batch.slice/*", true),
            ("cgroup=/batch.slice", false),
            ("cgroup=/other/*", false),
        ] {
            assert_eq!(choice(text).is_of(None, paths), expected, "{text}");
        }
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        for text in ["unit=a*", "cgroup=/a,b/*", "env:TEAM=x=y", "job=7"] {
            assert_eq!(choice(text).to_string(), text);
        }
    }

    #[test]
    fn what_chooses_nothing_is_refused_with_a_cure() {
        for text in ["", "unit", "unit=", "="] {
            let refused = text.parse::<Choice>().unwrap_err();
            assert_eq!(refused, WrongChoice::NoPattern(text.to_owned()));
        }
        let refused = "uint=a".parse::<Choice>().unwrap_err().to_string();
        assert!(
            refused.starts_with("there is no label \"uint\"") && refused.ends_with("env:NAME, or cgroup"),
            "{refused}"
        );
    }
}
