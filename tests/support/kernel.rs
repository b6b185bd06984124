//! What the running kernel is, and what gpuscope has left in it.

use libbpf_rs::query::{LinkInfo, LinkInfoIter, LinkTypeInfo, PerfEventType, ProgInfoIter};
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;

/// A way of attaching.
pub struct Tier {
    pub name: &'static str,
    /// The first kernel that has it.
    pub since: (u32, u32),
}

pub const TIERS: [Tier; 3] = [
    Tier {
        name: "uprobe.session",
        since: (6, 13),
    },
    Tier {
        name: "uprobe.multi",
        since: (6, 6),
    },
    Tier {
        name: "perf-link",
        since: (5, 15),
    },
];

/// Major and minor version of the running kernel.
pub fn kernel_version() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a version");
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse().expect("a number"));
    (numbers.next().expect("a major"), numbers.next().expect("a minor"))
}

/// The ids of the links and programs that process `pid` holds: (links, programs).
pub fn kernel_objects_of(pid: u32) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let (mut links, mut programs) = (BTreeSet::new(), BTreeSet::new());
    let folder = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("a process");
    for entry in folder.flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let id = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse::<u32>().ok()
        };
        links.extend(id("link_id:"));
        programs.extend(id("prog_id:"));
    }
    (links, programs)
}

/// Those of `objects` that the kernel still has.
pub fn still_there(objects: &(BTreeSet<u32>, BTreeSet<u32>)) -> usize {
    let links = LinkInfoIter::default()
        .filter(|link| objects.0.contains(&link.id))
        .count();
    let programs = ProgInfoIter::default()
        .filter(|program| objects.1.contains(&program.id))
        .count();
    links + programs
}

/// Since this kernel a link says where its probes are.
const TELLS_PROBES: (u32, u32) = (6, 8);

/// The offsets in files named `name` at which process `pid` itself has probes, whoever else has some there; `None`: this
/// kernel does not tell.
pub fn probes_of(pid: u32, name: &str) -> Option<BTreeSet<u64>> {
    let (links, _) = kernel_objects_of(pid);
    let own = LinkInfoIter::default().filter(|link| links.contains(&link.id));
    let offsets = own.flat_map(|link| offsets_of(&link, name)).collect();
    (kernel_version() >= TELLS_PROBES).then_some(offsets)
}

fn offsets_of(link: &LinkInfo, name: &str) -> Vec<u64> {
    let is_named = |path: &[u8]| {
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        path.ends_with(name.as_bytes())
    };
    match &link.info {
        LinkTypeInfo::UprobeMulti(multi) => {
            let path = multi.path.as_ref().map(|path| path.as_os_str().as_bytes());
            if path.is_some_and(is_named) {
                multi.offsets.clone()
            } else {
                Vec::new()
            }
        }
        LinkTypeInfo::PerfEvent(event) => match &event.event_type {
            PerfEventType::Uprobe {
                file_name: Some(path),
                offset,
                ..
            } if is_named(path.as_bytes()) => {
                vec![u64::from(*offset)]
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}
