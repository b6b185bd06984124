//! Programs that use CUDA and have not loaded the agent, though somebody whom we watch has started them: nothing else tells
//! that their calls are not seen. One that ends between two looks is not found.

use crate::clock::thread_cpu;
use crate::discover;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

const OFTEN: Duration = Duration::from_millis(250);
/// Looking takes at most one part of so many of a processor's time.
const SELDOM: u32 = 50;
const AGENT: &str = "libgpuscope_agent";
const CUDA: [&str; 2] = ["libcuda.so", "libcudart.so"];

/// A file's device and inode.
type Program = (u64, u64);

/// Programs that use CUDA and have not loaded the agent, though somebody whom we watch has started them.
#[derive(Default)]
pub(super) struct Strangers {
    again: Option<Instant>,
    /// Programs that have loaded it, by process.
    carriers: HashMap<u32, Program>,
    found: BTreeMap<u32, String>,
}

impl Strangers {
    /// Looks at what descends from `watched`, unless that was done just now.
    pub(super) fn look(&mut self, watched: &HashSet<u32>) {
        if watched.is_empty() || self.again.is_some_and(|again| Instant::now() < again) {
            return;
        }
        let begun = thread_cpu();
        for pid in discover::descendants(watched.iter().copied()) {
            self.look_at(pid);
        }
        self.again = Some(Instant::now() + OFTEN.max(thread_cpu().saturating_sub(begun) * SELDOM));
    }

    fn look_at(&mut self, pid: u32) {
        let Some(program) = program_of(pid) else { return };
        if self.carriers.get(&pid) == Some(&program) || self.found.contains_key(&pid) {
            return;
        }
        let Ok(maps) = discover::mappings(pid) else { return };
        let is_mapped = |begin: &str| maps.iter().any(|mapping| mapping.is_named(begin));
        if is_mapped(AGENT) {
            self.carriers.insert(pid, program);
        } else if CUDA.iter().any(|name| is_mapped(name)) && program_of(pid) == Some(program) {
            let name = discover::comm(pid, pid).unwrap_or_default();
            self.found.insert(pid, name);
        }
    }

    /// What to say of them.
    pub(super) fn words(&self) -> Vec<String> {
        let of = |(pid, name): (&u32, &String)| {
            format!(
                "{name} {pid} uses CUDA and has not loaded the agent (its environment was cleared, or LD_PRELOAD set anew): \
                 none of its calls is seen"
            )
        };
        self.found.iter().map(of).collect()
    }
}

fn program_of(pid: u32) -> Option<Program> {
    let facts = std::fs::metadata(format!("/proc/{pid}/exe")).ok()?;
    Some((facts.dev(), facts.ino()))
}
