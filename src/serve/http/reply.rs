//! What an answer is put together of.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

/// An answer.
pub type Page = Response<Full<Bytes>>;

const TEXT: &str = "text/plain; charset=utf-8";

pub(super) fn text(code: StatusCode, body: impl Into<Bytes>) -> Page {
    given(code, TEXT, body.into())
}

pub(super) fn given(code: StatusCode, kind: &'static str, body: Bytes) -> Page {
    let mut page = Response::new(Full::new(body));
    *page.status_mut() = code;
    let page = with(page, header::CONTENT_TYPE, kind);
    with(page, header::X_CONTENT_TYPE_OPTIONS, "nosniff")
}

pub(super) fn with(mut page: Page, name: HeaderName, value: &'static str) -> Page {
    page.headers_mut().insert(name, HeaderValue::from_static(value));
    page
}
