use super::*;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use tempfile::TempDir;

/// Believes nobody: all that a test has made is somebody else's.
fn of_others() -> Trust {
    Trust {
        uids: Vec::new(),
        owner: None,
        powerful: true,
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn open(path: &Path, trust: &Trust) -> Result<File> {
    with(path, trust, false, |target, trust| target.emptied(trust))
}

fn said(outcome: Result<File>) -> String {
    crate::refusal::message(&outcome.expect_err("a refusal"))
}

/// What leads to the folder is trusted.
fn target_of_others(path: &Path) -> Result<File> {
    let target = Target::find(path, &Trust::here(), false)?;
    target.emptied(&of_others())
}

#[test]
fn a_new_file_is_its_owners_alone() {
    let folder = folder();
    let path = folder.path().join("t.jsonl");
    create(&path).unwrap().write_all(b"1").unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_own_file_is_emptied_and_keeps_its_mode() {
    let folder = folder();
    let path = folder.path().join("t.jsonl");
    std::fs::write(&path, "before").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    create(&path).unwrap().write_all(b"1").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"1");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
}

#[test]
fn an_own_link_is_followed_also_to_what_is_not_there_yet() {
    let folder = folder();
    let (link, there) = (folder.path().join("link"), folder.path().join("deep/there"));
    std::fs::create_dir(folder.path().join("deep")).unwrap();
    symlink("deep/../deep/there", &link).unwrap();
    create(&link).unwrap().write_all(b"1").unwrap();
    assert_eq!(std::fs::read(&there).unwrap(), b"1");
    create(&link).unwrap();
    assert_eq!(std::fs::read(&there).unwrap(), b"");
}

#[test]
fn a_link_of_somebody_else_is_refused_and_what_it_leads_to_stays() {
    let folder = folder();
    let (link, there) = (folder.path().join("out.html"), folder.path().join("precious"));
    std::fs::write(&there, "precious").unwrap();
    for to in [&there, &folder.path().join("missing")] {
        let _ = std::fs::remove_file(&link);
        symlink(to, &link).unwrap();
        let why = said(target_of_others(&link));
        assert!(
            why.contains("out.html is a symbolic link of ") && why.contains("hint: "),
            "{why}"
        );
    }
    assert_eq!(std::fs::read(&there).unwrap(), b"precious");
    assert!(!folder.path().join("missing").exists());
}

#[test]
fn a_folder_that_is_a_link_of_somebody_else_is_refused() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("real")).unwrap();
    symlink("real", folder.path().join("traces")).unwrap();
    let why = said(open(&folder.path().join("traces/t.arrows"), &of_others()));
    assert!(why.contains("traces is a symbolic link of "), "{why}");
    let made = std::fs::read_dir(folder.path().join("real")).unwrap();
    assert_eq!(made.count(), 0);
}

#[test]
fn a_file_of_somebody_else_is_not_written_to() {
    let folder = folder();
    let path = folder.path().join("t.jsonl");
    std::fs::write(&path, "theirs").unwrap();
    let why = said(target_of_others(&path));
    assert!(why.contains("it is there already and belongs to "), "{why}");
    assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
}

#[test]
fn what_has_a_second_name_is_not_emptied_by_who_may_do_everything() {
    let folder = folder();
    let (path, other) = (folder.path().join("t.jsonl"), folder.path().join("other"));
    std::fs::write(&other, "precious").unwrap();
    std::fs::hard_link(&other, &path).unwrap();
    let powerful = Trust {
        powerful: true,
        ..Trust::here()
    };
    assert!(said(open(&path, &powerful)).contains("second name"));
    assert_eq!(std::fs::read(&other).unwrap(), b"precious");
}

#[test]
fn a_new_file_never_takes_the_place_of_another() {
    let folder = folder();
    let path = folder.path().join("t.arrows");
    symlink("missing", &path).unwrap();
    assert!(said(create_new(&path)).contains("exists"));
    assert!(!folder.path().join("missing").exists());
    let target = Target::of(&path).unwrap();
    assert!(target.is_taken(), "a link that leads nowhere takes a name");
    target.remove().unwrap();
    assert!(!target.is_taken());
}

#[test]
fn pipes_and_descriptors_are_written_to() {
    create(Path::new("/dev/null")).unwrap();
    let folder = folder();
    let behind = File::create(folder.path().join("behind")).unwrap();
    let path = format!("/proc/self/fd/{}", behind.as_raw_fd());
    create(Path::new(&path)).unwrap().write_all(b"1").unwrap();
    assert_eq!(std::fs::read(folder.path().join("behind")).unwrap(), b"1");
}

#[test]
fn folders_are_made_and_what_is_no_folder_is_said() {
    let folder = folder();
    create_folder(&folder.path().join("a/b/c")).unwrap();
    assert!(folder.path().join("a/b/c").is_dir());
    std::fs::write(folder.path().join("file"), "").unwrap();
    let why = create_folder(&folder.path().join("file/d")).unwrap_err();
    assert!(format!("{why:#}").contains("file is no folder"), "{why:#}");
}
