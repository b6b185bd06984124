//! Words for what a reader of other versions' documents asks for and this version lacks: what, why, what to use.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Commands that are named in the documents of later versions.
const COMMANDS: [(&str, &str); 1] = [(
    "hang",
    "gpuscope top -p PID shows calls that have not returned, and for how long",
)];

/// The words for an error of the parser that is about something this version lacks.
pub fn explain(error: &clap::Error) -> Option<String> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let command = word(ContextKind::InvalidSubcommand)?;
            let (name, instead) = COMMANDS.iter().find(|(name, _)| *name == command)?;
            Some(format!("{name}: this version has no such command\nhint: {instead}"))
        }
        ErrorKind::ValueValidation => {
            let option = word(ContextKind::InvalidArg)?;
            let option = option.split_once(' ').map_or(option, |(name, _)| name);
            let why = std::error::Error::source(error)?.to_string();
            let value = word(ContextKind::InvalidValue)?;
            let is_number = value.parse::<f64>().is_ok();
            let what = if is_number {
                option.to_owned()
            } else {
                format!("{option} {value}")
            };
            why.starts_with("needs ").then(|| format!("{what} {why}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    fn explained(words: &[&str]) -> String {
        let error = Cli::try_parse_from([&["gpuscope"], words].concat()).expect_err("a refusal");
        explain(&error).unwrap_or_else(|| panic!("{words:?} is not explained: {error}"))
    }

    #[test]
    fn what_this_version_lacks_says_what_to_use() {
        for (command, _) in COMMANDS {
            let said = explained(&[command]);
            assert!(
                said.starts_with(command) && said.contains("\nhint: gpuscope "),
                "{said}"
            );
        }
    }

    #[test]
    fn a_number_without_its_unit_is_one_sentence() {
        assert_eq!(
            explained(&["record", "--ring", "5", "--all"]),
            "--ring needs a unit: 5s or 5min"
        );
        assert_eq!(
            explained(&["trace", "--all", "--ring-size", "16"]),
            "--ring-size needs a unit, such as 16MiB"
        );
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
}
