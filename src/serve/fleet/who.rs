//! Whose something is, by the labels of a series, and by those of others.

use super::answer::{Answers, Series, of};
use super::question::Question;
use std::collections::BTreeMap;

/// Whose something is. Empty: no label says it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Who {
    pub user: String,
    /// Of a scheduler; `namespace/pod` where none is known.
    pub job: String,
    pub program: String,
}

impl Who {
    fn of(series: &Series) -> Who {
        let first = |names: [&str; 2]| {
            let known = names.map(|name| series.label(name));
            known
                .into_iter()
                .find(|value| !value.is_empty())
                .unwrap_or_default()
                .to_owned()
        };
        let pod = [series.label("namespace"), series.label("pod")];
        let of_scheduler = first(["batch_job", "slurm_job"]);
        let job = match of_scheduler.is_empty() {
            true => pod.join("/").trim_matches('/').to_owned(),
            false => of_scheduler,
        };
        Who {
            user: series.label("user").to_owned(),
            job,
            program: first(["program", "comm"]),
        }
    }
}

/// What no label of a series says, and labels of others do: what was reserved for a job and is not used has no process that
/// could tell a user.
#[derive(Debug, Default)]
pub(super) struct Whose {
    /// Jobs of which all that is known has one user; an empty one: there are several.
    users: BTreeMap<String, String>,
}

impl Whose {
    pub(super) fn of(answers: &Answers) -> Whose {
        let mut users: BTreeMap<String, String> = BTreeMap::new();
        let all = of(answers, Question::Waste).chain(of(answers, Question::NotIdle));
        for who in all
            .map(Who::of)
            .filter(|who| !who.job.is_empty() && !who.user.is_empty())
        {
            let sole = users.entry(who.job).or_insert_with(|| who.user.clone());
            if *sole != who.user {
                sole.clear();
            }
        }
        Whose { users }
    }

    pub(super) fn who(&self, series: &Series) -> Who {
        let mut who = Who::of(series);
        if who.user.is_empty() {
            who.user = self.users.get(&who.job).cloned().unwrap_or_default();
        }
        who
    }
}
