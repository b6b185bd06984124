//! Whom links are believed of, and to whom new files go.

use crate::user::{self, Caller};
use std::os::fd::RawFd;

/// Whom links are believed of.
#[derive(Clone, Debug)]
pub(super) struct Trust {
    pub(super) uids: Vec<u32>,
    /// To whom new files go.
    pub(super) owner: Option<Caller>,
    /// Whether the kernel lets us write to files of others.
    pub(super) powerful: bool,
}

impl Trust {
    pub(super) fn here() -> Trust {
        let owner = user::behind_sudo();
        let own = user::effective();
        Trust {
            uids: [0, own].into_iter().chain(owner.map(|owner| owner.uid)).collect(),
            owner,
            powerful: own == 0,
        }
    }

    pub(super) fn covers(&self, uid: u32) -> bool {
        self.uids.contains(&uid)
    }
}

/// Makes what root has made somebody's own. Where the file system knows no owners it stays root's.
pub(super) fn give(fd: RawFd, owner: Caller) {
    // SAFETY: plain numbers and an open descriptor
    let _ = unsafe { libc::fchown(fd, owner.uid, owner.gid) };
}
