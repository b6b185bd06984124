//! The probes in a file: what keeps them from doing harm, and how they are taken away.

use super::Attacher;
use super::stay::Stay;
use super::traffic::Hooked;
use crate::engine::Engine;
use crate::foreign::ForeignFile;
use crate::output::say;
use crate::probe::lease::{self, Guard, Lease};
use crate::probe::links;
use crate::probe::remover::Remover;
use std::os::fd::RawFd;
use std::path::PathBuf;

/// The probes in a file, and what keeps them from doing harm.
pub(super) struct Probes {
    pub(super) hooked: Hooked,
    pub(super) file: ForeignFile,
    pub(super) guard: Guard,
    pub(super) stay: Stay,
    /// Where they are, in order, and what the file has there; empty: it was not asked for yet.
    pub(super) original: Vec<(u64, Option<u8>)>,
}

impl Probes {
    fn is_in_the_way(&self) -> bool {
        self.guard.lease().is_some_and(Lease::is_wanted)
    }
}

impl Attacher {
    /// Lets go of files that somebody wants to overwrite; names them.
    pub fn release_wanted(&mut self, engine: &dyn Engine) -> Vec<PathBuf> {
        let files = self.attached.extract_if(|_, file| file.probes.is_in_the_way());
        let mut wanted: Vec<(PathBuf, Probes)> = files.map(|(_, file)| (file.path, file.probes)).collect();
        let linkers = self.linkers.extract_if(|_, (_, probes)| probes.is_in_the_way());
        wanted.extend(linkers.map(|(_, linker)| linker));
        if wanted.is_empty() {
            return Vec::new();
        }
        let (paths, probes): (Vec<PathBuf>, Vec<Probes>) = wanted.into_iter().unzip();
        engine.forget_files();
        let_go(probes);
        self.looked_at.clear();
        self.blind = true;
        for path in &paths {
            self.gap(format!(
                "{}: changed on disk while it was traced; its old code is no longer traced",
                path.display()
            ));
        }
        paths
    }

    /// Files whose probes nothing protects from who overwrites them, as words.
    #[must_use]
    pub fn unguarded(&self) -> Vec<String> {
        let linkers = self.linkers.values().map(|(_, probes)| probes);
        let probes = self.attached.values().map(|file| &file.probes).chain(linkers);
        lease::words(probes.filter_map(|probes| match probes.guard {
            Guard::Leased(_) | Guard::NotNeeded => None,
            Guard::None(why) => Some(why),
        }))
    }

    /// Takes all probes away.
    pub fn detach_all(&mut self) {
        let_go(self.take_all());
        self.kernel.detach();
    }

    /// Leaves it to another process to take all probes away, where each takes long; takes them away itself where there can be none.
    pub fn leave_all(&mut self) -> Option<Remover> {
        let mut probes = self.take_all();
        let leases = probes.iter().filter_map(|probes| probes.guard.lease());
        let leases: Vec<RawFd> = leases.map(Lease::descriptor).collect();
        let count = probes.iter().map(|probes| probes.hooked.count()).sum();
        let remover = Remover::start(count, &leases).unwrap_or_else(|error| {
            say(format_args!(
                "gpuscope: taking {count} probes away, one at a time, as no other process can: {error}"
            ));
            None
        });
        if remover.is_some() {
            probes.iter_mut().for_each(|probes| probes.guard.leave());
        }
        let_go(probes);
        self.kernel.detach();
        remover
    }

    fn take_all(&mut self) -> Vec<Probes> {
        let files = self.attached.drain().map(|(_, file)| file.probes);
        let linkers = self.linkers.drain().map(|(_, (_, probes))| probes);
        files.chain(linkers).collect()
    }
}

/// Takes the probes of files away. Whoever waits to overwrite such a file goes on when none is left.
pub(super) fn let_go(mut probes: Vec<Probes>) {
    let hooks = probes.iter_mut().flat_map(|probes| probes.hooked.take(|_| true));
    links::detach(hooks.collect());
}
