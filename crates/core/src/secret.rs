//! Command lines without what is known to be secret: they are part of what we write, and that is passed on.
//!
//! Knows names that people give to secrets and how tokens of wide-spread services begin. What it does not know stays.

/// What stands in the place of a secret.
pub(crate) const MASK: &str = "***";

/// How tokens begin, each with the fewest characters behind it.
const TOKENS: [(&str, usize); 14] = [
    ("hf_", 16),
    ("sk-", 16),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghs_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("nvapi-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("eyJ", 40),
];
/// Parts of names that only secrets have.
const NAMES: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "apikey",
    "credential",
    "credentials",
    "authorization",
    "bearer",
];
/// What makes a key secret: `api-key`.
const KEYS: [&str; 5] = ["api", "access", "secret", "private", "auth"];
/// Of HTTP, between its header and the secret.
const SCHEMES: [&str; 3] = ["bearer", "basic", "token"];
/// Tokens of a language, and numbers of them.
const SPOKEN: [&str; 15] = [
    "eos", "bos", "pad", "unk", "sep", "cls", "mask", "max", "min", "num", "new", "special", "stop", "image", "per",
];

/// A command line with its secrets masked.
#[must_use]
pub fn masked(words: &[String]) -> Vec<String> {
    let mut next = Next::Plain;
    words.iter().map(|word| masked_word(word, &mut next)).collect()
}

/// What the next piece of a command line is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Plain,
    Secret,
    /// So is all up to this quote.
    Quoted(char),
}

/// A word may be a command line itself: `sh -c '…'`.
fn masked_word(word: &str, next: &mut Next) -> String {
    if *next == Next::Secret && !word.starts_with('-') {
        *next = Next::Plain;
        return MASK.to_owned();
    }
    if let Some((name, _)) = word
        .split_once('=')
        .filter(|(name, _)| word.starts_with('-') && is_secret(name))
    {
        return format!("{name}={MASK}");
    }
    let pieces = word.split_inclusive(char::is_whitespace);
    let whole = pieces.map(|piece| {
        let text = piece.trim_end();
        masked_piece(text, next) + &piece[text.len()..]
    });
    whole.collect()
}

fn masked_piece(piece: &str, next: &mut Next) -> String {
    match *next {
        _ if piece.is_empty() => return String::new(),
        Next::Quoted(quote) => {
            if piece.ends_with(quote) {
                *next = Next::Plain;
            }
            return MASK.to_owned();
        }
        Next::Secret if SCHEMES.iter().any(|scheme| piece.eq_ignore_ascii_case(scheme)) => return piece.to_owned(),
        Next::Secret if !piece.starts_with('-') => {
            *next = behind(piece);
            return MASK.to_owned();
        }
        _ => *next = Next::Plain,
    }
    if let Some(sign) = piece.find(['=', ':']).filter(|sign| is_secret(&piece[..*sign])) {
        let value = &piece[sign + 1..];
        *next = if value.is_empty() { Next::Secret } else { behind(value) };
        return match value.is_empty() {
            true => piece.to_owned(),
            false => format!("{}{MASK}", &piece[..=sign]),
        };
    }
    let is_name = piece.starts_with('-') || piece.eq_ignore_ascii_case("bearer");
    if is_name && is_secret(piece) {
        *next = Next::Secret;
    }
    without_tokens(&without_password(piece))
}

/// Whether a value that begins in quotes goes on.
fn behind(value: &str) -> Next {
    let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''));
    match quote {
        Some(quote) if value.len() < 2 || !value.ends_with(quote) => Next::Quoted(quote),
        _ => Next::Plain,
    }
}

