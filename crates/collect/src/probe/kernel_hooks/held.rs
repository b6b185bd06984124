//! One hook at a function of the kernel: in the best way that the kernel takes.
//!
//! Owns what is taken away with it. Which ways there are is [`crate::probe::kernel::ways`]' business.

use crate::engine::KernelPoint;
use crate::probe::Session;
use crate::probe::kernel::look::Look;
use crate::probe::kernel::symbols::Symbol;
use crate::probe::kernel::ways;
use crate::probe::trampoline::{self, Missed, Trampoline};
use anyhow::{Result, anyhow};
use libbpf_rs::Link;

/// What is taken away when it is dropped.
pub(super) enum Held {
    Links {
        /// Only dropped.
        _links: Vec<Link>,
    },
    Trampoline(Trampoline),
}

impl Held {
    pub(super) fn links(links: Vec<Link>) -> Held {
        Held::Links { _links: links }
    }

    pub(super) fn missed(&self) -> Missed {
        match self {
            Held::Links { .. } => Missed::default(),
            Held::Trampoline(trampoline) => trampoline.missed(),
        }
    }
}

/// In the best way that the kernel takes.
pub(super) fn attach_function(session: &Session, target: &Symbol, point: KernelPoint, look: &mut Look) -> Result<Held> {
    let ways = session.ways();
    let no_fentry = match look.target(ways, target) {
        Ok(found) => match trampoline::attach(&session.skel, &found, point) {
            Ok(trampoline) => return Ok(Held::Trampoline(trampoline)),
            Err(error) => format!("{error:#}"),
        },
        Err(why) => why,
    };
    let probed = match look.probe(ways, target) {
        Ok(()) => session.attach_kernel_function(&target.name, point),
        Err(why) => Err(anyhow!(why)),
    };
    probed
        .map(Held::links)
        .map_err(|error| anyhow!(ways::both(&no_fentry, &format!("{error:#}"))))
}

/// All functions of one name.
pub(super) fn attach_all(session: &Session, same: &[Symbol], point: KernelPoint) -> Result<Vec<Link>> {
    let links = same
        .iter()
        .map(|symbol| session.attach_kernel_address(symbol.address, point));
    Ok(links.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}
