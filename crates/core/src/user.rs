//! Users of this machine, and who called gpuscope: under sudo the user behind it.
//!
//! Owns names, groups and homes. What a user may do is the kernel's business; who runs as whom is
//! `probe::launch`'s.

use anyhow::{Result, anyhow};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// More than any line of /etc/passwd takes.
const LARGEST_ENTRY: usize = 1 << 20;
/// The kernel takes no more of them.
const MOST_GROUPS: usize = 1 << 16;

/// Whom files are given to: a user and a group, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
}

/// A user, with all groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
    /// `None`: the number has no name here.
    pub account: Option<Account>,
}

/// What a user's environment says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: OsString,
    pub home: OsString,
    pub shell: OsString,
}

/// Who called sudo, where we are root by it; `None`: nobody did, or root.
#[must_use]
pub fn behind_sudo() -> Option<Caller> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    let uid = number("SUDO_UID").filter(|uid| *uid != 0 && effective() == 0)?;
    let gid = number("SUDO_GID").or_else(|| Some(account_of(uid)?.1))?;
    Some(Caller { uid, gid })
}

/// The number that our rights are those of.
#[must_use]
pub fn effective() -> u32 {
    // SAFETY: it only asks
    unsafe { libc::geteuid() }
}

impl User {
    /// The user of that name or number.
    ///
    /// # Errors
    /// There is none.
    pub fn named(word: &str) -> Result<User> {
        let found = match word.parse::<u32>() {
            Ok(uid) => account_of(uid),
            Err(_) => CString::new(word).ok().and_then(|name| account_named(&name)),
        };
        let (uid, gid, account) = found.ok_or_else(|| anyhow!("there is no user {word:?}\nhint: getent passwd"))?;
        Ok(User::with(uid, gid, Some(account)))
    }

    /// The user behind sudo, who need not have a name.
    #[must_use]
    pub fn of_caller(caller: Caller) -> User {
        let account = account_of(caller.uid).map(|(_, _, account)| account);
        User::with(caller.uid, caller.gid, account)
    }

    fn with(uid: u32, gid: u32, account: Option<Account>) -> User {
        let groups = account.as_ref().map(|account| groups_of(&account.name, gid));
        User {
            uid,
            gid,
            groups: groups.unwrap_or_else(|| vec![gid]),
            account,
        }
    }

    /// `alice`, or the number.
    #[must_use]
    pub fn words(&self) -> String {
        match &self.account {
            Some(account) => account.name.to_string_lossy().into_owned(),
            None => self.uid.to_string(),
        }
    }
}

/// The name of a user, or the number of one that has none.
#[must_use]
pub fn name_of(uid: u32) -> String {
    account_of(uid).map_or_else(
        || format!("user {uid}"),
        |(_, _, account)| account.name.to_string_lossy().into_owned(),
    )
}

type Entry = (u32, u32, Account);

fn account_of(uid: u32) -> Option<Entry> {
    // SAFETY: the pointers are to memory of `entry`, for as long as the call takes
    entry(|into, buffer, length, found| unsafe { libc::getpwuid_r(uid, into, buffer, length, found) })
}

fn account_named(name: &CStr) -> Option<Entry> {
    // SAFETY: as above; the name ends in a zero
    entry(|into, buffer, length, found| unsafe { libc::getpwnam_r(name.as_ptr(), into, buffer, length, found) })
}

type Ask<'a> = &'a dyn Fn(*mut libc::passwd, *mut libc::c_char, usize, *mut *mut libc::passwd) -> i32;

fn entry(ask: impl Fn(*mut libc::passwd, *mut libc::c_char, usize, *mut *mut libc::passwd) -> i32) -> Option<Entry> {
    let ask: Ask<'_> = &ask;
    let mut length = 1 << 12;
    while length <= LARGEST_ENTRY {
        let mut texts = vec![0; length];
        let mut into = MaybeUninit::uninit();
        let mut found = std::ptr::null_mut();
        let answer = ask(into.as_mut_ptr(), texts.as_mut_ptr(), length, &raw mut found);
        if answer == libc::ERANGE {
            length *= 4;
            continue;
        }
        if answer != 0 || found.is_null() {
            return None;
        }
        // SAFETY: it was filled, and its texts lie in `texts`, which is still there
        return Some(unsafe { taken(&into.assume_init()) });
    }
    None
}

/// # Safety
/// The texts of `entry` are there.
unsafe fn taken(entry: &libc::passwd) -> Entry {
    let text = |text: *const libc::c_char| match text.is_null() {
        true => OsString::new(),
        // SAFETY: the caller says that it is a text
        false => OsString::from_vec(unsafe { CStr::from_ptr(text) }.to_bytes().to_vec()),
    };
    let account = Account {
        name: text(entry.pw_name),
        home: text(entry.pw_dir),
        shell: text(entry.pw_shell),
    };
    (entry.pw_uid, entry.pw_gid, account)
}

/// All groups of a user, `gid` among them.
fn groups_of(name: &OsStr, gid: u32) -> Vec<u32> {
    let Ok(name) = CString::new(name.as_bytes()) else {
        return vec![gid];
    };
    let mut room = 64;
    while room <= MOST_GROUPS {
        let mut groups = vec![0; room];
        let mut number = room as libc::c_int;
        // SAFETY: there is room for so many
        let answer = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut number) };
        if answer >= 0 {
            groups.truncate(usize::try_from(number).unwrap_or(0));
            return groups;
        }
        room *= 8;
    }
    vec![gid]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_name_and_by_number() {
        let root = User::named("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert!(root.groups.contains(&0) && root.words() == "root");
        assert_eq!(User::named("0").unwrap(), root);
    }

    #[test]
    fn who_is_not_there_is_said() {
        let said = User::named("no such user").unwrap_err().to_string();
        assert!(said.contains("there is no user \"no such user\"\nhint: "), "{said}");
    }

    #[test]
    fn a_caller_without_a_name_has_the_group_that_sudo_says() {
        let stranger = User::of_caller(Caller {
            uid: 4_123_456_789,
            gid: 77,
        });
        assert_eq!(stranger.groups, [77]);
        assert_eq!(
            (stranger.account.clone(), stranger.words()),
            (None, "4123456789".to_owned())
        );
    }
}
