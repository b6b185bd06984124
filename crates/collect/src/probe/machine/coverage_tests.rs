use super::*;
use crate::probe::machine::mapped::Kind;

fn library(layer: &str) -> MappedLibrary {
    MappedLibrary {
        path: "/lib/x.so".to_owned(),
        kind: Kind::Shared,
        layer: layer.to_owned(),
        hookable: 1,
        of: 1,
        mount_namespace_differs: false,
        deleted: false,
        note: None,
    }
}

#[test]
fn a_layer_that_is_absent_is_named() {
    let first = |layers: &[&str]| {
        let libraries: Vec<_> = layers.iter().map(|layer| library(layer)).collect();
        layer_gaps(&libraries).first().cloned().unwrap_or_default()
    };
    assert!(first(&[]).starts_with("no CUDA library is mapped"));
    assert!(first(&["runtime"]).starts_with("libcuda is not mapped"));
    assert!(first(&["driver"]).starts_with("no CUDA runtime is mapped"));
    assert!(first(&["runtime", "driver"]).starts_with("private driver functions"));
    assert_eq!(first(&["custom"]), "");
}

#[test]
fn returns_that_would_kill_are_a_gap() {
    let process = Process {
        seccomp: true,
        shadow_stack: true,
        ..Process::default()
    };
    assert_eq!(kernel_gaps(&process, Version(6, 18, 0)).len(), 0);
    assert!(kernel_gaps(&process, Version(6, 12, 1))[0].contains("seccomp"));
    assert!(kernel_gaps(&process, Version(6, 6, 1))[0].contains("shadow stack"));
    assert_eq!(kernel_gaps(&Process::default(), Version(6, 12, 1)).len(), 0);
}

#[test]
fn notes_are_kept_side_by_side() {
    let mut library = library("driver");
    library.add_note("one".to_owned());
    library.add_note("two".to_owned());
    assert_eq!(library.note.as_deref(), Some("one; two"));
}

#[test]
fn a_process_without_cuda_says_so() {
    let catalog = Catalog::builtin().expect("the built-in tables");
    // not this one, in which other tests map what they like
    let mut sleeper = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .expect("a process");
    let found = coverage(sleeper.id(), &catalog);
    sleeper.kill().expect("it sleeps");
    sleeper.wait().expect("a child");
    let found = found.expect("a process of ours");
    assert_eq!((found.refusal, found.libraries.len()), (None, 0));
    assert!(
        found
            .gaps
            .iter()
            .any(|gap| gap.starts_with("no CUDA library is mapped"))
    );
}

#[test]
fn mappings_of_others_are_named_as_such() {
    let denied = unreadable(&io::Error::from_raw_os_error(libc::EACCES));
    assert!(denied.contains("another user") && denied.contains("hint: run with sudo"));
}
