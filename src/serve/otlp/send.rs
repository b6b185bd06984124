//! One request to a collector, and what its answer means by the rules of OTLP.

use super::{Settings, endpoint};
use anyhow::{Context, Result, anyhow};
use flate2::{Compression, write::GzEncoder};
use opentelemetry_proto::tonic::collector::metrics::v1::{ExportMetricsServiceRequest, ExportMetricsServiceResponse};
use prost::Message;
use std::io::Write;
use std::time::Duration;
use ureq::http::{HeaderName, HeaderValue, Response, Uri};
use ureq::{Agent, Body};

/// An answer that is longer is no answer of OTLP.
const ANSWER_BYTES: u64 = 64 * 1024;
/// Nobody waits longer because a collector says so.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Taken,
    /// The collector threw points away; sending again is forbidden.
    Partly(String),
    /// Sending the same again will not help.
    Refused(String),
    /// Worth another attempt, after the time that the collector asks for.
    Failed(String, Option<Duration>),
}

/// One request to a collector.
#[derive(Debug)]
pub(super) struct Sender {
    agent: Agent,
    pub(super) endpoint: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    timeout: Duration,
}

impl Sender {
    pub(super) fn new(settings: &Settings) -> Result<Sender> {
        let endpoint = endpoint(&settings.url);
        let uri: Uri = endpoint
            .parse()
            .with_context(|| format!("failed to read the address {endpoint}"))?;
        let usable =
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty());
        if !usable {
            return Err(anyhow!(
                "failed to read the address {endpoint}: hint: it looks like http://localhost:4318"
            ));
        }
        let config = Agent::config_builder()
            .timeout_global(Some(settings.timeout))
            .http_status_as_error(false)
            // a POST would become a GET
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("gpuscope/", env!("CARGO_PKG_VERSION")));
        let headers = settings.headers.iter().map(header).collect::<Result<_>>()?;
        Ok(Sender {
            agent: config.build().new_agent(),
            endpoint,
            headers,
            timeout: settings.timeout,
        })
    }

    /// Blocks for no longer than the timeout, or than `within`.
    pub(super) fn send(&self, body: &[u8], within: Option<Duration>) -> Outcome {
        let within = within.map_or(self.timeout, |within| within.min(self.timeout));
        let mut request = self
            .agent
            .post(&self.endpoint)
            .config()
            .timeout_global(Some(within))
            .build()
            .header("Content-Type", "application/x-protobuf")
            .header("Content-Encoding", "gzip");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        match request.send(body) {
            Ok(answer) => judge(answer),
            Err(error @ (ureq::Error::BadUri(_) | ureq::Error::Http(_))) => Outcome::Refused(error.to_string()),
            Err(error) => Outcome::Failed(error.to_string(), None),
        }
    }
}

fn header((name, value): &(String, String)) -> Result<(HeaderName, HeaderValue)> {
    let wrong = || format!("failed to use the header {name:?}: hint: names are letters, digits and -, values one line");
    let name_read = HeaderName::try_from(name).with_context(wrong)?;
    let mut value = HeaderValue::try_from(value).with_context(wrong)?;
    value.set_sensitive(true);
    Ok((name_read, value))
}

/// The body of a request: protobuf in gzip.
pub(super) fn packed(request: &ExportMetricsServiceRequest) -> Vec<u8> {
    let plain = request.encode_to_vec();
    let mut packer = GzEncoder::new(Vec::with_capacity(plain.len() / 8), Compression::fast());
    // writing into memory does not fail
    let _ = packer.write_all(&plain);
    packer.finish().unwrap_or_default()
}

fn judge(mut answer: Response<Body>) -> Outcome {
    let status = answer.status();
    match status.as_u16() {
        200..300 => partly(&mut answer),
        429 | 502..=504 => Outcome::Failed(format!("it answered {status}"), wait(&answer)),
        _ => Outcome::Refused(format!("it answered {status}")),
    }
}

fn partly(answer: &mut Response<Body>) -> Outcome {
    let body = answer.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec();
    // what was taken stays taken, whatever the words beside it
    let said = body
        .ok()
        .and_then(|body| ExportMetricsServiceResponse::decode(body.as_slice()).ok());
    match said
        .and_then(|said| said.partial_success)
        .filter(|partly| partly.rejected_data_points > 0)
    {
        Some(partly) => Outcome::Partly(format!(
            "it threw {} points away: {}",
            partly.rejected_data_points,
            partly.error_message.escape_debug()
        )),
        None => Outcome::Taken,
    }
}

/// `Retry-After` in seconds; as a date it counts as not given.
fn wait(answer: &Response<Body>) -> Option<Duration> {
    let seconds = answer
        .headers()
        .get("retry-after")?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_WAIT))
}
