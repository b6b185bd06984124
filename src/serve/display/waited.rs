//! For how long threads waited: what they asked to wait, and waits that nobody asked for by name, none of them twice.

use super::reading::label;
use crate::model::work::HiddenKind;
use crate::serve::metric::Sample;

/// Sums of one owner; `None`: not measured.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Waited {
    asked: Option<f64>,
    /// Some of these are among what was asked for: a small copy, and the wait for it.
    items: Option<f64>,
    hidden: Option<f64>,
}

impl Waited {
    /// Adds `value` of a sample of such waits; one of anything else adds nothing.
    pub(crate) fn add(&mut self, sample: &Sample, value: Option<f64>) {
        match sample.metric.name {
            "gpuscope_sync_blocked_seconds_total" => self.note(None, value),
            "gpuscope_hidden_wait_seconds_total" => self.note(Some(label(sample, "kind")), value),
            _ => {}
        }
    }

    /// Adds `value` of waits that were asked for, or of that kind of hidden ones.
    pub(crate) fn note(&mut self, hidden: Option<&str>, value: Option<f64>) {
        let sum = match hidden.map(|kind| kind == HiddenKind::Item.name()) {
            None => &mut self.asked,
            Some(true) => &mut self.items,
            Some(false) => &mut self.hidden,
        };
        *sum = plus(*sum, value);
    }

    /// At least so much.
    pub(crate) fn at_least(&self) -> Option<f64> {
        let either = match (self.asked, self.items) {
            (Some(asked), Some(items)) => Some(asked.max(items)),
            (asked, items) => asked.or(items),
        };
        plus(either, self.hidden)
    }
}

fn plus(sum: Option<f64>, value: Option<f64>) -> Option<f64> {
    match (sum, value) {
        (Some(sum), Some(value)) => Some(sum + value),
        (sum, value) => sum.or(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::metric::{Metric, Value};
    use crate::serve::metrics::work::{HIDDEN_WAIT_SECONDS, SYNC_BLOCKED_SECONDS};

    fn waited(parts: &[(&'static Metric, &'static str, f64)]) -> Option<f64> {
        let mut waited = Waited::default();
        for (metric, label, seconds) in parts {
            let sample = Sample::new(metric, vec![(*label).into()], Value::Number(*seconds));
            waited.add(&sample, Some(*seconds));
        }
        waited.at_least()
    }

    #[test]
    fn a_wait_for_a_small_copy_counts_once() {
        let (asked, hidden) = (&SYNC_BLOCKED_SECONDS, &HIDDEN_WAIT_SECONDS);
        let both = waited(&[(asked, "cuStreamSynchronize", 2.0), (hidden, "item", 1.5)]);
        assert_eq!(both, Some(2.0), "the wait of an item is a wait that was asked for");
        assert_eq!(waited(&[(hidden, "item", 1.5)]), Some(1.5), "the copy itself waited");
        assert_eq!(
            waited(&[(asked, "cuCtxSynchronize", 2.0), (hidden, "free", 1.0)]),
            Some(3.0)
        );
        assert_eq!(waited(&[]), None);
    }
}
