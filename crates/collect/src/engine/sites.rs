//! Call sites: what an engine is told about interpreters, and what it forgets.

use super::{Engine, Table, value_of};
use crate::stack::wire::Python;
use crate::wire::bytes_of;
use anyhow::{Context, Result};

impl dyn Engine {
    /// Says where the interpreter of process `tgid` keeps its frames.
    ///
    /// # Errors
    /// The table of interpreters is full.
    pub fn set_python(&self, tgid: u32, python: &Python) -> Result<()> {
        self.store(Table::Pythons, &tgid.to_ne_bytes(), bytes_of(python))
            .with_context(|| format!("failed to store the interpreter of process {tgid}"))
    }

    /// Forgets the sites of processes that have ended, so that there is room for others'.
    pub fn forget_sites(&self, ended: &dyn Fn(u32) -> bool) {
        let mut sites = Vec::new();
        let read = self.read(Table::KnownSites, &mut |site, tgid| {
            if value_of(tgid).is_some_and(ended) {
                sites.push(site.to_vec());
            }
        });
        // what could not be read now is forgotten another time
        drop(read);
        for site in sites {
            let _ = self.delete(Table::KnownSites, &site);
        }
    }
}
