use super::*;
use crate::probe::machine::mapped::Kind;

fn check(state: State) -> Check {
    Check {
        name: "kernel",
        state,
        detail: "Linux\u{1b}[2J".to_owned(),
        cure: Some("sudo x".to_owned()),
    }
}

fn report(tier: Option<&'static str>, process: Option<Coverage>) -> Report {
    Report {
        possible: tier.is_some(),
        tier,
        inside: false,
        checks: vec![check(State::Limited)],
        agent: process.is_some().then_some(Standby::Absent),
        process,
        descendants: Vec::new(),
        hidden_descendants: 0,
    }
}

fn process(refusal: Option<&str>) -> Coverage {
    let refusal = refusal.map(str::to_owned);
    Coverage {
        pid: 7,
        inner_pid: None,
        comm: "a\nb".to_owned(),
        refusal,
        libraries: Vec::new(),
        gaps: vec!["x\ty".to_owned()],
    }
}

fn plain(report: &Report) -> String {
    anstream::adapter::strip_str(&render(report)).to_string()
}

#[test]
fn what_others_wrote_cannot_drive_the_terminal() {
    assert_eq!(
        escaped("a\u{1b}[31m\nb\u{202e}c é\u{7f}"),
        "a\\u{1b}[31m\\nb\\u{202e}c é\\u{7f}"
    );
    let text = plain(&report(Some("uprobe.multi"), Some(process(None))));
    assert!(
        text.contains("process 7 (a\\nb)") && text.contains("not seen  x\\ty"),
        "{text}"
    );
    assert!(
        text.contains("limited  kernel  Linux\\u{1b}[2J\n                 cure: sudo x\n"),
        "{text}"
    );
}

#[test]
fn the_last_line_says_whether_tracing_is_possible() {
    let last = |report: &Report| plain(report).lines().last().unwrap_or_default().to_owned();
    assert_eq!(
        last(&report(None, None)),
        "Tracing is not possible here; begin with the first cure above."
    );
    let inside = Report {
        possible: true,
        inside: true,
        ..report(None, None)
    };
    assert!(last(&inside).starts_with("run, record and leaks work here, from inside."));
    let launcher = Report {
        agent: Some(Standby::Absent),
        process: Some(process(None)),
        ..inside
    };
    assert!(last(&launcher).starts_with("What descends from this process can be traced here, from inside,"));
    let refused = report(Some("perf-link"), Some(process(Some("a kernel thread"))));
    assert_eq!(last(&refused), "Process 7 cannot be traced.");
    assert!(last(&report(Some("perf-link"), None)).starts_with("Tracing is possible here, with perf-link;"));
}

#[test]
fn descendants_are_shown_as_far_as_there_is_room() {
    let descendant = |pid| Descendant {
        process: Coverage { pid, ..process(None) },
        agent: Standby::Ready,
    };
    let report = Report {
        descendants: (11..=20).map(descendant).collect(),
        hidden_descendants: 2,
        ..report(Some("perf-link"), Some(process(None)))
    };
    let text = plain(&report);
    assert!(text.contains("\nprocess 18 (a\\nb), which descends from 7\n"), "{text}");
    assert!(text.contains("\n2 descendants more that use CUDA: 19, 20\n"), "{text}");
    assert!(
        text.contains("process 11 carries the agent, and can be traced from inside"),
        "{text}"
    );
}

#[test]
fn json_is_one_object_on_one_line() {
    let text = serde_json::to_string(&report(None, Some(process(None)))).expect("serialisable");
    assert!(
        !text.contains('\n')
            && text.starts_with(
                "{\"possible\":false,\"tier\":null,\"inside\":false,\"checks\":[{\"name\":\"kernel\",\"state\":\"limited\""
            )
    );
}

fn found(name: &'static str, state: State, detail: &str, cure: Option<&str>) -> Check {
    Check {
        name,
        state,
        detail: detail.to_owned(),
        cure: cure.map(str::to_owned),
    }
}

fn mapped(path: &str, kind: Kind, layer: &str, (hookable, of): (usize, usize)) -> MappedLibrary {
    MappedLibrary {
        path: path.to_owned(),
        kind,
        layer: layer.to_owned(),
        hookable,
        of,
        mount_namespace_differs: false,
        deleted: false,
        note: None,
    }
}

/// A machine and a process that have a little of everything.
fn made_up() -> Report {
    let replaced = MappedLibrary {
        mount_namespace_differs: true,
        deleted: true,
        note: Some("3 functions take no probe: cuA, cuB, cuC".to_owned()),
        ..mapped("/opt/old\nlib/libcuda.so.1", Kind::Shared, "driver", (709, 712))
    };
    Report {
        possible: true,
        tier: Some("uprobe.multi"),
        descendants: Vec::new(),
        hidden_descendants: 0,
        inside: true,
        checks: vec![
            found("kernel", State::Ok, "Linux 6.12.1", None),
            found(
                "lockdown",
                State::Limited,
                "not known",
                Some("sudo mount -t securityfs x y"),
            ),
            found(
                "nvidia driver",
                State::Missing,
                "absent\u{1b}[2J",
                Some("install the driver"),
            ),
        ],
        process: Some(Coverage {
            pid: 4711,
            inner_pid: Some(7),
            comm: "python".to_owned(),
            refusal: None,
            libraries: vec![
                mapped("/lib/libcudart.so.13", Kind::Shared, "runtime", (452, 452)),
                replaced,
                mapped("/app/train", Kind::Stripped, "runtime", (398, 398)),
            ],
            gaps: vec!["private driver functions (cuGetExportTable) have no names and are not seen".to_owned()],
        }),
        agent: Some(Standby::Ready),
    }
}

#[test]
fn doctor_as_text() {
    insta::assert_snapshot!(plain(&made_up()));
}

#[test]
fn doctor_in_colour() {
    insta::assert_snapshot!(render(&made_up()).replace('\x1b', "␛"));
}

#[test]
fn doctor_as_json() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&made_up()).expect("serialisable"));
}

#[test]
fn doctor_as_text_where_a_process_is_refused() {
    let refusal = "its mappings cannot be read: it belongs to another user\nhint: run with sudo";
    insta::assert_snapshot!(plain(&report(Some("perf-link"), Some(process(Some(refusal))))));
}
