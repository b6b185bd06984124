//! What `env` starts, and with which of its variables: its words, as GNU's takes them. Pure.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Without these a program does not load the agent.
const NEEDED: [&str; 2] = ["LD_PRELOAD", "GPUSCOPE_AGENT"];

/// What `env` does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Env {
    /// It becomes this, or prints.
    Starts(Vec<OsString>),
    /// It takes variables away without which the agent is not loaded.
    Withholds,
}

/// Of the words behind `env`.
pub(super) fn of_env(words: &[OsString]) -> Env {
    let mut rest: Vec<OsString> = words.iter().rev().cloned().collect();
    while let Some(word) = rest.pop() {
        let bytes = word.as_bytes();
        let withholds = match bytes {
            b"--" => false,
            b"-" | b"--ignore-environment" => true,
            _ if bytes.starts_with(b"--") => long(bytes, &mut rest),
            _ if bytes.starts_with(b"-") => short(&bytes[1..], &mut rest),
            _ => match variable(bytes) {
                Some(name) => is_needed(name),
                None => {
                    rest.push(word);
                    return Env::Starts(rest.into_iter().rev().collect());
                }
            },
        };
        if withholds {
            return Env::Withholds;
        }
    }
    Env::Starts(Vec::new())
}

fn is_needed(name: &[u8]) -> bool {
    NEEDED.iter().any(|needed| needed.as_bytes() == name)
}

/// The name in `NAME=VALUE`.
fn variable(word: &[u8]) -> Option<&[u8]> {
    let end = word.iter().position(|byte| *byte == b'=')?;
    Some(&word[..end])
}

/// An option in words; whether it withholds something. `rest`: what comes behind it, the last word first.
fn long(word: &[u8], rest: &mut Vec<OsString>) -> bool {
    let name = variable(word).unwrap_or(word);
    let value = variable(word).map(|name| word[name.len() + 1..].to_vec());
    let mut value = || value.clone().or_else(|| rest.pop().map(OsString::into_vec));
    match name {
        b"--unset" => value().is_some_and(|name| is_needed(&name)),
        b"--chdir" => {
            value();
            false
        }
        b"--split-string" => {
            let text = value().unwrap_or_default();
            split(&text, rest);
            false
        }
        _ => false,
    }
}

/// Options in letters, the last of which may have a value; whether one withholds something.
fn short(letters: &[u8], rest: &mut Vec<OsString>) -> bool {
    for (at, letter) in letters.iter().enumerate() {
        let mut value = || match &letters[at + 1..] {
            [] => rest.pop().map(OsString::into_vec).unwrap_or_default(),
            value => value.to_vec(),
        };
        match letter {
            b'i' => return true,
            b'u' => return is_needed(&value()),
            b'C' => {
                value();
                return false;
            }
            b'S' => {
                let text = value();
                split(&text, rest);
                return false;
            }
            _ => {}
        }
    }
    false
}

/// The words of a text come before the rest.
fn split(text: &[u8], rest: &mut Vec<OsString>) {
    let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let words: Vec<OsString> = words.map(|word| OsString::from_vec(word.to_vec())).collect();
    rest.extend(words.into_iter().rev());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(words: &str) -> Env {
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        of_env(&words)
    }

    fn starts(words: &str) -> Env {
        Env::Starts(words.split(' ').map(OsString::from).collect())
    }

    #[test]
    fn env_starts_what_its_options_leave() {
        for (words, rest) in [
            ("python3 -u a.py", "python3 -u a.py"),
            ("A=1 B= ./app -i", "./app -i"),
            ("-u LANG --chdir /tmp -v -- ./app", "./app"),
            ("--unset=LANG -uTERM ./app", "./app"),
            ("-vC/tmp ./app", "./app"),
        ] {
            assert_eq!(env(words), starts(rest), "{words}");
        }
        let split = ["-S", "A=1 python3  -u", "a.py"].map(OsString::from);
        assert_eq!(of_env(&split), starts("python3 -u a.py"));
        let joined = ["-Spython3 -u", "a.py"].map(OsString::from);
        assert_eq!(of_env(&joined), starts("python3 -u a.py"));
    }

    #[test]
    fn env_may_withhold_what_loads_the_agent() {
        for words in [
            "-i ./app",
            "- ./app",
            "--ignore-environment ./app",
            "-u LD_PRELOAD ./app",
            "-vi ./app",
            "--unset=GPUSCOPE_AGENT ./app",
            "LD_PRELOAD=/x.so ./app",
        ] {
            assert_eq!(env(words), Env::Withholds, "{words}");
        }
    }
}
