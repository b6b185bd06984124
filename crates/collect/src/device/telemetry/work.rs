//! Which processes used a GPU's engines since the round before.

use super::answer::Answers;
use crate::device::ask::Gpu;
use crate::device::nvml::WHOLE_PERCENT;
use crate::device::owner::Owners;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessUtilizationSample;
use std::collections::{BTreeMap, HashMap};

/// What one process did on one GPU. Who did nothing has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessWork {
    /// UUID of the GPU; NVML does not tell for MIG devices.
    pub device: String,
    /// The process as NVML numbers it.
    pub nvml_pid: u32,
    /// Its number here; `None`: it is not known which it is.
    pub pid: Option<u32>,
    /// Share of the time with a kernel of it running, in the last sample that NVML took.
    pub sm_percent: u32,
    /// Share of the time in which it read or wrote device memory.
    pub memory_percent: u32,
    pub encoder_percent: u32,
    pub decoder_percent: u32,
}

/// The latest samples, by UUID: NVML's CPU time, µs.
#[derive(Default)]
pub(super) struct Work(HashMap<String, u64>);

impl Work {
    pub(super) fn read(
        &mut self,
        gpu: &Gpu,
        uuid: &str,
        owners: &mut Owners,
        answers: &mut Answers,
    ) -> Vec<ProcessWork> {
        let seen = self.0.entry(uuid.to_owned()).or_default();
        let told = match gpu.process_utilization_stats(*seen) {
            // nothing is newer; or more came between the two questions, and is there the next time
            Err(NvmlError::NotFound | NvmlError::InsufficientSize(_)) => return Vec::new(),
            told => answers.told("process utilization", told).unwrap_or_default(),
        };
        let newest = newest(told, *seen);
        *seen = newest.values().map(|one| one.timestamp).fold(*seen, u64::max);
        let work = newest.into_values().map(|one| ProcessWork {
            device: uuid.to_owned(),
            nvml_pid: one.pid,
            pid: owners.of(one.pid),
            sm_percent: one.sm_util,
            memory_percent: one.mem_util,
            encoder_percent: one.enc_util,
            decoder_percent: one.dec_util,
        });
        work.collect()
    }
}

/// NVML tells now and then of a process that it knows nothing of.
fn newest(told: Vec<ProcessUtilizationSample>, seen: u64) -> BTreeMap<u32, ProcessUtilizationSample> {
    let mut newest = BTreeMap::new();
    for one in told {
        let shares = [one.sm_util, one.mem_util, one.enc_util, one.dec_util];
        let known: Option<&ProcessUtilizationSample> = newest.get(&one.pid);
        let is_newer = one.timestamp > seen && known.is_none_or(|known| known.timestamp < one.timestamp);
        if one.pid != 0 && is_newer && shares.iter().all(|share| *share <= WHOLE_PERCENT) {
            newest.insert(one.pid, one);
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(pid: u32, timestamp: u64, sm_util: u32) -> ProcessUtilizationSample {
        ProcessUtilizationSample {
            pid,
            timestamp,
            sm_util,
            mem_util: 0,
            enc_util: 0,
            dec_util: 0,
        }
    }

    #[test]
    fn the_newest_sample_of_each_process_counts_and_nonsense_does_not() {
        let told = vec![
            sample(7, 100, 10),
            sample(7, 300, 30),
            sample(7, 200, 20),
            sample(8, 50, 5),     // seen before
            sample(9, 150, 4711), // more than all
            sample(0, 150, 1),    // nobody
        ];
        let newest = newest(told, 50);
        let found: Vec<(u32, u32)> = newest.values().map(|one| (one.pid, one.sm_util)).collect();
        assert_eq!(found, [(7, 30)]);
    }
}
