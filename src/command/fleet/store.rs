//! Prometheus, or what answers as it does, over HTTP.

use crate::serve::fleet::{Answer, Question, Span, Wrong, read};
use crate::text::quantity::escaped;
use anyhow::{Context, Result, anyhow};
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use ureq::Agent;
use ureq::http::{HeaderName, HeaderValue, Uri};

/// Of one answer.
const MOST_BYTES: u64 = 16 << 20;
const MOST_HEADER_BYTES: u64 = 64 << 10;

/// The first status of HTTP that says so.
const ERRORS: u16 = 400;

/// An answer as it came.
pub(super) struct Said {
    pub(super) question: Question,
    status: u16,
    body: Vec<u8>,
}

/// Where it is asked, and how.
pub(super) struct Store {
    agent: Agent,
    endpoint: String,
    /// Without what may be secret in the address.
    name: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Store {
    pub(super) fn new(url: &str, headers: Option<&Path>, timeout: Duration) -> Result<Store> {
        let base = url.trim_end_matches('/');
        let uri: Option<Uri> = base.parse().ok();
        let usable = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none();
        let uri = uri.filter(usable).and_then(|uri| {
            let host = uri.authority()?.as_str().rsplit('@').next()?.to_owned();
            Some(format!(
                "{}://{host}{}",
                uri.scheme_str()?,
                uri.path().trim_end_matches('/')
            ))
        });
        let wrong = || {
            crate::refusal::Usage(format!(
                "--prometheus {} is no address\nhint: such as http://prometheus:9090",
                escaped(url)
            ))
        };
        let agent = Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            // a POST would become a GET
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("gpuscope/", env!("CARGO_PKG_VERSION")));
        Ok(Store {
            agent: agent.build().new_agent(),
            endpoint: format!("{base}/api/v1/query"),
            name: escaped(&uri.ok_or_else(wrong)?),
            headers: headers.map(read_headers).transpose()?.unwrap_or_default(),
        })
    }

    /// As messages call it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Several queries, answered as of the end of the span; none after one that is refused.
    pub(super) fn ask(&self, questions: &[Question], span: &Span) -> Result<Vec<Said>> {
        let mut all: Vec<Said> = Vec::with_capacity(questions.len());
        for question in questions {
            let said = self.post(*question, span);
            all.push(said.map_err(|error| unanswered(&error).context(self.failed(*question)))?);
            if all.last().is_some_and(|said| said.status >= ERRORS) {
                break;
            }
        }
        Ok(all)
    }

    /// What an answer means. Its bytes are whoever's who answers at that address.
    pub(super) fn read(&self, said: &Said) -> Result<Answer> {
        let refused = |wrong| self.refused(said.status, wrong).context(self.failed(said.question));
        read(&said.body).map_err(refused)
    }

    fn failed(&self, question: Question) -> String {
        format!("failed to ask {} {}", self.name, question.words())
    }

    fn post(&self, question: Question, span: &Span) -> Result<Said, ureq::Error> {
        let mut request = self.agent.post(&self.endpoint);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let (expression, time) = (question.expression(span), span.until_seconds.to_string());
        let mut answer = request.send_form([("query", expression.as_str()), ("time", &time)])?;
        let body = answer.body_mut().with_config().limit(MOST_BYTES).read_to_vec()?;
        Ok(Said {
            question,
            status: answer.status().as_u16(),
            body,
        })
    }

    fn refused(&self, status: u16, wrong: Wrong) -> anyhow::Error {
        match (status, wrong) {
            (401 | 403, _) => anyhow!(
                "it wants to know who asks (HTTP {status})\nhint: --headers FILE with a line such as Authorization: Bearer …"
            ),
            (_, Wrong::Refused(why)) => anyhow!(
                "it refuses: {}\nhint: if that is too much for it, ask for less: --since 1d, --user NAME",
                escaped(&why)
            ),
            (300..=399, Wrong::NotPrometheus) => anyhow!(
                "it sends to another address (HTTP {status}), which is not followed\nhint: name that address itself, such as https:// in place of http://"
            ),
            (500..=599, Wrong::NotPrometheus) => anyhow!(
                "what stands before it cannot answer (HTTP {status})\nhint: try again when Prometheus is up, or ask it without what stands before it"
            ),
            (_, Wrong::NotPrometheus) => anyhow!(
                "it does not answer as Prometheus does (HTTP {status})\nhint: the address is that before /api/v1, such as http://prometheus:9090; of Mimir it ends with /prometheus"
            ),
        }
    }
}

fn unanswered(error: &ureq::Error) -> anyhow::Error {
    let cure = match error {
        ureq::Error::BodyExceedsLimit(_) => "it has more to say than is read: --user NAME, --since 1d",
        ureq::Error::Timeout(_) => "a longer --timeout, or less at a time: --since 1d",
        _ => "does Prometheus run there, and can it be reached from here?",
    };
    anyhow!("{error}\nhint: {cure}")
}

/// `Name: value`, one a line.
fn read_headers(path: &Path) -> Result<Vec<(HeaderName, HeaderValue)>> {
    let failed = || format!("failed to read the headers of {}", path.display());
    let mut text = String::new();
    let file = std::fs::File::open(path).with_context(failed)?;
    file.take(MOST_HEADER_BYTES)
        .read_to_string(&mut text)
        .with_context(failed)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| header(line).ok_or(number))
        .collect::<Result<_, _>>()
        .map_err(|number: usize| {
            // its text may be a secret
            anyhow!(
                "line {} is no header\nhint: such as Authorization: Bearer …",
                number + 1
            )
            .context(failed())
        })
}

fn header(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    Some((name.trim().parse().ok()?, value.trim().parse().ok()?))
}
