//! For how long the threads of an owner waited, out of its samples.

use super::reading::label;
use crate::model::waiting::Waiting;
use crate::serve::metric::Sample;

/// Adds `value` of a sample of waits; one of anything else adds nothing.
pub(crate) fn add(waiting: &mut Waiting, sample: &Sample, value: Option<f64>) {
    match sample.metric.name {
        "gpuscope_sync_blocked_seconds_total" => waiting.note(None, value),
        "gpuscope_hidden_wait_seconds_total" => waiting.note(Some(label(sample, "kind")), value),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::metric::{Metric, Value};
    use crate::serve::metrics::work::{HIDDEN_WAIT_SECONDS, SYNC_BLOCKED_SECONDS};

    fn waited(parts: &[(&'static Metric, &'static str, f64)]) -> Option<f64> {
        let mut waiting = Waiting::default();
        for (metric, label, seconds) in parts {
            let sample = Sample::new(metric, vec![(*label).into()], Value::Number(*seconds));
            add(&mut waiting, &sample, Some(*seconds));
        }
        waiting.at_least()
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
