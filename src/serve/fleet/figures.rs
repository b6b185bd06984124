//! Sums over all that was answered.

use super::answer::{Answers, Series, of};
use super::nodes::{Node, nodes};
use super::question::{MOST_SETS, Question, Span};
use super::who::{Who, Whose};
use std::collections::BTreeMap;

/// GPU-seconds without work.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Idle {
    /// At least that.
    pub bound: f64,
    /// Of processes that ran before gpuscope came: no bound.
    pub inferred: f64,
}

impl Idle {
    #[must_use]
    pub(crate) fn seconds(self) -> f64 {
        self.bound + self.inferred
    }

    fn add(&mut self, series: &Series) {
        match series.label("certainty") {
            "inferred" => self.inferred += series.value,
            _ => self.bound += series.value,
        }
    }
}

/// What somebody did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Group {
    pub who: Who,
    pub reasons: BTreeMap<String, Idle>,
    /// Of its processes, from first work to last: surely idle, and the rest.
    pub idle_seconds: f64,
    pub not_idle_seconds: f64,
    pub hidden_wait_seconds: f64,
    pub pageable_bytes: f64,
}

impl Group {
    #[must_use]
    pub fn idle(&self) -> Idle {
        self.reasons.values().fold(Idle::default(), |sum, one| Idle {
            bound: sum.bound + one.bound,
            inferred: sum.inferred + one.inferred,
        })
    }

    #[must_use]
    pub(crate) fn used_seconds(&self) -> f64 {
        self.idle_seconds + self.not_idle_seconds
    }

    /// What most of its idle time has.
    #[must_use]
    pub(crate) fn chief_reason(&self) -> Option<&str> {
        let most = self
            .reasons
            .iter()
            .max_by(|one, other| one.1.seconds().total_cmp(&other.1.seconds()));
        most.map(|(reason, _)| reason.as_str())
    }
}

/// All that is known. Largest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    pub reasons: BTreeMap<String, Idle>,
    pub users: Vec<Group>,
    pub jobs: Vec<Group>,
    pub programs: Vec<Group>,
    /// Of these, what of the idle time is not in any group: they were too many.
    pub rest_seconds: f64,
    /// Time of use is of the largest sets of labels alone.
    pub use_is_cut: bool,
    pub nodes: Vec<Node>,
    pub versions: Vec<(String, u64)>,
    pub drivers: Vec<(String, u64)>,
    pub warnings: Vec<String>,
}

impl Figures {
    #[must_use]
    pub fn idle(&self) -> Idle {
        let all = Group {
            reasons: self.reasons.clone(),
            ..Group::default()
        };
        all.idle()
    }

    /// GPU-seconds, as NVML lists devices.
    #[must_use]
    pub(crate) fn gpu_seconds(&self) -> f64 {
        self.nodes.iter().map(|node| node.gpu_seconds).sum()
    }

    /// Of these, those with a process on the GPU.
    #[must_use]
    pub(crate) fn bound_seconds(&self) -> f64 {
        self.nodes.iter().map(|node| node.bound_seconds).sum()
    }

    /// Of these, those with a kernel running.
    #[must_use]
    pub(crate) fn busy_seconds(&self) -> f64 {
        self.nodes.iter().map(|node| node.busy_seconds).sum()
    }

    /// Of processes, each from its first work to its last.
    #[must_use]
    pub(crate) fn used_seconds(&self) -> f64 {
        self.programs.iter().map(Group::used_seconds).sum()
    }
}

