//! Names of kernels as people read them: `gemm<float,128>` of `_Z4gemmIfLi128EEvPKT_`.

use cpp_demangle::{DemangleOptions, DemangleWrite, ParseOptions, Symbol};
use std::fmt::Write as _;

/// Names may stand for far longer ones: a few bytes can repeat what was before them again and again.
const LONGEST: usize = 16 << 10;
/// Deeper nested names are refused; a thread's stack is small.
const DEEPEST: u32 = 96;
/// Characters of a short name.
const SHORT: usize = 96;
/// Template arguments of so many around them are left out, where a name would be too long with them: from the innermost outward,
/// down to these.
const DEPTHS: [usize; 5] = [6, 5, 4, 3, 2];
const LAMBDA: &str = "lambda";

/// Whether a kernel of that short name exchanges data with other devices: NCCL's are called `ncclDevKernel_…`, `ncclKernel_…` before 2.19,
/// and take few multiprocessors on purpose.
#[must_use]
pub(crate) fn is_collective(short: &str) -> bool {
    ["ncclDevKernel", "ncclKernel"]
        .iter()
        .any(|start| short.starts_with(start))
}

/// What a kernel is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelName {
    /// As in the program's code for the GPU.
    pub symbol: String,
    /// With parameters, as in the source; the symbol where it is no C++ name.
    pub full: String,
    /// Without parameters and namespaces, template arguments in short. Where something is left out that may tell it from
    /// others, a sign of the symbol stands behind it.
    pub short: String,
}

impl KernelName {
    /// Reads a name; `None`: it is no identifier. `cut`: it goes on.
    pub fn read(bytes: &[u8], cut: bool) -> Option<KernelName> {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$.%@".contains(byte);
        let symbol = std::str::from_utf8(bytes).ok().filter(|_| bytes.iter().all(is_part))?;
        let starts = symbol.chars().next().is_some_and(|first| !first.is_ascii_digit());
        starts.then(|| KernelName::of(symbol, cut))
    }

    fn of(symbol: &str, cut: bool) -> KernelName {
        let end = if cut { "…" } else { "" };
        let full = demangled(symbol, DemangleOptions::new());
        let short = bare(symbol).map(|name| shortened(&name));
        let mut short = ended(short.as_deref().unwrap_or(symbol), cut);
        if short.contains('…') {
            let _ = write!(short, "~{:04x}", sign(symbol) >> 48);
        }
        KernelName {
            symbol: format!("{symbol}{end}"),
            full: full.unwrap_or_else(|| format!("{symbol}{end}")),
            short,
        }
    }

    /// The same with a short name that no other symbol has, of two that were shortened to one: with namespaces, where these tell
    /// them apart, else with a sign.
    #[must_use]
    pub fn told_apart(self, is_taken: impl Fn(&str) -> bool) -> KernelName {
        let whole = bare(&self.symbol).filter(|whole| whole.chars().count() <= SHORT && !is_taken(whole));
        if let Some(short) = whole {
            return KernelName { short, ..self };
        }
        let bare = self.short.split_once('~').map_or(self.short.as_str(), |(bare, _)| bare);
        let short = format!("{bare}~{:016x}", sign(&self.symbol));
        KernelName { short, ..self }
    }
}

/// Without parameters and the type of the result.
fn bare(symbol: &str) -> Option<String> {
    let options = DemangleOptions::new()
        .no_params()
        .no_return_type()
        .hide_expression_literal_types();
    demangled(symbol, options)
}

