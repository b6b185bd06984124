//! What findings leave unexplained: a device that had nothing to do, a host that was elsewhere.

use super::table::{is_percent, percent_of};
use crate::model::finding::{Busy, Finding, Run};
use crate::text::quantity::{duration, plural};

/// Of the steady part: less is left to chance.
const PERCENT: u64 = 30;
/// Of all time: shorter start-up and end are not worth a word.
const EDGES_PERCENT: u64 = 5;

impl Run {
    /// What `findings`, all of the run, do not explain; `None`: they do, or nothing is known that they should.
    #[must_use]
    pub fn unexplained(&self, findings: &[Finding]) -> Option<String> {
        let ns = findings
            .iter()
            .fold(0, |sum: u64, finding| sum.saturating_add(finding.cost_ns));
        let explained = percent_of(ns, self.steady_ns).min(100);
        match (self.idle_ns, self.busy.iter().min_by_key(|busy| busy.percent)) {
            (Some(idle_ns), _) => self.idle(idle_ns, explained),
            (None, Some(busy)) => idle(busy, explained),
            (None, None) => self.outside(explained),
        }
    }

    /// Of which time findings say shares, where that is not all of it.
    #[must_use]
    pub fn steady_words(&self) -> Option<String> {
        let rest_ns = self.wall_ns.saturating_sub(self.steady_ns);
        let end_ns = rest_ns.saturating_sub(self.start_ns);
        is_percent(rest_ns, self.wall_ns.max(1), EDGES_PERCENT).then(|| {
            format!(
                "of the {} between start-up ({}) and end ({})",
                duration(self.steady_ns),
                duration(self.start_ns),
                duration(end_ns)
            )
        })
    }

    fn idle(&self, idle_ns: u64, explained: u64) -> Option<String> {
        let idle = percent_of(idle_ns, self.steady_ns).min(100);
        (idle >= explained + PERCENT).then(|| {
            format!(
                "the GPU had nothing to do for at least {idle} % of the time ({}, measured){}",
                duration(idle_ns),
                but(explained)
            )
        })
    }

    fn outside(&self, explained: u64) -> Option<String> {
        let outside = percent_of(self.outside_ns, self.steady_ns).min(100);
        (outside >= explained + PERCENT).then(|| {
            format!(
                "the host was outside CUDA for {outside} % of the time ({}), and nothing says whether the device had \
                 something to do meanwhile: no program waited for it, and NVML tells nothing of it{}",
                duration(self.outside_ns),
                but(explained)
            )
        })
    }
}

fn idle(busy: &Busy, explained: u64) -> Option<String> {
    let idle = 100 - busy.percent.min(100);
    (idle >= explained + PERCENT).then(|| {
        format!(
            "device {} was busy {} % of the time by NVML ({}){}",
            busy.device,
            busy.percent,
            plural(busy.samples, "sample"),
            but(explained)
        )
    })
}

fn but(explained: u64) -> String {
    match explained {
        0 => String::new(),
        percent => format!("; what was found explains {percent} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::work::Certainty;

    fn run(percent: Option<u64>, outside_ns: u64) -> Run {
        let busy = percent.map(|percent| Busy {
            device: 0,
            percent,
            samples: 12,
        });
        Run {
            steady_ns: 1_000_000_000,
            outside_ns,
            busy: busy.into_iter().collect(),
            ..Run::default()
        }
    }

    fn costing(ns: u64) -> Finding {
        Finding {
            rule: "idle-gaps",
            title: String::new(),
            what: String::new(),
            cost_ns: ns,
            grave: false,
            certainty: Certainty::Bound,
            count: 1,
            moments: Vec::new(),
            site: None,
            cure: String::new(),
            thresholds: String::new(),
            weakened: None,
            places: Vec::new(),
        }
    }

    #[test]
    fn a_device_that_is_busy_a_third_of_the_time_wants_a_reason() {
        let said = run(Some(33), 0).unexplained(&[]).unwrap();
        assert_eq!(said, "device 0 was busy 33 % of the time by NVML (12 samples)");
        let said = run(Some(33), 0).unexplained(&[costing(100_000_000)]).unwrap();
        assert!(said.ends_with("; what was found explains 10 %"), "{said}");
    }

    #[test]
    fn what_is_found_can_be_reason_enough_and_a_busy_device_wants_none() {
        assert_eq!(run(Some(33), 0).unexplained(&[costing(600_000_000)]), None);
        assert_eq!(run(Some(95), 900_000_000).unexplained(&[]), None);
    }

    #[test]
    fn what_devices_told_counts_more_than_what_nvml_says() {
        let told = |idle_ns| Run {
            idle_ns: Some(idle_ns),
            ..run(Some(33), 0)
        };
        let said = told(450_000_000).unexplained(&[costing(100_000_000)]).unwrap();
        let expected = "the GPU had nothing to do for at least 45 % of the time (450.0 ms, measured); what was found explains 10 %";
        assert_eq!(said, expected);
        assert_eq!(told(450_000_000).unexplained(&[costing(200_000_000)]), None);
        assert_eq!(told(0).unexplained(&[]), None, "NVML counts what others did");
    }

    #[test]
    fn where_shares_are_not_of_all_time_that_is_said() {
        let whole = Run {
            wall_ns: 1_005_000_000,
            ..run(None, 0)
        };
        assert_eq!(whole.steady_words(), None);
        let part = Run {
            wall_ns: 4_300_000_000,
            start_ns: 3_000_000_000,
            ..whole
        };
        let said = part.steady_words().unwrap();
        assert_eq!(said, "of the 1.00 s between start-up (3.00 s) and end (300.0 ms)");
    }

    #[test]
    fn without_nvml_a_host_that_is_elsewhere_wants_a_reason() {
        let said = run(None, 520_000_000).unexplained(&[]).unwrap();
        assert!(
            said.starts_with("the host was outside CUDA for 52 % of the time (520.0 ms)"),
            "{said}"
        );
        assert_eq!(run(None, 520_000_000).unexplained(&[costing(520_000_000)]), None);
        assert_eq!(run(None, 0).unexplained(&[]), None);
    }
}
