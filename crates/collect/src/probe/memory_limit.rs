//! Whether the kernel's tables fit into the memory that our control groups allow: whoever takes more is ended by the kernel,
//! without a word.
//!
//! Owns what tables take and what groups leave. How large tables are to be is [`super::load`]'s business.

use anyhow::Result;
use libbpf_rs::{MapType, OpenMap, OpenObject, libbpf_sys};
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

/// What we take ourselves until all is attached: the programs while they are checked, links, symbols of libraries.
const OWN_BYTES: u64 = 20 << 20;
/// The kernel's part of an entry of a hash table.
const ENTRY_BYTES: u64 = 48;
const BUCKET_BYTES: u64 = 16;
const GROUPS: &str = "/sys/fs/cgroup";

/// Refuses what the kernel would not let us finish.
///
/// # Errors
/// The tables are larger than what a control group leaves.
pub(super) fn check(object: &OpenObject) -> Result<()> {
    let Some(group) = narrowest(&std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default()) else {
        return Ok(());
    };
    let needed = object.maps().map(|map| bytes_of(&map)).sum::<u64>() + OWN_BYTES;
    if needed > group.left {
        return Err(TooLittle { group, needed }.into());
    }
    Ok(())
}

/// A control group does not leave enough memory.
#[derive(Debug)]
pub(super) struct TooLittle {
    group: Group,
    needed: u64,
}

impl Display for TooLittle {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "failed to load: that takes about {} MiB, and the control group {} leaves {} MiB\n\
             hint: allow it more (memory.max; of a pod: resources.limits.memory), or ask for less: a smaller --ring-size, -q",
            self.needed >> 20,
            self.group.path.display(),
            self.group.left >> 20
        )
    }
}

impl std::error::Error for TooLittle {}

/// A control group with a limit, and what is left of that.
#[derive(Debug)]
struct Group {
    path: PathBuf,
    left: u64,
}

/// Of the groups that are named here, as `/proc/PID/cgroup` does, and those around them, the one that leaves least.
fn narrowest(groups: &str) -> Option<Group> {
    let folders = groups.lines().filter_map(folder_of);
    let all = folders.flat_map(|folder| folder.ancestors().map(Path::to_owned).collect::<Vec<_>>());
    let within = all.filter(|folder| folder.starts_with(GROUPS));
    within.filter_map(group_at).min_by_key(|group| group.left)
}

/// Where the files of a line's group are, if its hierarchy limits memory.
fn folder_of(line: &str) -> Option<PathBuf> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let root = match controllers {
        "" => PathBuf::from(GROUPS),
        _ if controllers.split(',').any(|name| name == "memory") => Path::new(GROUPS).join("memory"),
        _ => return None,
    };
    // in a container its own group may be the root of what is mounted
    let own = root.join(path.trim_start_matches('/'));
    Some(if own.exists() { own } else { root })
}

fn group_at(folder: PathBuf) -> Option<Group> {
    let number = |name: &str| read(&folder.join(name))?.trim().parse::<u64>().ok();
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let kept = used.saturating_sub(reclaimable(&read(&folder.join("memory.stat"))?));
    Some(Group {
        left: limit.saturating_sub(kept),
        path: folder,
    })
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Pages of files, which the kernel takes back before it ends anybody.
fn reclaimable(stat: &str) -> u64 {
    let of = |name: &str| {
        let number = |line: &str| line.strip_prefix(name)?.trim().parse::<u64>().ok();
        stat.lines().find_map(number)
    };
    let pair = |prefix: &str| Some(of(&format!("{prefix}active_file "))? + of(&format!("{prefix}inactive_file "))?);
    // those of v1 are with those of the groups within
    pair("total_").or_else(|| pair("")).unwrap_or(0)
}

/// What a table takes from the beginning.
fn bytes_of(map: &OpenMap<'_>) -> u64 {
    let entries = u64::from(map.max_entries());
    let (key, value) = (word(map.key_size()), word(map.value_size()));
    let processors = libbpf_rs::num_possible_cpus().map_or(1, |count| count as u64);
    let grows = map.map_flags() & libbpf_sys::BPF_F_NO_PREALLOC != 0;
    let buckets = entries.next_power_of_two() * BUCKET_BYTES;
    match map.map_type() {
        _ if !map.autocreate() => 0,
        MapType::RingBuf => entries,
        MapType::Hash | MapType::PercpuHash if grows => buckets,
        MapType::Hash | MapType::LruHash => buckets + entries * (ENTRY_BYTES + key + value),
        MapType::PercpuHash | MapType::LruPercpuHash => buckets + entries * (ENTRY_BYTES + key + value * processors),
        MapType::PercpuArray => entries * value * processors,
        MapType::Array => entries * value,
        _ => 0,
    }
}

fn word(bytes: u32) -> u64 {
    u64::from(bytes).next_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_kinds_that_limit_memory_are_looked_at() {
        let folder = |line| folder_of(line).map(|path| path.display().to_string());
        assert_eq!(folder("8:pids:/x"), None);
        assert_eq!(folder("nonsense"), None);
        let nowhere = "0::/there/is/no/such/group";
        assert_eq!(folder(nowhere).as_deref(), Some(GROUPS), "as a container sees it");
    }

    #[test]
    fn pages_of_files_are_given_back() {
        let new = "anon 7\nfile 100\ninactive_file 30\nactive_file 4\n";
        assert_eq!(reclaimable(new), 34);
        let old = "cache 1\nactive_file 1\ninactive_file 1\ntotal_inactive_file 300\ntotal_active_file 50\n";
        assert_eq!(reclaimable(old), 350);
        assert_eq!(reclaimable(""), 0);
    }

    #[test]
    fn who_has_a_limit_and_what_is_left_of_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let left = || group_at(folder.path().to_owned()).map(|group| group.left);
        write("memory.current", "1000\n");
        write("memory.stat", "inactive_file 300\nactive_file 0\n");
        write("memory.max", "max\n");
        assert_eq!(left(), None, "there is none");
        write("memory.max", "1500\n");
        assert_eq!(left(), Some(800));
        write("memory.max", "10\n");
        assert_eq!(left(), Some(0));
    }
}
