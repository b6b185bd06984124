//! The web config file of Prometheus' exporters: TLS, users and headers. From its text to what it means; pure.
//!
//! <https://prometheus.io/docs/prometheus/latest/configuration/https/> describes it. A key that we do not follow is
//! refused: a file that asks for more protection than it gets would deceive.

use hyper::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::Spanned;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

/// A hash that takes longer than a scrape waits is of no use.
const COST_AT_MOST: u32 = 15;

/// What a file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebConfig {
    pub tls: Option<Tls>,
    /// Names with their bcrypt hashes; empty: everybody may ask.
    pub users: BTreeMap<String, String>,
    /// What is said with every answer.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// Paths are as written: relative ones begin at the directory of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    /// Who signs for clients, and whether they must have a certificate.
    pub clients: Option<Clients>,
    pub oldest: Version,
    pub newest: Version,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clients {
    pub(crate) ca_file: PathBuf,
    pub(crate) required: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    Tls12,
    Tls13,
}

/// Why a file is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{said}")]
pub struct Mistake {
    /// From 1; 0: of the file as a whole.
    pub line: u64,
    /// With a hint on a line of its own.
    pub said: String,
}

/// Reads the text of a file.
///
/// # Errors
/// It is no such file, or asks for what we do not do.
pub fn parse(text: &str) -> Result<WebConfig, Mistake> {
    if text.trim().is_empty() {
        return Ok(WebConfig::default());
    }
    let written: Option<Written> = serde_saphyr::from_str(text).map_err(|error| Mistake {
        line: error.location().map_or(0, |location| location.line()),
        said: format!("{}\nhint: {SHAPE}", brief(&error.without_snippet().to_string())),
    })?;
    let written = written.unwrap_or_default();
    refuse(&[("rate_limit", &written.rate_limit, "put a proxy before it that limits")])?;
    let mut config = WebConfig {
        tls: written.tls_server_config.map(tls).transpose()?,
        users: BTreeMap::new(),
        headers: headers(written.http_server_config.unwrap_or_default())?,
    };
    for (name, hash) in written.basic_auth_users.unwrap_or_default() {
        check_hash(&name, &hash)?;
        config.users.insert(name, hash.value);
    }
    Ok(config)
}

const SHAPE: &str = "it may have tls_server_config (cert_file, key_file, client_ca_file, client_auth_type, min_version, \
                     max_version), http_server_config (headers) and basic_auth_users";

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    tls_server_config: Option<WrittenTls>,
    http_server_config: Option<WrittenHttp>,
    basic_auth_users: Option<BTreeMap<String, Spanned<String>>>,
    rate_limit: Refused,
}

