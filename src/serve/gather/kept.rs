//! The black box as samples.

use crate::owner::Owner;
use crate::serve::keep::{Cause, KeptFile};
use crate::serve::metric::{Sample, Value};
use crate::serve::metrics::own as table;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

/// What was kept and written.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub memory_bytes: u64,
    pub dropped_rows: u64,
    /// Recordings by cause: written, and failed.
    pub recordings: BTreeMap<Cause, (u64, u64)>,
    /// Whom files are about that were written by this gpuscope.
    pub owners: HashMap<PathBuf, Arc<Owner>>,
}

impl Kept {
    /// All samples; `files` lie in the folder.
    pub(crate) fn samples(&self, files: &[KeptFile]) -> Vec<Sample> {
        let integer = |metric, value| Sample::new(metric, Vec::new(), Value::Integer(value));
        let mut samples = vec![
            integer(&table::KEPT_MEMORY_BYTES, self.memory_bytes),
            integer(&table::KEPT_DROPPED_ROWS, self.dropped_rows),
        ];
        for cause in Cause::ALL {
            let (written, failed) = self.recordings.get(&cause).copied().unwrap_or_default();
            for (result, count) in [("written", written), ("failed", failed)] {
                let labels = vec![cause.name().into(), result.into()];
                samples.push(Sample::new(&table::KEPT_RECORDINGS, labels, Value::Integer(count)));
            }
        }
        samples.extend(files.iter().map(|file| self.info(file)));
        samples
    }

    fn info(&self, file: &KeptFile) -> Sample {
        let labels = vec![
            file.path.display().to_string().into(),
            file.cause.name().into(),
            file.pid.map(|pid| pid.to_string()).unwrap_or_default().into(),
        ];
        let sample = Sample::new(&table::KEPT_RECORDING_INFO, labels, Value::Integer(1));
        match self.owners.get(&file.path) {
            Some(owner) => sample.of(owner),
            None => sample,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::fixture::owner;

    #[test]
    fn a_file_is_linked_from_its_cause_process_and_owner() {
        let file = |name: &str, pid| KeptFile {
            path: PathBuf::from(name),
            cause: Cause::Xid,
            pid,
            bytes: 5,
        };
        let mut kept = Kept::default();
        kept.recordings.insert(Cause::Xid, (2, 1));
        kept.owners.insert("/k/a".into(), owner(&[("comm", "train")]));
        let samples = kept.samples(&[file("/k/a", Some(7)), file("/k/b", None)]);
        let said: Vec<String> = samples
            .iter()
            .map(|sample| {
                let labels: Vec<String> = sample.labels().map(|(name, value)| format!("{name}={value}")).collect();
                format!("{} {{{}}} {:?}", sample.metric.name, labels.join(","), sample.value)
            })
            .collect();
        for expected in [
            "gpuscope_kept_recordings_total {cause=xid,result=written} Integer(2)",
            "gpuscope_kept_recordings_total {cause=xid,result=failed} Integer(1)",
            "gpuscope_kept_recordings_total {cause=webhook,result=failed} Integer(0)",
            "gpuscope_kept_recording_info {file=/k/a,cause=xid,process=7,comm=train} Integer(1)",
            "gpuscope_kept_recording_info {file=/k/b,cause=xid} Integer(1)",
        ] {
            assert!(said.iter().any(|one| one == expected), "{expected}: {said:#?}");
        }
    }
}
