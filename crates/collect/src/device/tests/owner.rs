use super::super::owner::Owners;
use std::path::Path;

/// A made-up process: its numbers, outermost first, and whether it uses the driver.
fn process(proc: &Path, numbers: &[u32], uses_driver: bool) {
    let folder = proc.join(numbers[0].to_string());
    std::fs::create_dir(&folder).expect("a folder");
    let words = numbers.iter().map(u32::to_string).collect::<Vec<_>>().join("\t");
    std::fs::write(
        folder.join("status"),
        format!("Name:\tx\nTgid:\t{}\nNSpid:\t{words}\n", numbers[0]),
    )
    .expect("a file");
    let mapped = if uses_driver {
        "7f00-7f01 r-xp 0 00:00 1 /usr/lib/libcuda.so.580.1\n"
    } else {
        "7f00-7f01 r-xp 0 00:00 1 /bin/x\n"
    };
    std::fs::write(folder.join("maps"), mapped).expect("a file");
}

fn machine(processes: &[(&[u32], bool)]) -> (tempfile::TempDir, Owners) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("sys")).expect("a folder");
    for (numbers, uses_driver) in processes {
        process(folder.path(), numbers, *uses_driver);
    }
    let owners = Owners::new(folder.path());
    (folder, owners)
}

#[test]
fn a_process_here_that_uses_the_driver_is_the_one() {
    let (_folder, mut owners) = machine(&[(&[40], true), (&[50, 40], true)]);
    assert_eq!(owners.of(40), Some(40));
}

#[test]
fn a_process_that_does_not_use_the_driver_is_another() {
    let (_folder, mut owners) = machine(&[(&[40], false)]);
    assert_eq!(owners.of(40), None);
}

#[test]
fn a_number_of_a_namespace_within_is_found_when_it_is_of_one_process_alone() {
    let (_folder, mut owners) = machine(&[
        (&[40], false),
        (&[50, 40, 1], true),
        (&[60, 41], false),
        (&[70, 1], true),
    ]);
    assert_eq!(owners.of(40), Some(50));
    assert_eq!(owners.of(41), None, "it does not use the driver");
    assert_eq!(owners.of(1), None, "two are number 1 in their namespaces");
}

#[test]
fn hidden_and_foreign_processes_are_not_known() {
    let (_folder, mut owners) = machine(&[(&[40], true)]);
    assert_eq!((owners.of(0), owners.of(4711)), (None, None));
}

#[test]
fn a_thread_is_no_process() {
    let (folder, mut owners) = machine(&[(&[40], true)]);
    std::fs::write(folder.path().join("40/status"), "Tgid:\t39\nNSpid:\t40\n").expect("a file");
    assert_eq!(owners.of(40), None);
}
