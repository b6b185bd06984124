//! Which ways of probing this kernel really accepts: each is loaded, attached once and let go.

use super::super::{Session, Setup, Tier, privilege};
use super::{Check, State};
use crate::engine::Engine;
use anyhow::Result;

/// The smallest ring that the kernel takes on any page size in use on x86-64.
const TRIAL_RING: u32 = 4096;
const LIFECYCLE: &str = "process lifecycle";
const SAMPLES: &str = "stack samples";

/// The best way of probing among `checks`.
pub fn best_tier(checks: &[Check]) -> Option<Tier> {
    let works = |tier: &Tier| {
        checks
            .iter()
            .any(|check| check.name == tier.name() && check.state == State::Ok)
    };
    Tier::ALL.into_iter().find(works)
}

/// Whether calls can be traced on a machine with these checks.
pub fn can_trace(checks: &[Check]) -> bool {
    best_tier(checks).is_some()
}

pub(super) fn checks() -> Vec<Check> {
    let mut trials: Vec<(Tier, Result<Session>)> = Tier::ALL.into_iter().map(|tier| (tier, load(tier))).collect();
    let best = trials.iter().find(|(_, trial)| trial.is_ok()).map(|(tier, _)| *tier);
    let lifecycle = trials.iter().find_map(|(_, trial)| trial.as_ref().ok()).map(lifecycle);
    let mut checks: Vec<Check> = trials
        .drain(..)
        .map(|(tier, trial)| judge(tier, best, trial.err()))
        .collect();
    checks.extend(lifecycle);
    checks.extend(best.map(samples));
    checks
}

fn load(tier: Tier) -> Result<Session> {
    Session::load(&trial(tier))
}

fn trial(tier: Tier) -> Setup {
    Setup {
        tier: Some(tier),
        ring_bytes: TRIAL_RING,
        spare_rows: 1,
        ..Default::default()
    }
}

fn judge(tier: Tier, best: Option<Tier>, failure: Option<anyhow::Error>) -> Check {
    let name = tier.name();
    let Some(error) = failure else {
        let used = if best == Some(tier) {
            "loads and attaches; used"
        } else {
            "loads and attaches"
        };
        return Check::ok(name, used);
    };
    let cause = error.root_cause().to_string();
    // the cure says the rest
    let cause = cause.split("\nhint:").next().unwrap_or_default();
    match best {
        Some(best) if best < tier => Check::limited(name, format!("{cause}; not needed, {best} works"), cure(tier)),
        Some(best) => Check::limited(name, format!("{cause}; {best} is used"), cure(tier)),
        None => Check::missing(name, cause.to_owned(), cure(tier)),
    }
}

fn cure(tier: Tier) -> String {
    let admin = privilege::has("CAP_SYS_ADMIN");
    let bpf = admin || (privilege::has("CAP_BPF") && privilege::has("CAP_PERFMON"));
    if !bpf || (tier == Tier::PerfLink && !admin) {
        return "run with sudo".to_owned();
    }
    let since = match tier {
        Tier::Session => "6.13",
        Tier::Multi => "6.6",
        Tier::PerfLink => "5.15",
    };
    format!("use Linux {since} or newer, built with CONFIG_UPROBES=y and CONFIG_BPF_EVENTS=y")
}

fn lifecycle(session: &Session) -> Check {
    match session.attach_lifecycle() {
        Ok(_) => Check::ok(LIFECYCLE, "forks, execs and exits are followed"),
        Err(error) => Check::limited(
            LIFECYCLE,
            format!(
                "{}: new processes are found by looking, which can be late",
                error.root_cause()
            ),
            "run with sudo",
        ),
    }
}

fn samples(tier: Tier) -> Check {
    let setup = Setup {
        samples: true,
        ..trial(tier)
    };
    match Session::load(&setup).and_then(|session| (&session as &dyn Engine).attach_samples()) {
        Ok(_) => Check::ok(
            SAMPLES,
            "threads are seen where they are outside CUDA, and where calls hang",
        ),
        Err(error) => Check::limited(
            SAMPLES,
            format!("{error:#}: what threads do outside CUDA is not seen, nor where calls hang"),
            "use Linux 6.1 or newer, and run with sudo",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_working_way_is_enough() {
        let failed = |tier| judge(tier, Some(Tier::Multi), Some(anyhow::anyhow!("refused")));
        let checks = [
            failed(Tier::Session),
            judge(Tier::Multi, Some(Tier::Multi), None),
            failed(Tier::PerfLink),
        ];
        assert_eq!(best_tier(&checks), Some(Tier::Multi));
        assert_eq!(checks[0].detail, "refused; uprobe.multi is used");
        assert_eq!(checks[2].detail, "refused; not needed, uprobe.multi works");
    }

    #[test]
    fn without_a_way_nothing_is_possible() {
        let checks = Tier::ALL.map(|tier| judge(tier, None, Some(anyhow::anyhow!("refused"))));
        assert!(!can_trace(&checks));
        assert!(
            checks
                .iter()
                .all(|check| check.state == State::Missing && check.cure.is_some())
        );
    }
}
