//! How long a file stays probed: always, or as long as some process maps it.

use crate::discover::Mapping;
use std::collections::HashSet;

/// A file's device and inode, as maps have them.
pub type Name = (String, u64);

impl Mapping {
    pub(super) fn name(&self) -> Name {
        (self.device.clone(), self.inode)
    }
}

/// How long a file stays probed.
#[derive(Debug)]
pub(super) enum Stay {
    Always,
    /// As long as a process maps it by one of these names. `unmapped`: the last round found none.
    WhileMapped {
        names: HashSet<Name>,
        unmapped: bool,
    },
}

impl Stay {
    pub(super) fn for_mapping(mapping: Option<&Mapping>) -> Stay {
        mapping.map_or(Stay::Always, |mapping| Stay::WhileMapped {
            names: HashSet::from([mapping.name()]),
            unmapped: false,
        })
    }

    /// A process maps it by this name, too.
    pub(super) fn note(&mut self, mapping: Option<&Mapping>) {
        if let (Stay::WhileMapped { names, unmapped }, Some(mapping)) = (self, mapping) {
            names.insert(mapping.name());
            *unmapped = false;
        }
    }

    /// Whether it may go, now that a round has found these.
    pub(super) fn is_over(&mut self, mapped: &HashSet<Name>) -> bool {
        let Stay::WhileMapped { names, unmapped } = self else {
            return false;
        };
        let before = std::mem::replace(unmapped, names.is_disjoint(mapped));
        before && *unmapped
    }
}
