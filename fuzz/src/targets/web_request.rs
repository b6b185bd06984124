//! A request, a part on each line: one plan for it, whatever its headers say; credentials; and a page that stays a page.

use gpuscope::serve::http::route::{Plan, Question, plan};
use gpuscope::serve::http::{auth, page};
use gpuscope::serve::{Scrape, Status};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(5);

pub fn run(text: &str) {
    let mut parts = text.splitn(5, '\n');
    let [method, path, accept, accept_encoding, scrape_timeout] = [(); 5].map(|()| parts.next().unwrap_or_default());
    let question = Question {
        method,
        path,
        accept,
        accept_encoding,
        scrape_timeout,
    };
    match plan(question, "/metrics", PATIENCE) {
        Plan::Metrics { patience, .. } => assert!(path == "/metrics" && patience <= PATIENCE),
        Plan::NotFound => assert!(!matches!(path, "/" | "/metrics" | "/healthz" | "/readyz" | "/-/keep")),
        Plan::Method => assert!(!matches!(method, "GET" | "HEAD")),
        Plan::Keep => assert_eq!((method, path), ("POST", "/-/keep")),
        Plan::NoPost => assert!(path == "/-/keep" && method != "POST"),
        Plan::Landing | Plan::Health | Plan::Ready => assert!(matches!(method, "GET" | "HEAD")),
    }
    if let Some((name, _)) = auth::credentials(accept) {
        assert!(!name.contains(':'));
    }
    let status = Status {
        ready: true,
        missing: vec![accept.to_owned()],
        facts: vec![(path.to_owned(), accept_encoding.to_owned())],
    };
    let blank = Status {
        missing: vec![String::new()],
        facts: vec![Default::default()],
        ..status.clone()
    };
    let empty = page::landing(&scrape(blank), "/", None);
    let filled = page::landing(&scrape(status), "/", None);
    // text adds no element; a hint in it may add one
    let elements = |page: &str| page.matches('<').count() - page.matches("small>").count();
    assert_eq!(elements(&filled), elements(&empty));
}

fn scrape(status: Status) -> Scrape {
    Scrape {
        at: Instant::now(),
        number: 1,
        samples: Vec::new(),
        status,
    }
}
