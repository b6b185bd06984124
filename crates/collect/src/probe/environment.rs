//! The environment of a command that runs as somebody else than gpuscope.
//!
//! sudo gives root's environment to what it starts, and keeps that of its caller in its own memory: a virtual
//! environment, CUDA_VISIBLE_DEVICES and LD_LIBRARY_PATH are part of what a program does.

use crate::user::User;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

pub type Environment = BTreeMap<OsString, OsString>;

/// Variables that sudo sets for whom it runs a command as.
const REPLACED: [&str; 7] = ["HOME", "PATH", "USER", "LOGNAME", "USERNAME", "SHELL", "MAIL"];
/// Variables by which sudo tells of itself.
const TOLD: [&str; 5] = ["SUDO_COMMAND", "SUDO_USER", "SUDO_UID", "SUDO_GID", "SUDO_HOME"];
/// Processes between sudo and us: shells, `env`, `time`.
const FURTHEST: usize = 16;

/// The environment of `user`, who called sudo: what sudo was given, and what was set for us beside.
#[must_use]
pub fn of_caller(user: &User) -> Environment {
    merged(user, given_to_sudo().unwrap_or_default(), std::env::vars_os())
}

/// The environment of `user`, who has not called us: ours, with that user's home.
#[must_use]
pub fn of_other(user: &User) -> Environment {
    let mut ours: Environment = std::env::vars_os().collect();
    forget_sudo(&mut ours);
    ours.remove(OsStr::new("MAIL"));
    ours.extend(personal(user));
    ours
}

fn merged(user: &User, given: Environment, ours: impl Iterator<Item = (OsString, OsString)>) -> Environment {
    let (replaced, mut kept): (Environment, Environment) =
        ours.partition(|(name, _)| REPLACED.iter().any(|known| name == known));
    forget_sudo(&mut kept);
    let path = replaced.into_iter().filter(|(name, _)| name == "PATH");
    let mut all: Environment = path.chain(personal(user)).collect();
    all.extend(given);
    all.extend(kept);
    all
}

fn forget_sudo(environment: &mut Environment) {
    TOLD.iter().for_each(|name| drop(environment.remove(OsStr::new(name))));
}

/// What the list of users says of one.
fn personal(user: &User) -> Environment {
    let account = user.account.iter().flat_map(|account| {
        [
            ("HOME", &account.home),
            ("USER", &account.name),
            ("LOGNAME", &account.name),
            ("SHELL", &account.shell),
        ]
    });
    account.map(|(name, value)| (name.into(), value.clone())).collect()
}

/// What the sudo that started us was started with.
fn given_to_sudo() -> Option<Environment> {
    let sudo = ancestors().find(|pid| is_sudo(*pid))?;
    let bytes = std::fs::read(format!("/proc/{sudo}/environ")).ok()?;
    let mut given = parsed(&bytes);
    forget_sudo(&mut given);
    (!given.is_empty()).then_some(given)
}

/// From our parent upwards.
fn ancestors() -> impl Iterator<Item = u32> {
    let parent = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields = stat.rsplit_once(") ")?.1;
        fields.split(' ').nth(1)?.parse::<u32>().ok().filter(|pid| *pid > 1)
    };
    std::iter::successors(parent(&std::process::id()), parent).take(FURTHEST)
}

/// A program of root's that is called so and may become root.
fn is_sudo(pid: u32) -> bool {
    let exe = PathBuf::from(format!("/proc/{pid}/exe"));
    let is_named = std::fs::read_link(&exe).is_ok_and(|path| path.file_name() == Some(OsStr::new("sudo")));
    let may = |about: std::fs::Metadata| about.uid() == 0 && about.mode() & libc::S_ISUID != 0;
    is_named && std::fs::metadata(&exe).is_ok_and(may)
}

/// `NAME=VALUE`, each with a zero behind it.
fn parsed(bytes: &[u8]) -> Environment {
    let pair = |entry: &[u8]| {
        let sign = entry.iter().position(|byte| *byte == b'=').filter(|sign| *sign > 0)?;
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        Some((text(&entry[..sign]), text(&entry[sign + 1..])))
    };
    bytes.split(|byte| *byte == 0).filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::Account;

    fn alice() -> User {
        User {
            uid: 1000,
            gid: 1000,
            groups: vec![1000],
            account: Some(Account {
                name: "alice".into(),
                home: "/home/alice".into(),
                shell: "/bin/zsh".into(),
            }),
        }
    }

    fn of(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    const ROOTS: [(&str, &str); 5] = [
        ("HOME", "/root"),
        ("PATH", "/usr/sbin:/usr/bin"),
        ("USER", "root"),
        ("SUDO_UID", "1000"),
        ("CUDA_VISIBLE_DEVICES", "1"),
    ];

    #[test]
    fn the_callers_own_environment_comes_back_and_what_was_set_for_us_stays() {
        let given = of(&[
            ("HOME", "/data/alice"),
            ("PATH", "/data/alice/venv/bin:/usr/bin"),
            ("LD_LIBRARY_PATH", "/opt/cuda"),
            ("CUDA_VISIBLE_DEVICES", "0"),
        ]);
        let all = merged(&alice(), given, of(&ROOTS).into_iter());
        let expected = of(&[
            ("CUDA_VISIBLE_DEVICES", "1"),
            ("HOME", "/data/alice"),
            ("LD_LIBRARY_PATH", "/opt/cuda"),
            ("LOGNAME", "alice"),
            ("PATH", "/data/alice/venv/bin:/usr/bin"),
            ("SHELL", "/bin/zsh"),
            ("USER", "alice"),
        ]);
        assert_eq!(all, expected);
    }

    #[test]
    fn without_it_home_and_name_are_those_of_the_list_of_users() {
        let all = merged(&alice(), Environment::new(), of(&ROOTS).into_iter());
        assert_eq!(all[OsStr::new("HOME")], "/home/alice");
        assert_eq!(all[OsStr::new("PATH")], "/usr/sbin:/usr/bin");
        assert!(!all.contains_key(OsStr::new("SUDO_UID")));
    }

    #[test]
    fn a_variable_may_hold_anything_but_zeros() {
        let all = parsed(b"A=b=c\nd\0=x\0broken\0E=\0\xff=\xfe\0");
        let names: Vec<&[u8]> = all.keys().map(|name| name.as_encoded_bytes()).collect();
        assert_eq!(names, [&b"A"[..], b"E", b"\xff"]);
        assert_eq!(all[OsStr::new("A")], "b=c\nd");
    }
}
