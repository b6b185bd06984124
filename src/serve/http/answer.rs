//! From a request to its answer.

use super::auth::Verdict;
use super::keep;
use super::limits::PATIENCE;
use super::negotiate::Format;
use super::page;
use super::reply::{Page, given, text, with};
use super::route::{self, Plan, Question};
use super::site::{Door, Site};
use crate::serve::{Scrape, Status, Stuck};
use hyper::body::Body;
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::http::request::Parts;
use hyper::{Request, StatusCode};
use std::sync::Arc;
use std::time::Duration;

/// The landing page shows older facts rather than wait longer.
const GLANCE: Duration = Duration::from_secs(1);
const SECURITY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                        form-action 'none'; frame-ancestors 'none'";

/// Answers a request; always with something. With the number of the scrape whose text it is; 0: of none.
pub(crate) async fn answer<B: Body>(site: &Site, door: Door, request: Request<B>) -> (Page, u64) {
    let (head, body) = request.into_parts();
    let plan = plan(site, &head);
    match door {
        Door::All => admitted(site, plan, &head.headers, body).await,
        Door::Health => (brief(site, plan).unwrap_or_else(|| elsewhere(plan)), 0),
    }
}

fn plan(site: &Site, head: &Parts) -> Plan {
    let headers = &head.headers;
    let question = Question {
        method: head.method.as_str(),
        path: head.uri.path(),
        accept: &joined(headers, &header::ACCEPT),
        accept_encoding: &joined(headers, &header::ACCEPT_ENCODING),
        scrape_timeout: &joined(headers, &SCRAPE_TIMEOUT),
    };
    route::plan(question, &site.telemetry_path, PATIENCE)
}

/// What the web config says that whoever asks may have.
async fn admitted<B: Body>(site: &Site, plan: Plan, headers: &HeaderMap, body: B) -> (Page, u64) {
    let rules = site.protection.rules();
    let verdict = rules.users.judge(&joined(headers, &header::AUTHORIZATION)).await;
    let (mut page, scrape) = match verdict {
        Verdict::Admitted if plan == Plan::Keep => (keep::asked(site, headers, body).await, 0),
        Verdict::Admitted => planned(site, plan).await,
        // who looks after the process has no password
        _ if is_public(plan) => (brief(site, plan).unwrap_or_else(|| elsewhere(plan)), 0),
        refused => (not_admitted(refused), 0),
    };
    let headers = rules.headers.iter().cloned();
    page.headers_mut().extend(headers);
    (page, scrape)
}

fn not_admitted(verdict: Verdict) -> Page {
    match verdict {
        Verdict::Busy => with(
            text(StatusCode::TOO_MANY_REQUESTS, "too many passwords are being compared\n"),
            header::RETRY_AFTER,
            "1",
        ),
        _ => with(
            text(StatusCode::UNAUTHORIZED, "name and password are needed\n"),
            header::WWW_AUTHENTICATE,
            "Basic realm=\"gpuscope\", charset=\"UTF-8\"",
        ),
    }
}

fn is_public(plan: Plan) -> bool {
    matches!(plan, Plan::Health | Plan::Ready)
}

/// Health for everybody: no names of programs or files. `None`: the plan is another.
fn brief(site: &Site, plan: Plan) -> Option<Page> {
    match plan {
        Plan::Health => Some(health(site)),
        Plan::Ready => Some(match (site.exchange.heart.stuck(), is_ready(&site.exchange.latest())) {
            (Some(stuck), _) => unavailable(&stuck),
            (None, true) => text(StatusCode::OK, "ready\n"),
            (None, false) => text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
        }),
        _ => None,
    }
}

async fn planned(site: &Site, plan: Plan) -> (Page, u64) {
    match plan {
        Plan::Metrics { format, gzip, patience } => metrics(site, format, gzip, patience).await,
        plan => (beside(site, plan).await, 0),
    }
}

