//! What is said to who asked for something that cannot be done, and how errors are put into words. Parses nothing.

/// The command line asks for something that cannot be done as asked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Where there is no room for one more thread.
pub const NO_THREAD: &str =
    "failed to start a thread\nhint: ulimit -v, ulimit -u or pids.max of the control group allows too little";
/// The same of a process.
pub const NO_PROCESS: &str =
    "failed to fork\nhint: ulimit -v, ulimit -u or pids.max of the control group allows too little";

/// The chain of causes on one line, then every hint.
pub fn message(error: &anyhow::Error) -> String {
    let (mut what, mut hints) = (Vec::new(), String::new());
    for cause in error.chain().map(ToString::to_string) {
        let (head, rest) = cause.split_once('\n').unwrap_or((&cause, ""));
        what.push(head.to_owned());
        if !rest.is_empty() {
            hints = format!("{hints}\n{rest}");
        }
    }
    what.join(": ") + &hints
}

/// What is said of one cause, and its hint.
#[must_use]
pub fn hint_apart(said: &str) -> (&str, Option<&str>) {
    match said.split_once("\nhint: ") {
        Some((what, hint)) => (what, Some(hint)),
        None => (said, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn a_hint_is_told_from_what_it_cures() {
        assert_eq!(hint_apart("no space\nhint: free some"), ("no space", Some("free some")));
        assert_eq!(hint_apart("no\nspace"), ("no\nspace", None));
    }

    #[test]
    fn hints_come_after_the_last_cause() {
        let error = Err::<(), _>(anyhow!("no space\nhint: free some")).context("failed to write x\nhint: another disk");
        let said = message(&error.expect_err("an error"));
        assert_eq!(said, "failed to write x: no space\nhint: another disk\nhint: free some");
    }
}
