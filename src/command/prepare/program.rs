//! What runs in the end when a command is started, and whether that loads the agent: its program is found as its user's shell
//! would find it, and followed through scripts and `env`.

use super::env::{Env, of_env};
use crate::inside::program::{Program, RunsAs, look};
use crate::probe::launch::Runner;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Scripts that name scripts: the kernel follows five.
const DEEPEST: usize = 8;
/// What they start is in another root directory, mostly, where the agent does not lie.
const ELSEWHERE: [&str; 3] = ["bwrap", "chroot", "nsenter"];

/// Why what `command` starts cannot be traced from inside; `None`: nothing speaks against it.
pub(super) fn hindrance(command: &[OsString], runner: Option<&Runner>, has_hooks: bool) -> Option<String> {
    let path = search_path(runner);
    let mut words = command.to_vec();
    for _ in 0..DEEPEST {
        let program = find_program(words.first()?, path.as_deref())?;
        let because = |why: &str| Some(format!("{} {why}", program.display()));
        words = match look(&program, runs_as(runner)) {
            Program::Refuses(why) => return because(&why),
            Program::Go if has_hooks => return because("is a program of Go, whose functions --hooks may mean"),
            _ if ELSEWHERE.iter().any(|name| is_named(&program, name)) => {
                return because("starts programs in another root directory, where the agent does not lie");
            }
            _ if is_named(&program, "env") => match of_env(&words[1..]) {
                Env::Starts(words) => words,
                Env::Withholds => return because("leaves out what has programs load the agent"),
            },
            Program::Script(mut before) => {
                before.push(program.into_os_string());
                before.extend_from_slice(&words[1..]);
                before
            }
            Program::Loads | Program::Go => return None,
        };
    }
    None
}

fn runs_as(runner: Option<&Runner>) -> RunsAs {
    // SAFETY: they ask the kernel, and cannot fail
    let (uid, gid) = unsafe { (libc::getuid(), libc::getgid()) };
    runner.map_or(RunsAs { uid, gid }, |runner| RunsAs {
        uid: runner.user.uid,
        gid: runner.user.gid,
    })
}

/// The folders in which the command is looked for.
pub(crate) fn search_path(runner: Option<&Runner>) -> Option<OsString> {
    match runner {
        Some(runner) => runner.environment.get(OsStr::new("PATH")).cloned(),
        None => std::env::var_os("PATH"),
    }
}

/// Where a shell would find the program.
pub(crate) fn find_program(name: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.to_string_lossy().contains('/') {
        return Some(PathBuf::from(name));
    }
    std::env::split_paths(path?)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

fn is_named(program: &Path, name: &str) -> bool {
    program.file_name() == Some(OsStr::new(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(folder: &Path, name: &str, text: &str) -> OsString {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path.into_os_string()
    }

    #[test]
    fn scripts_are_followed_to_what_runs_them_and_never_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let own = |name: &str, text: &str| hindrance(&[script(folder.path(), name, text)], None, false);
        assert_eq!(own("plain", "#!/bin/sh\n"), None);
        let cleared = own("cleared", "#!/usr/bin/env -iS sh\n").unwrap();
        assert!(
            cleared.ends_with("env leaves out what has programs load the agent"),
            "{cleared}"
        );
        let round = folder.path().join("round");
        assert_eq!(own("round", &format!("#!{}\n", round.display())), None);
        assert_eq!(own("empty", ""), None);
        let elsewhere = own("chroot", "").unwrap();
        assert!(elsewhere.contains("another root directory"), "{elsewhere}");
        assert_eq!(hindrance(&["no such program".into()], None, false), None);
    }
}