/// Adds up.
#[must_use]
pub fn figures(answers: &Answers, span: &Span) -> Figures {
    let mut reasons: BTreeMap<String, Idle> = BTreeMap::new();
    for series in of(answers, Question::Reasons).filter(|series| series.value > 0.0) {
        reasons
            .entry(series.label("reason").to_owned())
            .or_default()
            .add(series);
    }
    let whose = Whose::of(answers);
    let groups = |part: fn(Who) -> Who| groups(answers, &whose, part);
    let users = groups(|who| Who {
        user: who.user,
        ..Who::default()
    });
    let jobs = groups(|who| Who {
        program: String::new(),
        ..who
    });
    let programs = groups(|who| Who {
        program: who.program,
        ..Who::default()
    });
    let mut figures = Figures {
        reasons,
        users,
        jobs: name_programs(groups(|who| who), jobs),
        programs,
        nodes: nodes(answers, span),
        versions: counts(answers, Question::Versions, &["version", "commit"]),
        drivers: counts(answers, Question::Drivers, &["driver"]),
        warnings: warnings(answers),
        ..Figures::default()
    };
    figures.rest_seconds = rest(answers, &figures);
    figures.use_is_cut = [Question::Idle, Question::NotIdle]
        .into_iter()
        .any(|question| of(answers, question).count() >= MOST_SETS);
    figures
}

/// By a part of whose it is.
fn groups(answers: &Answers, whose: &Whose, part: fn(Who) -> Who) -> Vec<Group> {
    let mut groups: BTreeMap<Who, Group> = BTreeMap::new();
    let mut each = |question: Question, add: fn(&mut Group, &Series)| {
        for series in of(answers, question) {
            let who = part(whose.who(series));
            add(groups.entry(who).or_default(), series);
        }
    };
    each(Question::Waste, |group, series| {
        group
            .reasons
            .entry(series.label("reason").to_owned())
            .or_default()
            .add(series);
    });
    each(Question::Idle, |group, series| group.idle_seconds += series.value);
    each(Question::NotIdle, |group, series| {
        group.not_idle_seconds += series.value
    });
    each(Question::HiddenWaits, |group, series| {
        group.hidden_wait_seconds += series.value
    });
    each(Question::PageableBytes, |group, series| {
        group.pageable_bytes += series.value
    });
    let named = groups.into_iter().map(|(who, group)| Group { who, ..group });
    let mut groups: Vec<Group> = named.collect();
    groups.sort_by(|one, other| other.idle().seconds().total_cmp(&one.idle().seconds()));
    groups
}

/// A job's program is that which left GPUs idle for longest.
fn name_programs(whole: Vec<Group>, jobs: Vec<Group>) -> Vec<Group> {
    let mut programs: BTreeMap<Who, (String, f64)> = BTreeMap::new();
    for whole in whole {
        let job = Who {
            program: String::new(),
            ..whole.who.clone()
        };
        let seconds = whole.idle().seconds();
        let most = programs.entry(job).or_insert((String::new(), -1.0));
        if seconds > most.1 {
            *most = (whole.who.program, seconds);
        }
    }
    let named = jobs.into_iter().map(|mut job| {
        job.who.program = programs.remove(&job.who).unwrap_or_default().0;
        job
    });
    named.collect()
}

fn counts(answers: &Answers, question: Question, labels: &[&str]) -> Vec<(String, u64)> {
    let name = |series: &Series| {
        let parts = labels.iter().map(|label| series.label(label));
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let counted = of(answers, question).map(|series| (name(series), whole(series.value)));
    let mut counted: Vec<_> = counted.collect();
    counted.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    counted
}

/// Idle time of those that were not among the largest; less than a second per set of labels is none: each sum is extrapolated.
fn rest(answers: &Answers, figures: &Figures) -> f64 {
    let sets = of(answers, Question::Waste).count();
    let named: f64 = figures.programs.iter().map(|group| group.idle().seconds()).sum();
    match sets >= MOST_SETS {
        true => (figures.idle().seconds() - named).max(0.0),
        false => 0.0,
    }
}

/// Each once.
fn warnings(answers: &Answers) -> Vec<String> {
    let all = answers.values().flat_map(|answer| answer.warnings.iter().cloned());
    let once: std::collections::BTreeSet<String> = all.collect();
    once.into_iter().collect()
}

/// Nobody counts below 0, or beyond what there is room for.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(super) fn whole(number: f64) -> u64 {
    number.max(0.0).round() as u64
}
