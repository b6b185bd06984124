//! `POST /-/keep`: the last moments of programs are to be written. The answer comes before that is done.

use super::limits::{BODY_BYTES, BODY_TIME};
use super::reply::{Page, text, with};
use super::site::Site;
use crate::serve::keep::Ask;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body, Bytes};
use hyper::header::{self, HeaderMap};
use std::time::Instant;

/// Takes a request of somebody who is admitted.
pub(super) async fn asked<B: Body>(site: &Site, headers: &HeaderMap, body: B) -> Page {
    let asks = &site.exchange.asks;
    if !asks.is_open() {
        let words = "nothing is kept\nhint: gpuscope serve --keep 60s\n";
        return text(StatusCode::NOT_FOUND, words);
    }
    if headers.contains_key(header::ORIGIN) {
        // a page that a browser here shows could ask for as much as the disk takes
        return text(StatusCode::FORBIDDEN, "pages of browsers may not ask for this\n");
    }
    if !asks.may_ask(Instant::now()) {
        let page = text(StatusCode::TOO_MANY_REQUESTS, "six are taken in a minute\n");
        return with(page, header::RETRY_AFTER, "30");
    }
    let said = match read(body).await {
        Ok(said) => said,
        Err(refusal) => return refusal,
    };
    match Ask::parse(&said) {
        Ok(Some(ask)) => {
            asks.add(ask);
            site.exchange.ring();
            let words = "the last moments are written in a second; gpuscope_kept_recording_info names the file\n";
            text(StatusCode::ACCEPTED, words)
        }
        Ok(None) => text(StatusCode::OK, "no alert fires: nothing is written\n"),
        Err(why) => text(
            StatusCode::BAD_REQUEST,
            format!("{why}\nhint: no body at all, or what Alertmanager's webhook sends\n"),
        ),
    }
}

async fn read<B: Body>(body: B) -> Result<Bytes, Page> {
    let body = Box::pin(body.map_err(|_| "it broke off"));
    let all = Limited::new(body, BODY_BYTES).collect();
    match tokio::time::timeout(BODY_TIME, all).await {
        Ok(Ok(all)) => Ok(all.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(text(StatusCode::PAYLOAD_TOO_LARGE, "a request may have 1 MiB\n"))
        }
        Ok(Err(_)) => Err(text(StatusCode::BAD_REQUEST, "the request broke off\n")),
        Err(_) => Err(text(StatusCode::REQUEST_TIMEOUT, "the request took too long\n")),
    }
}