/// The pages beside the metrics.
async fn beside(site: &Site, plan: Plan) -> Page {
    match plan {
        Plan::Landing => {
            let scrape = scrape(site, GLANCE).await;
            landing(&scrape, site)
        }
        Plan::Health => health(site),
        Plan::Ready => match site.exchange.heart.stuck() {
            Some(stuck) => unavailable(&stuck),
            None => ready(&site.exchange.latest()),
        },
        Plan::Method => with(
            text(StatusCode::METHOD_NOT_ALLOWED, "this is asked with GET or HEAD\n"),
            header::ALLOW,
            "GET, HEAD",
        ),
        Plan::NoPost if site.exchange.asks.is_open() => with(
            text(StatusCode::METHOD_NOT_ALLOWED, "this is asked with POST\n"),
            header::ALLOW,
            "POST",
        ),
        Plan::NotFound | Plan::NoPost | Plan::Keep | Plan::Metrics { .. } => text(
            StatusCode::NOT_FOUND,
            format!(
                "there is no such page\nhint: {}, /healthz, /readyz or /\n",
                site.telemetry_path
            ),
        ),
    }
}

/// Where nothing but health is told.
fn elsewhere(plan: Plan) -> Page {
    match plan {
        Plan::Method => with(
            text(StatusCode::METHOD_NOT_ALLOWED, "this is asked with GET or HEAD\n"),
            header::ALLOW,
            "GET, HEAD",
        ),
        _ => text(
            StatusCode::NOT_FOUND,
            "health alone is told here\nhint: /healthz or /readyz\n",
        ),
    }
}

/// Whether the process does what it is there for, not only whether it answers.
fn health(site: &Site) -> Page {
    match site.exchange.heart.stuck() {
        Some(stuck) => unavailable(&stuck),
        None => text(StatusCode::OK, "ok\n"),
    }
}

fn unavailable(stuck: &Stuck) -> Page {
    text(StatusCode::SERVICE_UNAVAILABLE, format!("{stuck}\n"))
}

static SCRAPE_TIMEOUT: HeaderName = HeaderName::from_static("x-prometheus-scrape-timeout-seconds");

async fn metrics(site: &Site, format: Format, gzip: bool, patience: Duration) -> (Page, u64) {
    let scrape = scrape(site, patience).await;
    if scrape.number == 0 {
        return (with(unready(&scrape.status), header::RETRY_AFTER, "1"), 0);
    }
    let (number, text) = site.texts.of(&scrape, format, gzip, site.seats(Door::All)).await;
    let page = given(StatusCode::OK, format.content_type(), text);
    let page = with(page, header::VARY, "Accept, Accept-Encoding");
    match gzip {
        true => (with(page, header::CONTENT_ENCODING, "gzip"), number),
        false => (page, number),
    }
}

/// What is known within `patience`; at once where the server stops, as then nobody may gather any more.
async fn scrape(site: &Site, patience: Duration) -> Arc<Scrape> {
    tokio::select! {
        fresh = site.exchange.fresh() => fresh,
        () = tokio::time::sleep(patience) => site.exchange.latest(),
        () = site.stops() => site.exchange.latest(),
    }
}

fn landing(scrape: &Scrape, site: &Site) -> Page {
    let body = page::landing(scrape, &site.telemetry_path, site.exchange.heart.stuck());
    let page = given(StatusCode::OK, "text/html; charset=utf-8", body.into());
    with(page, header::CONTENT_SECURITY_POLICY, SECURITY)
}

fn is_ready(scrape: &Scrape) -> bool {
    scrape.number > 0 && scrape.status.ready
}

fn ready(scrape: &Scrape) -> Page {
    if is_ready(scrape) {
        return text(StatusCode::OK, "ready\n");
    }
    unready(&scrape.status)
}

fn unready(status: &Status) -> Page {
    let mut said = "not ready: nothing was gathered yet\n".to_owned();
    if !status.missing.is_empty() {
        said = format!("not ready:\n{}\n", status.missing.join("\n"));
    }
    text(StatusCode::SERVICE_UNAVAILABLE, said)
}

/// All values of a header as one list; what is no text is left out.
fn joined(headers: &HeaderMap, name: &HeaderName) -> String {
    let values = headers.get_all(name).into_iter();
    let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    values.join(", ")
}
