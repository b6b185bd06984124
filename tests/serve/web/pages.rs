//! What is where, in which format.

use super::support::{Answer, World, scrape};
use flate2::read::GzDecoder;
use gpuscope::serve::{Doing, Status};
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::Ordering;

#[test]
fn metrics_come_in_the_format_that_is_asked_for() {
    let world = World::gathering(0);
    let plain = world.get("/metrics", "");
    assert_eq!(
        (plain.code, plain.header("content-type")),
        (200, Some("text/plain; version=0.0.4; charset=utf-8"))
    );
    assert!(plain.text().ends_with("as Plain\n"), "{plain:?}");
    let open = world.get(
        "/metrics",
        "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n",
    );
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!((open.code, open.header("content-type")), (200, Some(kind)));
    assert!(open.text().ends_with("as OpenMetrics\n"), "{open:?}");
    assert_eq!(open.header("vary"), Some("accept, accept-encoding"));
    assert_eq!(world.requests(), [(200, 2)]);
}

#[test]
fn gzip_holds_the_same_text() {
    let world = World::gathering(100_000);
    let packed = world.get("/metrics", "Accept-Encoding: gzip\r\n");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < 50_000, "{}", packed.body.len());
    let mut text = String::new();
    GzDecoder::new(&packed.body[..]).read_to_string(&mut text).unwrap();
    assert!(
        text.len() >= 100_000 && text.starts_with("scrape ") && text.ends_with(" 1\n"),
        "{}",
        text.len()
    );
}

