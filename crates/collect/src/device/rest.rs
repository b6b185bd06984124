//! Whether the devices of processes ever come to rest.

use super::Devices;
use super::owner::Owners;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

/// NVML averages over a sixth of a second to a second.
const APART: Duration = Duration::from_millis(150);
/// However long NVML takes.
const FEWEST: u32 = 3;

/// A look at what NVML says of the devices, under way in a thread of its own, as NVML can hang.
#[derive(Debug)]
pub struct Looking(Receiver<BTreeMap<u32, u32>>);

impl Looking {
    /// Begins one of at least this `length`.
    ///
    /// # Errors
    /// There is no thread.
    pub fn begin(length: Duration) -> io::Result<Looking> {
        let (tell, told) = channel();
        let look = move || {
            let began = Instant::now();
            let again = |looks| {
                std::thread::sleep(APART);
                looks < FEWEST || began.elapsed() < length
            };
            let mut owners = Owners::new("/proc");
            let found = Devices::open().map(|devices| restless(again, || devices.busy_processes(&mut owners)));
            let _ = tell.send(found.unwrap_or_default());
        };
        let thread = std::thread::Builder::new().name("gpuscope-nvml".to_owned());
        thread.spawn(look)?;
        Ok(Looking(told))
    }

    /// Processes that hold memory on a device (NVML's number) on which, by NVML's word, a kernel of anybody ran all the time, so
    /// that one of them may have run all the time. `None`: it is not over.
    #[must_use]
    pub fn found(&self) -> Option<BTreeMap<u32, u32>> {
        match self.0.try_recv() {
            Ok(found) => Some(found),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(BTreeMap::new()),
        }
    }
}

/// Of pairs of a process and a device those that are `busy` in each look, as long as it is to be looked `again` after so many; of each
/// process one.
fn restless(again: impl Fn(u32) -> bool, mut busy: impl FnMut() -> BTreeSet<(u32, u32)>) -> BTreeMap<u32, u32> {
    let (mut all, mut looks) = (busy(), 1);
    while !all.is_empty() && again(looks) {
        all = &all & &busy();
        looks += 1;
    }
    all.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if NVML told of these, one after the other, and of the last ones again and again.
    fn found(told: &[&[(u32, u32)]]) -> BTreeMap<u32, u32> {
        let mut rounds = 0;
        let look = || {
            let round = told[rounds.min(told.len() - 1)];
            rounds += 1;
            round.iter().copied().collect()
        };
        restless(|looks| looks < 3, look)
    }

    #[test]
    fn who_is_busy_in_each_look_is_never_idle() {
        assert_eq!(found(&[&[(7, 0), (8, 1)]]), BTreeMap::from([(7, 0), (8, 1)]));
    }

    #[test]
    fn one_look_without_a_kernel_is_enough() {
        assert_eq!(found(&[&[(7, 0)], &[], &[(7, 0)]]), BTreeMap::new());
    }

    #[test]
    fn each_device_counts_for_itself() {
        let turns: &[&[(u32, u32)]] = &[&[(7, 0)], &[(7, 1)], &[(7, 0), (7, 1)]];
        assert_eq!(found(turns), BTreeMap::new());
        assert_eq!(found(&[&[(7, 0), (7, 1)], &[(7, 1)]]), BTreeMap::from([(7, 1)]));
    }
}
