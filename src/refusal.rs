//! Words for what a reader of other versions' documents asks for and this version lacks: what, why, what to use.
//!
//! Owns the messages for wrong usage and the exit status that goes with them. Parses nothing.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The command line asks for something that cannot be done as asked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Options that are named in the documents of later versions.
const OPTIONS: [(&str, &str); 1] = [(
    "--phases",
    "no separate entry and return records are written by this version: each call is one record, written when it \
     returns\nhint: in JSON lines, a call ends duration_us after ts",
)];

/// Commands that are named in the documents of later versions.
const COMMANDS: [(&str, &str); 1] = [(
    "top",
    "gpuscope serve --display-interval 5s prints a page every five seconds",
)];

/// The words for an error of the parser that is about something this version lacks.
pub fn explain(error: &clap::Error) -> Option<String> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let option = word(ContextKind::InvalidArg)?;
            let (name, words) = OPTIONS.iter().find(|(name, _)| *name == option)?;
            Some(format!("{name}: {words}"))
        }
        ErrorKind::InvalidSubcommand => {
            let command = word(ContextKind::InvalidSubcommand)?;
            let (name, instead) = COMMANDS.iter().find(|(name, _)| *name == command)?;
            Some(format!("{name}: this version has no such command\nhint: {instead}"))
        }
        _ => None,
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use anyhow::{Context, anyhow};
    use clap::Parser;

    fn explained(words: &[&str]) -> String {
        let error = Cli::try_parse_from([&["gpuscope"], words].concat()).expect_err("a refusal");
        explain(&error).unwrap_or_else(|| panic!("{words:?} is not explained: {error}"))
    }

    #[test]
    fn what_this_version_lacks_says_what_to_use() {
        for (option, _) in OPTIONS {
            let said = explained(&["trace", option]);
            assert!(
                said.starts_with(option) && said.contains("this version") && said.contains("\nhint: "),
                "{said}"
            );
        }
        for (command, _) in COMMANDS {
            let said = explained(&[command]);
            assert!(
                said.starts_with(command) && said.contains("\nhint: gpuscope "),
                "{said}"
            );
        }
    }

    #[test]
    fn other_mistakes_are_left_to_the_parser() {
        for words in [
            &["trace", "--filtre"][..],
            &["trase"],
            &["trace", "--format", "xml"],
            &["trace", "-p", "x"],
        ] {
            let error = Cli::try_parse_from([&["gpuscope"], words].concat()).expect_err("a refusal");
            assert_eq!(explain(&error), None);
        }
    }

    #[test]
    fn hints_come_after_the_last_cause() {
        let error = Err::<(), _>(anyhow!("no space\nhint: free some")).context("failed to write x\nhint: another disk");
        let said = message(&error.expect_err("an error"));
        assert_eq!(said, "failed to write x: no space\nhint: another disk\nhint: free some");
    }
}