/// The same for the same symbol in every run (FNV-1a).
fn sign(symbol: &str) -> u64 {
    let add = |sign: u64, byte: u8| (sign ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    symbol.bytes().fold(0xcbf2_9ce4_8422_2325, add)
}

fn demangled(symbol: &str, options: DemangleOptions) -> Option<String> {
    let parse = ParseOptions::default().recursion_limit(DEEPEST);
    let parsed = Symbol::new_with_options(symbol, &parse).ok()?;
    let mut limited = Limited(String::new());
    let options = options.recursion_limit(DEEPEST);
    parsed.structured_demangle(&mut limited, &options).ok()?;
    Some(limited.0)
}

struct Limited(String);

impl DemangleWrite for Limited {
    fn write_string(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

fn ended(name: &str, cut: bool) -> String {
    if name.chars().count() <= SHORT && !cut {
        return name.to_owned();
    }
    name.chars().take(SHORT - 1).chain(['…']).collect()
}

/// Without namespaces, and, where it would be too long, without what lies deepest in template arguments.
fn shortened(name: &str) -> String {
    let mut short = String::new();
    for shown in DEPTHS {
        short.clear();
        shorten(name, shown, &mut short);
        if short.chars().count() <= SHORT {
            break;
        }
    }
    if short.is_empty() { name.to_owned() } else { short }
}

/// `shown`: how deep template arguments are shown.
fn shorten(mut rest: &str, shown: usize, out: &mut String) {
    let mut path = out.len();
    while let Some(next) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("::") {
            rest = match through_lambda(&out[path..], after) {
                Some(inner) => inner,
                None => {
                    leave_scope(path, after, out);
                    after
                }
            };
            continue;
        }
        if let Some((inside, after)) = enclosed(rest) {
            group(next, inside, after, shown, out);
            rest = after;
            continue;
        }
        out.push(next);
        rest = &rest[next.len_utf8()..];
        if matches!(next, ' ' | '*' | '&' | ',') {
            path = out.len();
        }
    }
}

/// Of `f()::{lambda()#1}::operator()() const::{lambda()#2}`, from behind the first lambda to the second.
fn through_lambda<'a>(scope: &str, after: &'a str) -> Option<&'a str> {
    let call = after.strip_prefix("operator()").filter(|_| scope.contains(LAMBDA))?;
    let (_, rest) = enclosed(call)?;
    let rest = rest.strip_prefix(" const").unwrap_or(rest);
    rest.starts_with("::{lambda").then_some(rest)
}

/// Leaves out what comes before a `::`, but for the function that a lambda lies in: that tells it from others.
fn leave_scope(path: usize, after: &str, out: &mut String) {
    if !after.starts_with("{lambda") {
        return out.truncate(path);
    }
    let scope = out[path..].trim_end_matches(" const");
    let end = path + scope.strip_suffix("(…)").unwrap_or(scope).len();
    out.truncate(end);
}

/// What stands in brackets.
fn group(bracket: char, inside: &str, after: &str, shown: usize, out: &mut String) {
    match bracket {
        '<' if shown == 0 => out.push_str("<…>"),
        '<' => {
            out.push('<');
            for (index, argument) in arguments(inside).enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                let number = argument.starts_with(|first: char| first.is_ascii_digit() || first == '-');
                let argument = if number {
                    argument.trim_end_matches(['u', 'l'])
                } else {
                    argument
                };
                shorten(argument, shown - 1, out);
            }
            out.push('>');
        }
        // the type of a number
        '(' if after.starts_with(|first: char| first.is_ascii_digit() || first == '-') => {}
        '(' if inside == "anonymous namespace" || inside.is_empty() => {}
        '(' => out.push_str("(…)"),
        '{' if inside.starts_with("lambda") => {
            let nested = out
                .rfind(LAMBDA)
                .is_some_and(|at| is_numbers(&out[at + LAMBDA.len()..]));
            let begins = out.is_empty() || out.ends_with([' ', ',', '<', '*', '&']);
            out.push_str(match (nested, begins) {
                (true, _) => "",
                (false, true) => LAMBDA,
                (false, false) => "::lambda",
            });
            out.push_str(inside.rfind('#').map_or("", |at| &inside[at..]));
        }
        '{' => out.push_str("{…}"),
        _ => out.push_str("[…]"),
    }
}

/// `#1#2`.
fn is_numbers(text: &str) -> bool {
    text.chars()
        .all(|character| character == '#' || character.is_ascii_digit())
}

/// What the bracket at the start of `text` encloses, and what comes after.
fn enclosed(text: &str) -> Option<(&str, &str)> {
    let mut open = Vec::new();
    for (at, character) in text.char_indices() {
        match character {
            '<' => open.push('>'),
            '(' => open.push(')'),
            '{' => open.push('}'),
            '[' => open.push(']'),
            // an arrow closes nothing, nor does a comparison within other brackets
            '>' if text[..at].ends_with('-') => {}
            _ if open.last() == Some(&character) => drop(open.pop()),
            _ => {}
        }
        if open.is_empty() {
            return (at > 0).then(|| (&text[1..at], &text[at + 1..]));
        }
    }
    None
}

/// The arguments between commas that lie in no brackets.
fn arguments(inside: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(inside);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut at = 0;
        while at < text.len() && !text[at..].starts_with(',') {
            let step = text[at..].chars().next().map_or(1, char::len_utf8);
            at += enclosed(&text[at..]).map_or(step, |(inside, _)| inside.len() + 2);
        }
        rest = text.get(at + 1..);
        Some(text[..at].trim())
    })
}

#[cfg(test)]
#[path = "kernel_name_tests.rs"]
mod tests;
