//! What is kept is read again as it was, or not at all.

use super::*;
use crate::wire::zero;

fn identity(inode: u64, bytes: u64) -> FileIdentity {
    FileIdentity {
        device: 1,
        inode,
        bytes,
        written: (10, 11),
        changed: (12, 13),
    }
}

fn patches(entries: impl IntoIterator<Item = u64>) -> Vec<ArenaPatch> {
    let patch = |entry| ArenaPatch { entry, ..zero() };
    entries.into_iter().map(patch).collect()
}

/// Inode and size of each file, and how many patches it has.
fn known(kept: &Kept) -> Vec<(u64, u64, u64)> {
    let known = kept.plans.iter().map(|plan| &plan.file);
    known.map(|file| (file.file.inode, file.bytes, file.patches)).collect()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn what_was_planned_is_there_for_the_next_who_looks() {
    let folder = folder();
    let mut kept = Kept::of(folder.path()).expect("our own");
    kept.add(&identity(7, 100), OsStr::new("a.so"), &patches([1, 2]));
    kept.add(&identity(8, 200), OsStr::new("b.so"), &[]);
    kept.write().expect("it is written");
    let mut next = Kept::of(folder.path()).expect("our own");
    assert_eq!(known(&next), [(7, 100, 2), (8, 200, 0)]);
    assert_eq!(next.plans[0].patches, kept.plans[0].patches);
    next.add(&identity(7, 101), OsStr::new("a.so"), &patches([3]));
    next.write().expect("it is written");
    let last = Kept::of(folder.path()).expect("our own");
    assert_eq!(known(&last), [(8, 200, 0), (7, 101, 1)]);
    let names = fs::read_dir(folder.path()).expect("a folder");
    let names: Vec<_> = names.map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(names, [NAME], "nothing else is left there");
}

#[test]
fn a_file_of_two_names_is_two() {
    let folder = folder();
    let mut kept = Kept::of(folder.path()).expect("our own");
    for name in ["a.so", "b.so", "a.so"] {
        kept.add(&identity(7, 100), OsStr::new(name), &patches([1]));
    }
    assert_eq!(known(&kept).len(), 2);
}

#[test]
fn what_was_left_unwritten_goes_after_a_while() {
    let folder = folder();
    let [old, new] = ["plans-1-1", "plans-1-2"].map(|name| folder.path().join(name));
    for path in [&old, &new] {
        fs::write(path, "torn").expect("our own");
    }
    let file = File::options().write(true).open(&old).expect("our own");
    let long_ago = std::time::SystemTime::now() - 2 * STALE;
    file.set_modified(long_ago).expect("our own");
    Kept::of(folder.path()).expect("our own").sweep();
    assert!(!old.exists() && new.exists());
}

#[test]
fn what_was_torn_or_damaged_is_nothing() {
    let folder = folder();
    let mut kept = Kept::of(folder.path()).expect("our own");
    kept.add(&identity(7, 100), OsStr::new("a.so"), &patches([1, 2]));
    let whole = kept.text();
    assert_eq!(parsed(&whole).map(|plans| plans.len()), Some(1));
    for end in 0..whole.len() {
        assert!(parsed(&whole[..end]).is_none(), "its first {end} bytes");
    }
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        assert!(parsed(&damaged).is_none(), "byte {at}");
    }
}

#[test]
fn of_more_than_there_is_room_for_the_newest_are_kept() {
    let folder = folder();
    let mut kept = Kept::of(folder.path()).expect("our own");
    let many = patches(0..20_000);
    (1..=4).for_each(|inode| kept.add(&identity(inode, 0), OsStr::new("a.so"), &many));
    let text = kept.text();
    assert!(text.len() as u64 <= KEPT_BYTES);
    let inodes: Vec<u64> = parsed(&text)
        .expect("it is whole")
        .iter()
        .map(|plan| plan.file.file.inode)
        .collect();
    assert_eq!(inodes, [3, 4]);
}

#[test]
fn a_folder_that_others_may_write_to_is_left_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("our own");
    assert!(Kept::of(folder.path()).is_err());
}
