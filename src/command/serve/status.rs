//! What the pages beside the metrics say of a running exporter.

use crate::device::telemetry::Telemetry;
use crate::serve::Status;
use crate::serve::config::Config;
use crate::tracer::Census;
use std::time::Duration;

/// Lines of one kind.
const MOST_MISSING: usize = 50;

/// What is known for it.
pub(super) struct Known<'a> {
    pub config: &'a Config,
    pub running: Duration,
    /// The way in which functions are probed; `None`: none is.
    pub tier: Option<&'static str>,
    pub census: Option<&'a Census>,
    /// `None` also where there is no device.
    pub telemetry: Option<&'a Telemetry>,
    /// The machine has none that NVML could tell of.
    pub no_device: bool,
    /// Why something beside tracing does not work.
    pub troubles: Vec<String>,
}

impl Known<'_> {
    /// Everything in words. Ready: the first figures are there.
    pub(super) fn status(&self) -> Status {
        let mut facts = vec![
            fact("Version", crate::version::short()),
            fact("Running for", duration(self.running)),
            fact("Collectors", self.collectors()),
        ];
        facts.extend(self.census.into_iter().flat_map(|census| self.tracing(census)));
        facts.extend(self.telemetry.map(|telemetry| fact("GPUs", telemetry.gpus.len())));
        facts.extend(
            self.no_device
                .then(|| fact("GPUs", "none: this machine shows no NVIDIA device")),
        );
        Status {
            ready: self.census.is_some() || self.tier.is_none(),
            missing: self.missing(),
            facts,
        }
    }

    fn collectors(&self) -> String {
        let names: Vec<&str> = self.config.collect.iter().map(|collector| collector.name()).collect();
        names.join(", ")
    }

    fn tracing(&self, census: &Census) -> [(String, String); 4] {
        let (functions, files) = (census.functions, census.files);
        let tier = self.tier.unwrap_or("nothing");
        let probes = match files {
            0 => "none yet: no CUDA library is installed or mapped".to_owned(),
            1 => format!("{functions} in one file, by {tier}"),
            _ => format!("{functions} in {files} files, by {tier}"),
        };
        [
            fact("Functions with probes", probes),
            fact("Processes with CUDA calls", census.processes),
            fact("Owners", census.readings.len()),
            fact("Calls seen", census.hits.0 + census.hits.1),
        ]
    }

    fn missing(&self) -> Vec<String> {
        let mut missing = self.troubles.clone();
        if let Some(census) = self.census {
            missing.extend(census.unseen.iter().take(MOST_MISSING).cloned());
            missing.extend(losses(census));
        }
        if let Some(telemetry) = self.telemetry {
            missing.extend(telemetry.absent.iter().map(ToString::to_string));
            missing.extend(telemetry.notes.iter().take(MOST_MISSING).cloned());
        }
        missing
    }
}

fn fact(name: &str, value: impl ToString) -> (String, String) {
    (name.to_owned(), value.to_string())
}

fn losses(census: &Census) -> Vec<String> {
    let lost = census.lost.iter().filter(|(_, count)| *count > 0);
    lost.map(|(reason, count)| format!("records were lost ({reason}): {count}"))
        .collect()
}

/// Days, hours, minutes and seconds; the two largest of these.
fn duration(time: Duration) -> String {
    let mut rest = time.as_secs();
    let mut words = Vec::new();
    for (length, unit) in [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")] {
        if rest >= length {
            words.push(format!("{} {unit}", rest / length));
        }
        rest %= length;
    }
    words.truncate(2);
    if words.is_empty() {
        return "0 s".to_owned();
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_its_two_largest_parts() {
        let said = |seconds| duration(Duration::from_secs(seconds));
        assert_eq!(
            [said(0), said(59), said(3_725), said(180_000)],
            ["0 s", "59 s", "1 h 2 min", "2 d 2 h"]
        );
    }

    #[test]
    fn without_probes_it_is_ready_at_once() {
        let known = Known {
            config: &Config::default(),
            running: Duration::ZERO,
            tier: None,
            census: None,
            telemetry: None,
            no_device: false,
            troubles: vec!["no kubelet".to_owned()],
        };
        assert!(known.status().ready);
        assert_eq!(known.status().missing, ["no kubelet"]);
        let traced = Known {
            tier: Some("uprobe.multi"),
            ..known
        };
        assert!(!traced.status().ready);
    }
}
