//! Whose a process is, and who started it: asked of `/proc` once for each, and whether it is still there each time.

use crate::discover::parent_of;
use crate::owner::Stat;
use crate::user;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Ancestors that are looked at.
const DEEPEST: usize = 32;

/// What is known of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    pub user: String,
    /// The nearest first.
    pub ancestors: Vec<u32>,
    pub ended: bool,
    /// When it began, as `/proc` has it: another one may have the same number later.
    started: Option<u64>,
}

/// Whose a process is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origins {
    known: HashMap<u32, Origin>,
    names: HashMap<u32, String>,
}

impl Origins {
    /// Looks at these processes, and forgets all others.
    pub(crate) fn look_at(&mut self, pids: impl Iterator<Item = u32>) {
        let mut before = std::mem::take(&mut self.known);
        for pid in pids {
            let known = before.remove(&pid);
            let origin = self.looked_at(pid, known);
            self.known.insert(pid, origin);
        }
    }

    pub(crate) fn get(&self, pid: u32) -> Option<&Origin> {
        self.known.get(&pid)
    }

    #[cfg(test)]
    pub(crate) fn tell(&mut self, pid: u32, origin: Origin) {
        self.known.insert(pid, origin);
    }

    fn looked_at(&mut self, pid: u32, known: Option<Origin>) -> Origin {
        let stat = Stat::read(&Path::new("/proc").join(pid.to_string()));
        let ended = stat.as_ref().is_none_or(|stat| stat.ended);
        let started = stat.map(|stat| stat.start_ticks);
        match known {
            // once it has ended, its number may be another's
            Some(origin) if origin.ended || ended || origin.started != started => Origin { ended: true, ..origin },
            Some(origin) => origin,
            None => Origin {
                user: self.user_of(pid),
                ancestors: ancestors(pid),
                ended,
                started,
            },
        }
    }

    fn user_of(&mut self, pid: u32) -> String {
        let Ok(folder) = std::fs::metadata(format!("/proc/{pid}")) else {
            return String::new();
        };
        let name = self.names.entry(folder.uid());
        name.or_insert_with_key(|uid| user::name_of(*uid)).clone()
    }
}

#[cfg(test)]
impl Origin {
    pub(crate) fn of(user: &str, ancestors: &[u32]) -> Origin {
        Origin {
            user: user.to_owned(),
            ancestors: ancestors.to_vec(),
            ..Origin::default()
        }
    }
}

fn ancestors(pid: u32) -> Vec<u32> {
    let mut chain = Vec::new();
    let mut of = pid;
    while let Some(parent) = parent_of(of).filter(|_| chain.len() < DEEPEST) {
        chain.push(parent);
        of = parent;
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_are_there_and_have_a_parent() {
        let mut origins = Origins::default();
        let own = std::process::id();
        origins.look_at([own, u32::MAX].into_iter());
        let origin = origins.get(own).unwrap();
        assert!(!origin.ended && !origin.user.is_empty() && !origin.ancestors.is_empty());
        assert!(origins.get(u32::MAX).unwrap().ended);
    }
}
