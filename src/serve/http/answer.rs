//! From a request to its answer.

use super::auth::Verdict;
use super::limits::PATIENCE;
use super::negotiate::Format;
use super::page;
use super::route::{self, Plan, Question};
use super::server::Site;
use crate::serve::{Scrape, Status};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use std::sync::Arc;
use std::time::Duration;

/// An answer.
pub type Page = Response<Full<Bytes>>;

/// The landing page shows older facts rather than wait longer.
const GLANCE: Duration = Duration::from_secs(1);
const TEXT: &str = "text/plain; charset=utf-8";
const SECURITY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                        form-action 'none'; frame-ancestors 'none'";

/// Answers a request; always with something.
pub async fn answer<B>(site: &Site, request: &Request<B>) -> Page {
    let rules = site.protection.rules();
    let mut page = if is_public(request.uri().path()) {
        planned(site, request).await
    } else {
        match rules
            .users
            .judge(&joined(request.headers(), &header::AUTHORIZATION))
            .await
        {
            Verdict::Admitted => planned(site, request).await,
            Verdict::Refused => with(
                text(StatusCode::UNAUTHORIZED, "name and password are needed\n"),
                header::WWW_AUTHENTICATE,
                "Basic realm=\"gpuscope\", charset=\"UTF-8\"",
            ),
            Verdict::Busy => with(
                text(StatusCode::TOO_MANY_REQUESTS, "too many passwords are being compared\n"),
                header::RETRY_AFTER,
                "1",
            ),
        }
    };
    let headers = rules.headers.iter().cloned();
    page.headers_mut().extend(headers);
    page
}

/// It says nothing but that somebody lives, and who looks after that has no password.
fn is_public(path: &str) -> bool {
    path == "/healthz"
}

async fn planned<B>(site: &Site, request: &Request<B>) -> Page {
    let headers = request.headers();
    let question = Question {
        method: request.method().as_str(),
        path: request.uri().path(),
        accept: &joined(headers, &header::ACCEPT),
        accept_encoding: &joined(headers, &header::ACCEPT_ENCODING),
        scrape_timeout: &joined(headers, &SCRAPE_TIMEOUT),
    };
    match route::plan(question, &site.telemetry_path, PATIENCE) {
        Plan::Metrics { format, gzip, patience } => metrics(site, format, gzip, patience).await,
        Plan::Landing => {
            let scrape = scrape(site, GLANCE).await;
            landing(&scrape, &site.telemetry_path)
        }
        Plan::Health => text(StatusCode::OK, "ok\n"),
        Plan::Ready => ready(&site.exchange.latest()),
        Plan::Method => with(
            text(StatusCode::METHOD_NOT_ALLOWED, "this is asked with GET or HEAD\n"),
            header::ALLOW,
            "GET, HEAD",
        ),
        Plan::NotFound => text(
            StatusCode::NOT_FOUND,
            format!(
                "there is no such page\nhint: {}, /healthz, /readyz or /\n",
                site.telemetry_path
            ),
        ),
    }
}

static SCRAPE_TIMEOUT: HeaderName = HeaderName::from_static("x-prometheus-scrape-timeout-seconds");

async fn metrics(site: &Site, format: Format, gzip: bool, patience: Duration) -> Page {
    let scrape = scrape(site, patience).await;
    if scrape.number == 0 {
        return with(unready(&scrape.status), header::RETRY_AFTER, "1");
    }
    let page = given(
        StatusCode::OK,
        format.content_type(),
        site.texts.of(&scrape, format, gzip),
    );
    let page = with(page, header::VARY, "Accept, Accept-Encoding");
    if gzip {
        with(page, header::CONTENT_ENCODING, "gzip")
    } else {
        page
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

fn landing(scrape: &Scrape, telemetry_path: &str) -> Page {
    let body = page::landing(scrape, telemetry_path);
    let page = given(StatusCode::OK, "text/html; charset=utf-8", body.into());
    with(page, header::CONTENT_SECURITY_POLICY, SECURITY)
}

fn ready(scrape: &Scrape) -> Page {
    if scrape.number > 0 && scrape.status.ready {
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

fn text(code: StatusCode, body: impl Into<Bytes>) -> Page {
    given(code, TEXT, body.into())
}

fn given(code: StatusCode, kind: &'static str, body: Bytes) -> Page {
    let mut page = Response::new(Full::new(body));
    *page.status_mut() = code;
    let page = with(page, header::CONTENT_TYPE, kind);
    with(page, header::X_CONTENT_TYPE_OPTIONS, "nosniff")
}

fn with(mut page: Page, name: HeaderName, value: &'static str) -> Page {
    page.headers_mut().insert(name, HeaderValue::from_static(value));
    page
}

/// All values of a header as one list; what is no text is left out.
fn joined(headers: &HeaderMap, name: &HeaderName) -> String {
    let values = headers.get_all(name).into_iter();
    let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    values.join(", ")
}
