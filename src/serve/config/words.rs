//! From one text to one value, within its bounds; who is refused learns what would do.

use super::Share;
use super::place::quoted;
use crate::text::parse::{parse_duration, parse_size};
use hyper::header::{HeaderName, HeaderValue};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a value is left out.
pub(super) const OFF: &str = "off";
const SECOND: Duration = Duration::from_secs(1);
const LONGEST_TEXT: usize = 2048;
/// What the web server answers itself.
const TAKEN: [&str; 4] = ["/", "/healthz", "/readyz", "/-/keep"];

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let wrong = || {
        let cure = match text.strip_prefix(':').or_else(|| text.strip_prefix("*:")) {
            Some(port) if port.parse::<u16>().is_ok() => {
                format!("127.0.0.1:{port} for this machine only, [::]:{port} for others")
            }
            _ => "an IP address and a port, such as 127.0.0.1:9748, or [::]:9748 for other machines, too".to_owned(),
        };
        format!("{} is no address with a port; hint: {cure}", quoted(text))
    };
    text.parse().map_err(|_| wrong())
}

/// As [`interval`]; a bare number is seconds, as GPUprobe has it.
pub(super) fn bare_interval(text: &str, longest: Duration) -> Result<Duration, String> {
    match text.parse::<u32>() {
        Ok(seconds) => interval(&format!("{seconds}s"), longest),
        Err(_) => interval(text, longest),
    }
}

/// At least a second, and at most `longest`.
pub(super) fn interval(text: &str, longest: Duration) -> Result<Duration, String> {
    let such_as = "hint: a number and s, min, h or d, such as 15s";
    let time = parse_duration(text).map_err(|_| format!("{} is no duration; {such_as}", quoted(text)))?;
    match time {
        _ if time < SECOND => Err(format!("{} is too short; hint: at least 1s", quoted(text))),
        _ if time > longest => {
            let longest = time_text(longest);
            Err(format!("{} is too long; hint: at most {longest}", quoted(text)))
        }
        _ => Ok(time),
    }
}

pub(super) fn size(text: &str, range: &RangeInclusive<u64>) -> Result<u64, String> {
    let size = parse_size(text).ok().filter(|size| range.contains(size));
    size.ok_or_else(|| {
        let (first, last) = (size_text(*range.start()), size_text(*range.end()));
        format!("{} does not do; hint: a size from {first} to {last}", quoted(text))
    })
}

pub(super) fn number(text: &str, range: &RangeInclusive<usize>) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let (first, last) = (range.start(), range.end());
        format!(
            "{} does not do; hint: a whole number from {first} to {last}",
            quoted(text)
        )
    })
}

/// A number and a percent sign.
pub(super) fn percent(text: &str, range: &RangeInclusive<u32>) -> Result<Share, String> {
    let percent = text
        .strip_suffix('%')
        .and_then(|number| number.trim_end().parse::<f64>().ok());
    let share = percent.map(|percent| Share((percent * 1e3).round() as u32));
    share.filter(|share| range.contains(&share.0)).ok_or_else(|| {
        let [first, last] = [range.start(), range.end()].map(|share| percent_text(Share(*share)));
        format!("{} does not do; hint: from {first} to {last}, such as 1%", quoted(text))
    })
}

pub(super) fn percent_text(share: Share) -> String {
    format!("{}%", f64::from(share.0) / 1e3)
}

/// Where on the web server.
pub(super) fn page(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._~-".contains(c);
    let cure = match text {
        _ if TAKEN.contains(&text) => "is a page of its own",
        _ if !text.starts_with('/') => "does not begin with a slash",
        _ if !text.chars().all(plain) || text.len() > LONGEST_TEXT => "has what is no letter, digit or one of /._~-",
        _ => return Ok(text.to_owned()),
    };
    Err(format!("{} {cure}; hint: such as /metrics", quoted(text)))
}

/// An address of a web server, with its scheme and host.
pub(super) fn url(text: &str, such_as: &str) -> Result<String, String> {
    let uri: Option<hyper::Uri> = text.parse().ok().filter(|_| text.len() <= LONGEST_TEXT);
    let known = uri.filter(|uri| {
        let scheme = matches!(uri.scheme_str(), Some("http" | "https"));
        let port = uri
            .authority()
            .is_some_and(|authority| !authority.as_str().ends_with(':'));
        scheme && port && uri.host().is_some_and(|host| !host.is_empty())
    });
    match known {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!(
            "{} is no http:// or https:// address; hint: such as {such_as}",
            quoted(text)
        )),
    }
}

/// `NAME=VALUE`; the value is never shown.
pub(super) fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("a header is NAME=VALUE; hint: such as x-scope-orgid=7")?;
    if HeaderName::from_bytes(name.as_bytes()).is_err() {
        let form = "hint: letters, digits and -, such as authorization";
        return Err(format!("{} is no name of a header; {form}", quoted(name)));
    }
    match HeaderValue::from_str(value) {
        Ok(_) => Ok((name.to_ascii_lowercase(), value.to_owned())),
        Err(_) => Err(format!(
            "the value of the header {} has what no header may have; hint: no line ends",
            quoted(name)
        )),
    }
}

/// Relative to the directory of the file that it stands in.
pub(super) fn path(text: &str, directory: Option<&Path>) -> Result<PathBuf, String> {
    match directory {
        _ if text.is_empty() || text.contains('\0') => Err(format!("{} is no name of a file", quoted(text))),
        Some(directory) => Ok(directory.join(text)),
        None => Ok(PathBuf::from(text)),
    }
}

/// In the largest unit that is exact.
pub(super) fn size_text(size: u64) -> String {
    let units = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let exact = units
        .iter()
        .find(|(_, unit)| size >= *unit && size.is_multiple_of(*unit));
    match exact {
        Some((name, unit)) => format!("{}{name}", size / unit),
        None => format!("{size}B"),
    }
}

/// In the largest unit that is exact.
pub(super) fn time_text(time: Duration) -> String {
    let ns = time.as_nanos();
    let units = [
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1000),
    ];
    let exact = units.iter().find(|(_, unit)| ns >= *unit && ns.is_multiple_of(*unit));
    match exact {
        Some((name, unit)) => format!("{}{name}", ns / unit),
        None => format!("{ns}ns"),
    }
}
