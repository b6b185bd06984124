//! What schedulers have given away, and what of it nobody used.

use super::{Gpu, Label, place};
use crate::model::reserved::Reserved;
use crate::model::work::{Certainty, Reason};
use crate::serve::metric::{Metric, Sample, Value};
use crate::serve::metrics::{reserved as table, work};
use std::collections::HashMap;

/// How well schedulers answer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asked {
    /// Whether the kubelet does; `None`: there is none.
    pub(crate) kubelet: Option<bool>,
    /// Devices that are not counted.
    pub(crate) unknown: u64,
}

/// All samples.
pub(crate) fn reserved(of: &Reserved, asked: Asked, gpus: &HashMap<String, Gpu>) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (at, account) in of.accounts() {
        let labels = || place(gpus, &at.device).to_vec();
        let mut add = |metric: &'static Metric, labels: Vec<Label>, value| {
            samples.push(Sample::new(metric, labels, value).of(&at.owner));
        };
        if account.is_reserved {
            add(&table::RESERVED, labels(), Value::Integer(1));
        }
        add(&table::RESERVED_GPU_SECONDS, labels(), seconds(account.reserved_ns));
        add(&table::RESERVED_BOUND_GPU_SECONDS, labels(), seconds(account.bound_ns));
        let mut why: Vec<Label> = vec![Reason::ReservedUnused.name().into(), Certainty::Bound.name().into()];
        why.extend(labels());
        add(&work::WASTE_GPU_SECONDS, why, seconds(account.unused_ns()));
    }
    let alone = |metric, value: u64| Sample::new(metric, Vec::new(), Value::Integer(value));
    let up = asked
        .kubelet
        .map(|answers| alone(&table::POD_RESOURCES_UP, answers.into()));
    samples.extend(up);
    samples.push(alone(&table::RESERVED_UNKNOWN_DEVICES, asked.unknown));
    samples
}

fn seconds(ns: u64) -> Value {
    Value::Number(ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::reserved::Place;
    use crate::serve::fixture::owner;

    fn second(count: u64) -> u64 {
        count * 1_000_000_000
    }

    fn value(samples: &[Sample], name: &str) -> Option<f64> {
        let found = samples.iter().find(|sample| sample.metric.name == name)?;
        match found.value {
            Value::Integer(number) => Some(number as f64),
            Value::Number(number) => Some(number),
            Value::Histogram(_) => None,
        }
    }

    #[test]
    fn reserved_time_is_bound_time_and_waste() {
        let mut of = Reserved::default();
        let a = Place {
            owner: owner(&[("pod", "a")]),
            device: "GPU-0".into(),
        };
        for (at, bound) in [(10, false), (15, false), (20, true), (25, true)] {
            of.look(second(at), second(60), 9, [(a.clone(), bound)]);
        }
        let samples = reserved(&of, Asked::default(), &HashMap::new());
        let of_name = |name| value(&samples, name).unwrap();
        assert_eq!(of_name("gpuscope_reserved"), 1.0);
        assert_eq!(of_name("gpuscope_reserved_gpu_seconds_total"), 15.0);
        assert_eq!(of_name("gpuscope_reserved_bound_gpu_seconds_total"), 10.0);
        assert_eq!(of_name("gpuscope_waste_gpu_seconds_total"), 5.0);
        let waste = samples.iter().find(|sample| sample.metric == &work::WASTE_GPU_SECONDS);
        let labels: Vec<_> = waste.unwrap().labels().collect();
        assert_eq!(
            labels,
            [
                ("reason", "reserved-unused"),
                ("certainty", "bound"),
                ("uuid", "GPU-0"),
                ("pod", "a")
            ]
        );
    }

    #[test]
    fn what_was_given_back_keeps_its_sums_alone() {
        let mut of = Reserved::default();
        let a = Place {
            owner: owner(&[("pod", "a")]),
            device: "GPU-0".into(),
        };
        of.look(second(10), second(60), 9, [(a.clone(), false)]);
        of.look(second(15), second(60), 9, [(a, false)]);
        of.look(second(20), second(60), 9, []);
        let samples = reserved(&of, Asked::default(), &HashMap::new());
        assert_eq!(value(&samples, "gpuscope_reserved"), None);
        assert_eq!(value(&samples, "gpuscope_waste_gpu_seconds_total"), Some(5.0));
    }

    #[test]
    fn a_machine_without_a_kubelet_says_nothing_of_one() {
        let up = |kubelet| {
            let asked = Asked { kubelet, unknown: 2 };
            value(
                &reserved(&Reserved::default(), asked, &HashMap::new()),
                "gpuscope_pod_resources_up",
            )
        };
        assert_eq!(
            [up(None), up(Some(false)), up(Some(true))],
            [None, Some(0.0), Some(1.0)]
        );
    }
}
