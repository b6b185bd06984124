//! What a job did with its GPUs, out of what exporters say of it: the lines at a job's end.
//!
//! ```text
//!  texts of /metrics, one a node ─► read (series) ─► figures (sums of the job) ─► cures ─► write (text, Markdown, JSON)
//! ```
//!
//! Pure. Knows no more than the exporters.

mod cures;
mod figures;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use figures::figures;
pub(crate) use read::{Metrics, Series, read};
pub(crate) use write::{json, markdown, text};

/// Which series are the job's: those with all of these labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Of a batch scheduler: `batch_job`, or `slurm_job` where only that was asked for.
    pub job: Option<String>,
    pub labels: Vec<(String, String)>,
}

impl Wanted {
    /// Whether a series is one of them.
    #[must_use]
    pub(crate) fn takes(&self, series: &Series) -> bool {
        let has = |name: &str, value: &str| series.label(name) == Some(value);
        let job = self.job.as_deref();
        let of_job = job.is_none_or(|job| has("batch_job", job) || has("slurm_job", job));
        of_job && self.labels.iter().all(|(name, value)| has(name, value))
    }

    /// As people read it; not escaped.
    #[must_use]
    pub(crate) fn words(&self) -> String {
        let job = self.job.iter().map(|job| format!("job {job}"));
        let labels = self.labels.iter().map(|(name, value)| format!("{name} {value}"));
        job.chain(labels).collect::<Vec<_>>().join(", ")
    }
}
