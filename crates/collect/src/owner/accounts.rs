//! Names of users by their numbers, from the machine's own table. Never asks a directory service: that may hang.

use super::process::read;
use super::value::clean;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const FILE_BYTES: u64 = 4 << 20;

/// The users of `/etc/passwd`, read again when it has changed.
#[derive(Debug)]
pub(super) struct Accounts {
    files: [PathBuf; 2],
    read: Option<(PathBuf, SystemTime)>,
    names: HashMap<u32, String>,
}

impl Accounts {
    /// Of the machine first, by its first process: in a container, the own file is another.
    pub(crate) fn new(root: &Path) -> Accounts {
        Accounts {
            files: ["proc/1/root/etc/passwd", "etc/passwd"].map(|path| root.join(path)),
            read: None,
            names: HashMap::new(),
        }
    }

    /// The name of a user; the number, where it has none here.
    pub(crate) fn name(&mut self, uid: &str) -> String {
        let Ok(number) = uid.parse::<u32>() else {
            return String::new();
        };
        self.refresh();
        self.names.get(&number).cloned().unwrap_or_else(|| uid.to_owned())
    }

    fn refresh(&mut self) {
        let changed = |path: &PathBuf| Some((path.clone(), std::fs::metadata(path).ok()?.modified().ok()?));
        let found = self.files.iter().find_map(changed);
        if found == self.read {
            return;
        }
        let text = found.as_ref().and_then(|(path, _)| read(path, FILE_BYTES).ok());
        self.names = names(&text.unwrap_or_default());
        self.read = found;
    }
}

/// As getpwuid does: the first of several with one number.
fn names(passwd: &[u8]) -> HashMap<u32, String> {
    let mut names = HashMap::new();
    for line in passwd.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b':');
        let (name, uid) = (fields.next().unwrap_or_default(), fields.nth(1));
        let uid = uid.and_then(|uid| std::str::from_utf8(uid).ok()?.parse().ok());
        if let (Some(uid), false) = (uid, name.is_empty()) {
            names.entry(uid).or_insert_with(|| clean(name));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::tree::Tree;

    #[test]
    fn a_user_has_the_name_of_the_machine_and_else_the_number() {
        let tree = Tree::default();
        tree.file(
            "etc/passwd",
            b"root:x:0:0::/:/bin/sh\nada:x:1000:1000::/:/bin/sh\nbob:x:1000:1::/:\nbad\n::7:\n",
        );
        let mut accounts = Accounts::new(tree.root());
        assert_eq!(
            ["0", "1000", "7", "4"].map(|uid| accounts.name(uid)),
            ["root", "ada", "7", "4"]
        );
        tree.file("proc/1/root/etc/passwd", b"eve\x1b:x:4:4::/:/bin/sh\n");
        assert_eq!(
            ["4", "1000", ""].map(|uid| accounts.name(uid)),
            ["eve\u{fffd}", "1000", ""]
        );
    }
}
