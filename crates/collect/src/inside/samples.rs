//! Samples of threads outside of CUDA, until they are handed on: that of one that waits grows for as long as it is where it was.

use super::met::Met;
use crate::engine::{Sample, Stream};
use std::collections::HashMap;

/// A sample of a thread that waits stands for so long at most.
const LONGEST_NS: u64 = 200_000_000;

/// A thread that waited when it was looked at, and is told of when it does not any more.
#[derive(Debug)]
struct Waiting {
    tgid: u32,
    turns: Option<String>,
    sample: Sample,
}

/// Samples that are not told yet.
#[derive(Default)]
pub(super) struct Samples {
    waiting: HashMap<u32, Waiting>,
    records: Vec<Vec<u8>>,
}

impl Samples {
    /// What was seen of a thread that runs.
    pub(super) fn push(&mut self, sample: &Sample) {
        if sample.ns > 0 {
            self.records.push(sample.record());
        }
    }

    /// The thread is elsewhere now.
    pub(super) fn tell(&mut self, tid: u32) {
        if let Some(waiting) = self.waiting.remove(&tid) {
            self.push(&waiting.sample);
        }
    }

    /// A thread waits: what was seen is told when it does not any more.
    pub(super) fn wait(&mut self, met: &Met, turns: Option<String>, sample: Sample) {
        let tgid = met.tgid;
        self.waiting.insert(met.tid, Waiting { tgid, turns, sample });
    }

    /// Whether the thread has not run since it was looked at: then its sample is longer.
    pub(super) fn goes_on(&mut self, tid: u32, turns: &Option<String>, (now, ns): (u64, u64)) -> bool {
        let Some(waiting) = self.waiting.get_mut(&tid) else {
            return false;
        };
        if turns.is_none() || waiting.turns != *turns {
            return false;
        }
        waiting.sample.ns += ns;
        waiting.sample.until = now;
        if waiting.sample.ns >= LONGEST_NS {
            let told = waiting.sample.record();
            waiting.sample.ns = 0;
            self.records.push(told);
        }
        true
    }

    /// A process is no more: all that is known of its threads is told.
    pub(super) fn end(&mut self, tgid: u32) {
        let ended = self.waiting.extract_if(|_, waiting| waiting.tgid == tgid);
        let samples: Vec<Sample> = ended.map(|(_, waiting)| waiting.sample).collect();
        samples.iter().for_each(|sample| self.push(sample));
    }

    /// All records of [`Stream::Samples`].
    pub(super) fn take(&mut self, stream: Stream) -> Vec<Vec<u8>> {
        match stream {
            Stream::Samples => std::mem::take(&mut self.records),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::wire::SiteEvent;

    const MET: Met = Met {
        tgid: 1,
        tid: 2,
        pointer: 0,
        depth: 0,
        returned: 1,
        entered: 0,
        called_at: 0,
        python: None,
    };

    fn sample(until: u64) -> Sample {
        Sample {
            until,
            ns: 10,
            stack: SiteEvent::default(),
        }
    }

    fn told(samples: &mut Samples) -> Vec<(u64, u64)> {
        let records = samples.take(Stream::Samples).into_iter();
        let read = records.map(|record| Sample::parse(&record).expect("a sample"));
        read.map(|sample| (sample.until, sample.ns)).collect()
    }

    #[test]
    fn a_thread_that_has_not_run_has_one_sample_for_all_that_time() {
        let mut samples = Samples::default();
        let turns = Some("5 0 1".to_owned());
        samples.wait(&MET, turns.clone(), sample(100));
        assert!(samples.goes_on(2, &turns, (110, 10)));
        assert!(!samples.goes_on(2, &Some("9 0 2".to_owned()), (120, 10)));
        assert_eq!(told(&mut samples), []);
        samples.tell(2);
        assert_eq!(told(&mut samples), [(110, 20)]);
    }

    #[test]
    fn what_a_thread_waits_for_is_told_while_it_waits_and_when_its_process_ends() {
        let mut samples = Samples::default();
        let turns = Some(String::new());
        samples.wait(&MET, turns.clone(), sample(100));
        assert!(samples.goes_on(2, &turns, (300, LONGEST_NS)));
        assert_eq!(told(&mut samples), [(300, LONGEST_NS + 10)]);
        assert!(samples.goes_on(2, &turns, (310, 10)));
        samples.end(3);
        assert_eq!(told(&mut samples), []);
        samples.end(1);
        assert_eq!(told(&mut samples), [(310, 10)]);
    }

    #[test]
    fn where_the_kernel_does_not_tell_whether_it_has_run_each_look_is_a_sample() {
        let mut samples = Samples::default();
        samples.wait(&MET, None, sample(100));
        assert!(!samples.goes_on(2, &None, (110, 10)));
    }
}
