//! Pages and tables on a disk that fails: whatever makes them, they are there as a whole or not at all.

use super::{ERRORS, failing_after};
use crate::effort::{Chance, rounds, tried};
use crate::subject::Subject;
use crate::support::asked_store;
use crate::tracer::Tracer;
use std::path::Path;
use std::process::Output;
use tempfile::TempDir;

/// The last is what is made.
const WAYS: [&[&str]; 7] = [
    &["export", "FROM/t.arrows", "-o", "DISK/t.pftrace"],
    &["export", "FROM/t.arrows", "-o", "DISK/t.jsonl"],
    &["export", "FROM/t.arrows", "-o", "DISK/t.csv"],
    &["export", "FROM/t.arrows", "-o", "DISK/t.parquet"],
    &["report", "FROM/t.arrows", "--html", "DISK/page.html"],
    &[
        "job-report",
        "--from",
        "FROM/metrics",
        "--job",
        "7",
        "-o",
        "DISK/job.txt",
    ],
    &["fleet", "--prometheus", "STORE", "-o", "DISK/week.txt"],
];

/// Of what a store is asked first: which nodes there are. It suits the other questions, too.
const ANSWER: &str = r#"{"status":"success","data":{"resultType":"vector","result":[
    {"metric":{"node":"a","instance":"a:9748","version":"1"},"value":[0,"1"]}]}}"#;

/// What pages are made of.
struct Sources {
    folder: TempDir,
    /// The address of what answers as Prometheus does.
    store: String,
}

impl Sources {
    fn new() -> Sources {
        let folder = tempfile::tempdir().expect("a folder");
        let recording = folder.path().join("t.arrows");
        let subject = Subject::new("jumping", &[]);
        let words = ["record", "-o", recording.to_str().expect("UTF-8"), "--"];
        let recorded = Tracer::start(&[&words[..], &subject.command()].concat()).finish();
        subject.assert_as_alone(&recorded, "record");
        let metrics = "gpuscope_launches_total{batch_job=\"7\",comm=\"python\"} 5\n";
        std::fs::write(folder.path().join("metrics"), metrics).expect("a file");
        Sources {
            folder,
            store: asked_store("200 OK", ANSWER).0,
        }
    }

    /// What `way` says when what it makes is to lie in `disk`.
    fn make(&self, way: &[&str], disk: &Path) -> Output {
        let place = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        let (from, disk) = (place(self.folder.path()), place(disk));
        let words = way.iter().map(|word| {
            word.replace("FROM", &from)
                .replace("DISK", &disk)
                .replace("STORE", &self.store)
        });
        Tracer::start(&words.collect::<Vec<_>>()).finish()
    }
}

fn assert_made_whole_or_not_at_all(sources: &Sources, way: &[&str], chance: &mut Chance) {
    let name = way.last().and_then(|word| word.strip_prefix("DISK/")).expect("a name");
    let roomy = failing_after(u64::MAX, libc::EIO);
    let made = sources.make(way, &roomy.folder());
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    assert_eq!(made.status.code(), Some(0), "{way:?}: {said}");
    let bytes = std::fs::read(roomy.folder().join(name)).expect("it was made");
    for (errno, words) in ERRORS {
        let room = chance.below(bytes.len() as u64);
        let how = format!("{way:?}, {words} after {room} of {} bytes", bytes.len());
        let full = failing_after(room, errno);
        let failed = sources.make(way, &full.folder());
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!(failed.status.code(), Some(1), "{how}: {said}");
        let expected = said.contains("failed to write ") && said.contains(words) && said.contains("\nhint: ");
        assert!(expected, "{how}: {said}");
        // it has one file, whatever that is called
        assert!(!full.folder().join(name).exists(), "{how}: something is left");
    }
}

#[test]
#[ignore = "needs root and BPF"]
fn a_page_is_there_as_a_whole_or_not_at_all() {
    let (mut chance, sources) = (Chance::new(), Sources::new());
    let times = rounds(1, 1, 20, 200);
    for _ in 0..times {
        for way in WAYS {
            assert_made_whole_or_not_at_all(&sources, way, &mut chance);
        }
    }
    tried(
        times * (WAYS.len() * ERRORS.len()) as u64,
        "pages on a disk that fails midway",
    );
}