/// Whether what has this name is a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let parts: Vec<&str> = name
        .split(|c: char| !c.is_alphanumeric())
        .filter(|part| !part.is_empty())
        .collect();
    let last = parts.last().copied().unwrap_or_default();
    let before = parts.iter().rev().nth(1).copied().unwrap_or_default();
    match last {
        "key" => KEYS.contains(&before),
        "token" => !SPOKEN.contains(&before),
        // a file, or a number of them
        "file" | "path" | "dir" | "id" => false,
        _ => parts.iter().any(|part| NAMES.contains(part)),
    }
}

/// `https://user:***@host`.
fn without_password(piece: &str) -> String {
    let Some((scheme, rest)) = piece.split_once("://") else {
        return piece.to_owned();
    };
    let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(host);
    match authority
        .rsplit_once('@')
        .map(|(user, host)| (user.split_once(':'), host))
    {
        Some((Some((user, _)), host)) => format!("{scheme}://{user}:{MASK}@{host}{path}"),
        _ => piece.to_owned(),
    }
}

fn without_tokens(piece: &str) -> String {
    let of_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut out = String::with_capacity(piece.len());
    let mut rest = piece;
    while let Some(start) = rest.find(of_token) {
        let (between, run) = rest.split_at(start);
        let (run, after) = run.split_at(run.find(|c| !of_token(c)).unwrap_or(run.len()));
        out.push_str(between);
        out.push_str(if is_token(run) { MASK } else { run });
        rest = after;
    }
    out + rest
}

fn is_token(run: &str) -> bool {
    let known = |(begin, fewest): &(&str, usize)| {
        run.strip_prefix(begin)
            .is_some_and(|rest| rest.len() >= *fewest && rest.contains(|c: char| c.is_ascii_digit()))
    };
    TOKENS.iter().any(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(text: &str) -> String {
        let words: Vec<String> = text.split('|').map(str::to_owned).collect();
        masked(&words).join("|")
    }

    #[test]
    fn values_of_what_is_called_a_secret_are_masked() {
        for (plain, expected) in [
            ("app|--password|hunter2|--epochs|3", "app|--password|***|--epochs|3"),
            ("app|--db-password=hunter2", "app|--db-password=***"),
            (
                "env|WANDB_API_KEY=0123|MODE=fast|app",
                "env|WANDB_API_KEY=***|MODE=fast|app",
            ),
            ("app|--hf_token|abc|x", "app|--hf_token|***|x"),
            ("curl|-H|Authorization: Bearer abc", "curl|-H|Authorization: Bearer ***"),
            ("app|--password=two words|x", "app|--password=***|x"),
            (
                "sh|-c|PASSWORD='a b' app --secret x y",
                "sh|-c|PASSWORD=*** *** app --secret *** y",
            ),
            ("app|--password|two words", "app|--password|***"),
        ] {
            assert_eq!(line(plain), expected);
        }
    }

    #[test]
    fn passwords_in_addresses_and_tokens_of_known_services_are_masked() {
        for (plain, expected) in [
            (
                "psql|postgres://me:hunter2@db:5432/x?a=b",
                "psql|postgres://me:***@db:5432/x?a=b",
            ),
            ("app|hf_abcdefghijklmnop0123", "app|***"),
            ("app|(\"AKIA0123456789ABCDEF\")", "app|(\"***\")"),
        ] {
            assert_eq!(line(plain), expected);
        }
    }

    #[test]
    fn what_only_sounds_like_one_stays() {
        for plain in [
            "train|--max-tokens|512|--eos-token|</s>|--tokenizer|gpt2|--key|value",
            "app|--password|--verbose",
            "app|--secret-file|/run/secret|--token-id|7|--num_token=5",
            "git|https://example.org/a:b@c|sk-learn|hf_transfer|eyJ",
            "python|-c|print('password is asked for')",
        ] {
            assert_eq!(line(plain), plain);
        }
    }

    proptest! {
        #[test]
        fn any_command_line_has_as_many_words_as_before(words in proptest::collection::vec(any::<String>(), 0..5)) {
            prop_assert_eq!(masked(&words).len(), words.len());
        }
    }
}
