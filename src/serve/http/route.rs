//! What a request asks for. Pure: the same for every connection, whatever carries it.

use super::negotiate::{self, Format};
use std::time::Duration;

/// Where recordings are asked for.
pub(super) const KEEP: &str = "/-/keep";

/// The parts of a request that decide.
#[derive(Debug, Clone, Copy, Default)]
pub struct Question<'a> {
    pub method: &'a str,
    /// Without what follows `?`.
    pub path: &'a str,
    /// Values of headers of the same name, joined; empty: none.
    pub accept: &'a str,
    pub accept_encoding: &'a str,
    /// `X-Prometheus-Scrape-Timeout-Seconds`.
    pub scrape_timeout: &'a str,
}

/// What to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Values no older than a moment, or within `patience` the last ones.
    Metrics {
        format: Format,
        gzip: bool,
        patience: Duration,
    },
    Landing,
    Health,
    Ready,
    /// The last moments of programs are to be written.
    Keep,
    /// Another method than GET or HEAD.
    Method,
    /// Another one than POST.
    NoPost,
    NotFound,
}

/// The plan for a question, where metrics are at `telemetry_path` and are waited for `patience` at most.
#[must_use]
pub fn plan(question: Question<'_>, telemetry_path: &str, patience: Duration) -> Plan {
    let plan = match question.path {
        path if path == telemetry_path => Plan::Metrics {
            format: negotiate::format(question.accept),
            gzip: negotiate::gzip(question.accept_encoding),
            patience: patience_of(question.scrape_timeout, patience),
        },
        "/" => Plan::Landing,
        "/healthz" => Plan::Health,
        "/readyz" => Plan::Ready,
        KEEP if question.method == "POST" => return Plan::Keep,
        KEEP => return Plan::NoPost,
        _ => return Plan::NotFound,
    };
    match question.method {
        "GET" | "HEAD" => plan,
        _ => Plan::Method,
    }
}

/// Prometheus says how long it waits: half a second of that is for the way, or half of all where that is more.
fn patience_of(scrape_timeout: &str, longest: Duration) -> Duration {
    let seconds = scrape_timeout.trim().parse::<f64>().unwrap_or(0.0);
    if seconds <= 0.0 {
        return longest;
    }
    let ours = (seconds - 0.5).max(seconds / 2.0);
    Duration::try_from_secs_f64(ours).map_or(longest, |ours| ours.min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn planned(method: &str, path: &str) -> Plan {
        let question = Question {
            method,
            path,
            ..Question::default()
        };
        plan(question, "/metrics", PATIENCE)
    }

    #[test]
    fn each_page_is_given_to_get_and_head_alone() {
        for (path, expected) in [
            ("/", Plan::Landing),
            ("/healthz", Plan::Health),
            ("/readyz", Plan::Ready),
        ] {
            assert_eq!(planned("GET", path), expected);
            assert_eq!(planned("HEAD", path), expected);
            for method in ["POST", "get", "DELETE", "OPTIONS", ""] {
                assert_eq!(planned(method, path), Plan::Method, "{method} {path}");
            }
        }
        assert!(matches!(planned("GET", "/metrics"), Plan::Metrics { .. }));
        assert_eq!(planned("POST", "/metrics"), Plan::Method);
        for path in ["", "//", "/metrics/", "/Metrics", "/healthz/..", "*", "/%2e"] {
            assert_eq!(planned("GET", path), Plan::NotFound, "{path}");
            assert_eq!(planned("POST", path), Plan::NotFound, "{path}");
        }
    }

    #[test]
    fn recordings_are_asked_for_by_post_alone() {
        assert_eq!(planned("POST", KEEP), Plan::Keep);
        for method in ["GET", "HEAD", "PUT", "post"] {
            assert_eq!(planned(method, KEEP), Plan::NoPost, "{method}");
        }
    }

    #[test]
    fn another_path_of_metrics_takes_the_place_of_the_usual_one() {
        let question = |path| Question {
            method: "GET",
            path,
            ..Question::default()
        };
        assert!(matches!(plan(question("/gpu"), "/gpu", PATIENCE), Plan::Metrics { .. }));
        assert_eq!(plan(question("/metrics"), "/gpu", PATIENCE), Plan::NotFound);
        assert!(matches!(plan(question("/"), "/", PATIENCE), Plan::Metrics { .. }));
    }

    #[test]
    fn the_answer_comes_before_prometheus_gives_up() {
        for (said, expected) in [
            ("", 5.0),
            ("10", 5.0),
            ("3", 2.5),
            ("0.5", 0.25),
            ("1.0", 0.5),
            ("0", 5.0),
            ("-1", 5.0),
            ("nan", 5.0),
            ("inf", 5.0),
            ("1e300", 5.0),
            ("soon", 5.0),
        ] {
            assert_eq!(patience_of(said, PATIENCE), Duration::from_secs_f64(expected), "{said}");
        }
    }
}