type Refused = Option<Spanned<IgnoredAny>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTls {
    cert_file: Option<Spanned<String>>,
    key_file: Option<Spanned<String>>,
    client_ca_file: Option<Spanned<String>>,
    client_auth_type: Option<Spanned<String>>,
    min_version: Option<Spanned<String>>,
    max_version: Option<Spanned<String>>,
    /// Go's servers ignore it too.
    #[serde(rename = "prefer_server_cipher_suites")]
    _prefer_server_cipher_suites: Option<bool>,
    cert: Refused,
    key: Refused,
    client_ca: Refused,
    client_allowed_sans: Refused,
    cipher_suites: Refused,
    curve_preferences: Refused,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHttp {
    /// HTTP/1.1 is spoken either way.
    #[serde(rename = "http2")]
    _http2: Option<bool>,
    headers: Option<BTreeMap<String, Option<Spanned<String>>>>,
}

fn tls(written: WrittenTls) -> Result<Tls, Mistake> {
    const SUITES: &str = "leave it out: only suites that are held to be secure are offered";
    refuse(&[
        ("cert", &written.cert, "write it to a file, and name that as cert_file"),
        ("key", &written.key, "write it to a file, and name that as key_file"),
        (
            "client_ca",
            &written.client_ca,
            "write it to a file, and name that as client_ca_file",
        ),
        (
            "client_allowed_sans",
            &written.client_allowed_sans,
            "a CA of its own for those who may ask",
        ),
        ("cipher_suites", &written.cipher_suites, SUITES),
        ("curve_preferences", &written.curve_preferences, SUITES),
    ])?;
    let oldest = version(written.min_version.as_ref(), Version::Tls12)?;
    let newest = version(written.max_version.as_ref(), Version::Tls13)?;
    if newest < oldest {
        let line = written.max_version.map_or(0, |written| written.referenced.line());
        return Err(mistake(
            line,
            "max_version is older than min_version",
            "leave max_version out",
        ));
    }
    Ok(Tls {
        clients: clients(written.client_ca_file, written.client_auth_type)?,
        cert_file: file("cert_file", written.cert_file)?,
        key_file: file("key_file", written.key_file)?,
        oldest,
        newest,
    })
}

fn file(key: &str, written: Option<Spanned<String>>) -> Result<PathBuf, Mistake> {
    match written {
        Some(path) if !path.value.is_empty() => Ok(path.value.into()),
        _ => {
            let said = format!("tls_server_config has no {key}");
            Err(mistake(
                0,
                &said,
                "cert_file and key_file name PEM files, both are needed for TLS",
            ))
        }
    }
}

fn clients(ca_file: Option<Spanned<String>>, kind: Option<Spanned<String>>) -> Result<Option<Clients>, Mistake> {
    let (name, line) = kind.map_or_else(Default::default, |kind| (kind.value, kind.referenced.line()));
    let ca = ca_file.filter(|path| !path.value.is_empty());
    let required = match (name.as_str(), &ca) {
        ("RequireAndVerifyClientCert", Some(_)) => true,
        ("VerifyClientCertIfGiven", Some(_)) => false,
        ("" | "NoClientCert", None) => return Ok(None),
        ("RequireAndVerifyClientCert" | "VerifyClientCertIfGiven", None) => {
            let said = format!("client_auth_type {name} has nothing to verify certificates with");
            return Err(mistake(
                line,
                &said,
                "client_ca_file names the PEM file of the CA that signs for clients",
            ));
        }
        ("RequestClientCert" | "RequireAnyClientCert", _) => {
            let said = format!("client_auth_type {name} would take any certificate, which protects nothing");
            return Err(mistake(line, &said, "RequireAndVerifyClientCert, with client_ca_file"));
        }
        ("" | "NoClientCert", Some(ca)) => {
            let said = "client_ca_file is given, and no certificate is asked for";
            let hint = "client_auth_type: RequireAndVerifyClientCert";
            return Err(mistake(ca.referenced.line(), said, hint));
        }
        _ => {
            let said = format!("client_auth_type {name:?} is unknown");
            let hint = "RequireAndVerifyClientCert, VerifyClientCertIfGiven or NoClientCert";
            return Err(mistake(line, &said, hint));
        }
    };
    let ca_file = ca.map(|ca| ca.value.into()).unwrap_or_default();
    Ok(Some(Clients { ca_file, required }))
}

fn version(written: Option<&Spanned<String>>, usual: Version) -> Result<Version, Mistake> {
    let Some(written) = written else {
        return Ok(usual);
    };
    match written.value.as_str() {
        "TLS13" => Ok(Version::Tls13),
        "TLS12" => Ok(Version::Tls12),
        name @ ("TLS11" | "TLS10") => {
            let said = format!("{name} is broken and not spoken");
            Err(mistake(written.referenced.line(), &said, "TLS12 or TLS13"))
        }
        name => {
            let said = format!("{name:?} is no version of TLS");
            Err(mistake(written.referenced.line(), &said, "TLS12 or TLS13"))
        }
    }
}

fn headers(written: WrittenHttp) -> Result<Vec<(HeaderName, HeaderValue)>, Mistake> {
    const ALLOWED: [&str; 5] = [
        "content-security-policy",
        "strict-transport-security",
        "x-content-type-options",
        "x-frame-options",
        "x-xss-protection",
    ];
    let mut headers = Vec::new();
    for (name, value) in written.headers.unwrap_or_default() {
        let Some(value) = value.filter(|value| !value.value.is_empty()) else {
            continue;
        };
        let line = value.referenced.line();
        let known = ALLOWED.iter().find(|allowed| name.eq_ignore_ascii_case(allowed));
        let Some(known) = known else {
            let said = format!("the header {name:?} cannot be set here");
            return Err(mistake(line, &said, &ALLOWED.join(", ")));
        };
        let value = HeaderValue::from_str(&value.value).map_err(|_| {
            let said = format!("{name} has a value that no header may have");
            mistake(line, &said, "one line of visible ASCII")
        })?;
        headers.push((HeaderName::from_static(known), value));
    }
    Ok(headers)
}

fn check_hash(name: &str, hash: &Spanned<String>) -> Result<(), Mistake> {
    let line = hash.referenced.line();
    let make = "htpasswd -nBC 10 \"\" makes one";
    if name.is_empty() || name.contains(':') {
        return Err(mistake(
            line,
            &format!("{name:?} is no name of a user"),
            "it has letters, and no colon",
        ));
    }
    // the hash itself is not shown: it may be a password that was written there by mistake
    let parts = bcrypt::HashParts::from_str(&hash.value);
    let parts = parts.map_err(|_| mistake(line, &format!("user {name:?} has no bcrypt hash"), make))?;
    if !(4..=COST_AT_MOST).contains(&parts.get_cost()) {
        let said = format!("the hash of user {name:?} has cost {}", parts.get_cost());
        return Err(mistake(
            line,
            &said,
            &format!("4 to {COST_AT_MOST}, as a scrape waits for it; {make}"),
        ));
    }
    Ok(())
}

fn refuse(keys: &[(&str, &Refused, &str)]) -> Result<(), Mistake> {
    for (key, written, instead) in keys {
        if let Some(written) = written {
            return Err(mistake(
                written.referenced.line(),
                &format!("{key} is not followed"),
                instead,
            ));
        }
    }
    Ok(())
}

fn mistake(line: u64, said: &str, hint: &str) -> Mistake {
    Mistake {
        line,
        said: format!("{said}\nhint: {hint}"),
    }
}

/// On one line; without the place, which is told before it, and without the names of keys that are refused.
fn brief(text: &str) -> String {
    let text = text.split(" at line ").next().unwrap_or_default();
    let text = text.split(", expected one of ").next().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "web_config_tests.rs"]
mod tests;