#[test]
fn head_is_get_without_a_body() {
    let world = World::gathering(5000);
    let get = world.get("/metrics", "");
    let head = world.ask("HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_eq!((head.code, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), get.header("content-length"));
    assert_eq!(get.header("content-length"), Some(get.body.len().to_string().as_str()));
}

#[test]
fn other_pages_and_methods_are_refused_with_words() {
    let world = World::gathering(0);
    let lost = world.get("/metricz", "");
    assert_eq!(lost.code, 404);
    assert!(lost.text().contains("hint: /metrics"), "{lost:?}");
    let post = world.ask("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc");
    assert_eq!((post.code, post.header("allow")), (405, Some("get, head")));
    assert_eq!(world.requests(), [(404, 1), (405, 1)]);
}

#[test]
fn what_follows_a_question_mark_changes_nothing() {
    assert_eq!(World::gathering(0).get("/metrics?collect[]=nvml", "").code, 200);
}

#[test]
fn readiness_has_a_reason() {
    let world = World::silent();
    assert_eq!(world.get("/healthz", "").code, 200);
    let early = world.get("/readyz", "");
    assert_eq!(
        (early.code, early.text().as_str()),
        (503, "not ready: nothing was gathered yet\n")
    );
    let missing = vec!["no probe is in place\nhint: run it as root".to_owned()];
    world.exchange.publish(scrape(
        1,
        Status {
            ready: false,
            missing,
            facts: Vec::new(),
        },
    ));
    let late = world.get("/readyz", "");
    assert_eq!(
        (late.code, late.text().as_str()),
        (503, "not ready:\nno probe is in place\nhint: run it as root\n")
    );
    world.exchange.publish(scrape(
        2,
        Status {
            ready: true,
            ..Status::default()
        },
    ));
    assert_eq!(world.get("/readyz", "").code, 200);
}

#[test]
fn metrics_wait_for_the_first_gathering() {
    let world = World::silent();
    let mut stream = world.connect();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .unwrap();
    // the wish is there from the start: it is the request that is waited for
    while !world.get("/healthz", "").text().starts_with("ok") {}
    world.exchange.publish(scrape(7, Status::default()));
    let answer = Answer::read(&mut stream);
    assert_eq!((answer.code, answer.text().as_str()), (200, "scrape 7 as Plain\n"));
}

#[test]
fn a_scraper_that_waits_briefly_is_told_before_it_gives_up() {
    let world = World::silent();
    let answer = world.get("/metrics", "X-Prometheus-Scrape-Timeout-Seconds: 0.2\r\n");
    assert_eq!((answer.code, answer.header("retry-after")), (503, Some("1")));
    world.exchange.publish(scrape(1, Status::default()));
    std::thread::sleep(std::time::Duration::from_millis(300));
    // nobody gathers any more: the last values are given, however old
    let old = world.get("/metrics", "X-Prometheus-Scrape-Timeout-Seconds: 0.2\r\n");
    assert_eq!((old.code, old.text().as_str()), (200, "scrape 1 as Plain\n"));
}

#[test]
fn one_connection_carries_many_requests() {
    let world = World::gathering(0);
    let mut stream = BufReader::new(world.connect());
    for _ in 0..20 {
        stream
            .get_mut()
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
        let mut line = String::new();
        while line.trim_end() != "ok" {
            line.clear();
            assert_ne!(stream.read_line(&mut line).unwrap(), 0, "closed");
        }
    }
    assert_eq!(world.requests(), [(200, 20)]);
}

#[test]
fn the_landing_page_shows_what_is_known() {
    let world = World::silent();
    let facts = vec![("Devices".to_owned(), "8 × <H200>".to_owned())];
    world.exchange.publish(scrape(
        1,
        Status {
            ready: true,
            missing: Vec::new(),
            facts,
        },
    ));
    let page = world.get("/", "Accept: text/html\r\n");
    assert_eq!(
        (page.code, page.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    assert!(
        page.text()
            .contains("<th scope=\"row\">Devices</th><td>8 × &lt;H200&gt;</td>"),
        "{}",
        page.text()
    );
    assert!(
        page.header("content-security-policy")
            .unwrap()
            .starts_with("default-src 'none'")
    );
    assert_eq!(world.rendered.load(Ordering::Relaxed), 0);
}

#[test]
fn metrics_may_have_another_path() {
    let world = World::with(|settings| settings.telemetry_path = "/gpu/metrics".to_owned(), 0).gather();
    assert_eq!(world.get("/gpu/metrics", "").code, 200);
    assert_eq!(world.get("/metrics", "").code, 404);
    assert!(world.get("/", "").text().contains("href=\"/gpu/metrics\""));
}

const STUCK: &str = "the thread that gathers has stood still for 20 s, following programs and their libraries\n";

fn ready() -> Status {
    Status {
        ready: true,
        ..Status::default()
    }
}

#[test]
fn health_says_that_the_gatherer_stands_still() {
    let world = World::silent();
    world.exchange.publish(scrape(1, ready()));
    world.exchange.heart.beat(Doing::Following);
    assert_eq!(
        [world.get("/healthz", "").code, world.get("/readyz", "").code],
        [200, 200]
    );
    world
        .exchange
        .heart
        .beat_before(Doing::Following, std::time::Duration::from_secs(20));
    for path in ["/healthz", "/readyz"] {
        let answer = world.get(path, "");
        assert_eq!((answer.code, answer.text().as_str()), (503, STUCK), "{path}");
    }
    let page = world.get("/", "").text();
    assert!(
        page.contains("stands still</span>") && page.contains(STUCK.trim()),
        "{page}"
    );
    world.exchange.heart.beat(Doing::Gathering);
    assert_eq!(
        [world.get("/healthz", "").code, world.get("/readyz", "").code],
        [200, 200]
    );
}

#[test]
fn where_health_alone_is_told_there_is_nothing_else() {
    let world = World::with(|settings| settings.health = vec![super::support::loopback()], 0);
    let ask = |path: &str| {
        let mut stream = super::support::connect(world.server.as_ref().unwrap().health_addresses()[0]);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        Answer::read(&mut stream)
    };
    let early = ask("/readyz");
    assert_eq!((early.code, early.text().as_str()), (503, "not ready\n"));
    let missing = vec!["/home/alice/secret.so is not traced".to_owned()];
    world.exchange.publish(scrape(
        1,
        Status {
            ready: false,
            missing,
            ..Status::default()
        },
    ));
    assert_eq!(
        ask("/readyz").text(),
        "not ready\n",
        "names are for those who may see them"
    );
    world.exchange.publish(scrape(2, ready()));
    assert_eq!((ask("/readyz").code, ask("/healthz").text().as_str()), (200, "ok\n"));
    for path in ["/metrics", "/", "/nothing"] {
        assert_eq!(ask(path).code, 404, "{path}");
    }
}
