use super::*;
use crate::record::{Kind, Record, Taker};
use crate::trace::schema::Piece;
use crate::trace::tests::{full, meta};
use crate::trace::{Covers, End, Reader, Recorder};
use std::time::Duration;
use tempfile::TempDir;

/// A recorder and where its bytes are kept.
struct Bench {
    folder: TempDir,
    store: Store,
    output: Output,
    recorder: Recorder,
}

fn bench(keeping: Keeping, budget: Option<u64>) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.arrows");
    bench_at(folder, path, keeping, budget)
}

fn bench_at(folder: TempDir, path: PathBuf, keeping: Keeping, budget: Option<u64>) -> Bench {
    let plan = Plan { path, keeping, budget };
    let store = Store::create(&plan).unwrap();
    Bench {
        folder,
        output: store.output(),
        recorder: Recorder::new(&meta()).unwrap().with_trigger(store.trigger.clone()),
        store,
    }
}

impl Bench {
    /// Writes a batch of rows that are at `at` and on.
    fn batch(&mut self, at: i64, rows: i64) {
        let mut bytes = Vec::new();
        for row in 0..rows {
            let address = Some(((at + row) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            self.recorder.push(
                &Record {
                    at: at + row,
                    address,
                    ..full()
                },
                &mut bytes,
            );
        }
        self.recorder.flush(&mut bytes);
        self.output.write(&bytes);
    }

    fn end(&mut self) {
        let mut bytes = Vec::new();
        let totals = Record {
            args: Some("{}"),
            ..Record::new(Kind::Summary, 0, 0)
        };
        self.recorder.push(&totals, &mut bytes);
        self.recorder.end(&mut bytes);
        self.output.write(&bytes);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> (Vec<i64>, End) {
        read(&self.path(name))
    }
}

struct Moments(Vec<i64>);

impl Taker for Moments {
    fn take(&mut self, event: &Record<'_>) {
        self.0.push(event.at);
    }
}

fn read(path: &Path) -> (Vec<i64>, End) {
    let mut moments = Moments(Vec::new());
    let end = Reader::open(path).unwrap().read(&mut moments);
    (moments.0, end)
}

fn ring(time: Duration, bytes: u64) -> Keeping {
    Keeping::Ring(Ring {
        time,
        bytes,
        on_error: true,
        on_xid: true,
        on_exit: true,
    })
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn one_file_has_everything() {
    let mut bench = bench(Keeping::Whole, None);
    (0..5).for_each(|batch| bench.batch(batch * 10, 10));
    bench.end();
    let (moments, end) = bench.read("x.arrows");
    assert_eq!(moments, (0..50).collect::<Vec<_>>());
    assert_eq!((end.summary.as_deref(), end.cut), (Some("{}"), None));
    let (kept, rows) = bench.store.kept();
    assert_eq!(kept.bytes, std::fs::metadata(bench.path("x.arrows")).unwrap().len());
    assert_eq!((rows, kept.full), (51, false));
    assert_eq!((kept.rows, end.rows, end.all_rows), (51, 50, 51));
}

#[test]
fn a_file_is_full_before_it_is_larger_than_its_budget() {
    let budget = 1 << 20;
    let mut bench = bench(Keeping::Whole, Some(budget));
    let mut at = 0;
    while !bench.store.kept().0.full {
        bench.batch(at, 1000);
        at += 1000;
    }
    bench.end();
    let (moments, end) = bench.read("x.arrows");
    assert_eq!((moments.len() as i64, end.cut), (at, None));
    let bytes = bench.store.kept().0.bytes;
    assert!(bytes <= budget && bytes > budget / 2, "{bytes}");
}

#[test]
fn each_part_reads_alone_and_all_of_them_as_one() {
    let mut bench = bench(Keeping::Parts(Rotate::Bytes(20_000)), None);
    (0..50).for_each(|batch| bench.batch(batch * 100, 100));
    bench.end();
    let files = bench.store.kept().0.files;
    assert!(files.len() > 2, "{files:?}");
    let mut moments = Vec::new();
    for file in &files {
        assert!(std::fs::metadata(file).unwrap().len() <= 20_008);
        let (part, end) = read(file);
        moments.extend(part);
        assert!(end.summary.is_none() && end.cut.unwrap().contains("a part of a recording"));
    }
    assert_eq!(moments, (0..5000).collect::<Vec<_>>());
    let (all, end) = bench.read("x.arrows");
    assert_eq!(all, moments);
    assert_eq!((end.summary.as_deref(), end.cut), (Some("{}"), None));
}

#[test]
fn parts_stay_within_their_budget_and_the_oldest_goes() {
    let mut bench = bench(Keeping::Parts(Rotate::Bytes(20_000)), Some(60_000));
    for batch in 0..50 {
        bench.batch(batch * 100, 100);
        assert!(bench.store.kept().0.bytes <= 60_008);
    }
    bench.end();
    let (kept, came_by) = bench.store.kept();
    assert!(kept.deleted > 0 && !bench.path("x.0001.arrows").exists());
    let (moments, end) = bench.read("x.arrows");
    assert_eq!(moments, (moments[0]..5000).collect::<Vec<_>>());
    assert!(moments[0] > 0 && end.summary.is_none(), "totals are of all rows");
    assert_eq!((kept.rows, came_by), (end.all_rows, 5001));
}

#[test]
fn a_part_that_somebody_has_deleted_ends_nothing() {
    let mut bench = bench(Keeping::Parts(Rotate::Bytes(20_000)), Some(60_000));
    for batch in 0..50 {
        bench.batch(batch * 100, 100);
        let _ = std::fs::remove_file(bench.path("x.0001.arrows"));
    }
    bench.end();
    let (kept, came_by) = bench.store.kept();
    assert!(kept.deleted > 1 && came_by == 5001, "{kept:?}");
}

#[test]
fn a_part_ends_by_age() {
    let mut bench = bench(Keeping::Parts(Rotate::Time(Duration::ZERO)), None);
    (0..3).for_each(|batch| bench.batch(batch, 1));
    bench.end();
    assert_eq!(bench.store.kept().0.files.len(), 4);
    assert_eq!(bench.read("x.arrows").0, [0, 1, 2]);
}

#[test]
fn parts_of_another_recording_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (old, path) = (folder.path().join("x.0003.arrows"), folder.path().join("x.arrows"));
    std::fs::write(&old, "mine").unwrap();
    let plan = Plan {
        path,
        keeping: Keeping::Parts(Rotate::Bytes(1)),
        budget: None,
    };
    let said = Store::create(&plan).err().unwrap().to_string();
    assert!(
        said.contains("x.0003.arrows is there already") && said.contains("hint: "),
        "{said}"
    );
    assert_eq!(std::fs::read_to_string(old).unwrap(), "mine");
}

#[test]
fn a_flight_recorder_writes_nothing_until_something_happens() {
    let mut bench = bench(
        Keeping::Ring(Ring {
            time: HOUR,
            bytes: 1 << 20,
            on_error: false,
            on_xid: true,
            on_exit: false,
        }),
        None,
    );
    bench.batch(0, 10);
    bench.store.trigger.raise(crate::trace::trigger::Cause::Error);
    assert_eq!(bench.store.turn().unwrap(), None);
    bench.end();
    assert_eq!(std::fs::read_dir(bench.folder.path()).unwrap().count(), 0);
}

#[test]
fn a_fault_has_the_last_moments_written_with_the_batch_that_tells_of_it() {
    let mut bench = bench(ring(HOUR, 1 << 20), None);
    (0..5).for_each(|batch| bench.batch(batch * 10, 10));
    bench.store.trigger.raise(crate::trace::trigger::Cause::Xid);
    assert_eq!(bench.store.turn().unwrap(), None, "its row is yet to come");
    bench.batch(50, 10);
    let said = bench.store.turn().unwrap().unwrap();
    assert!(said.starts_with("the driver reported a fault: the last "), "{said}");
    let (moments, end) = bench.read("x.dump-0001.arrows");
    assert_eq!(moments, (0..60).collect::<Vec<_>>());
    assert!(end.cut.unwrap().contains("the last moments"));
}

#[test]
fn errors_one_after_another_make_one_file_and_who_asks_gets_one() {
    use crate::trace::trigger::Cause::{Error, Signal};
    let mut bench = bench(ring(HOUR, 1 << 20), None);
    for batch in 0..5 {
        bench.store.trigger.raise(Error);
        assert!(bench.store.turn().is_ok());
        bench.batch(batch, 1);
        assert_eq!(bench.store.turn().unwrap().is_some(), batch == 0);
    }
    bench.store.trigger.raise(Signal);
    assert_eq!(bench.store.turn().unwrap(), None);
    bench.batch(5, 1);
    assert!(bench.store.turn().unwrap().unwrap().starts_with("SIGUSR1 came"));
    bench.end();
    assert!(bench.store.turn().unwrap().unwrap().starts_with("the trace ended"));
    assert_eq!(bench.store.kept().0.files.len(), 3);
    assert_eq!(bench.read("x.dump-0003.arrows").0, (0..6).collect::<Vec<_>>());
}

#[test]
fn memory_is_bounded_and_the_newest_rows_stay() {
    let mut bench = bench(ring(HOUR, 50_000), None);
    (0..50).for_each(|batch| bench.batch(batch * 100, 100));
    bench.end();
    let (moments, end) = bench.read("x.dump-0001.arrows");
    assert_eq!(moments, (moments[0]..5000).collect::<Vec<_>>());
    let kept = bench.store.kept().0;
    assert_eq!((kept.rows, end.rows), (end.all_rows, moments.len() as u64));
    let bytes = kept.bytes;
    assert!(moments[0] > 0 && bytes > 30_000 && bytes < 60_000, "{bytes}");
}

#[test]
fn what_is_older_than_wanted_is_gone() {
    let mut bench = bench(ring(Duration::from_millis(300), 1 << 20), None);
    bench.batch(0, 10);
    std::thread::sleep(Duration::from_millis(400));
    bench.batch(10, 10);
    bench.end();
    // the totals' batch comes last; that of the first rows has left, the texts that it brought have not
    assert_eq!(bench.read("x.dump-0001.arrows").0, (10..20).collect::<Vec<_>>());
    let start = meta().clock.start_monotonic_ns as i64;
    let now = crate::clock::monotonic_ns() as i64 - start;
    match covers(&bench.path("x.dump-0001.arrows")) {
        Covers::From(from) => assert!(
            from > now - 5_000_000_000 && from <= now - 300_000_000,
            "{from} of {now}"
        ),
        other => panic!("{other:?}"),
    }
}

fn covers(path: &Path) -> Covers {
    Reader::open(path).unwrap().covers()
}

#[test]
fn a_file_says_from_when_on_it_has_everything() {
    let mut whole = bench(Keeping::Whole, None);
    let mut dump = bench(ring(HOUR, 1 << 20), None);
    let mut parts = bench(Keeping::Parts(Rotate::Bytes(1)), None);
    for bench in [&mut whole, &mut dump, &mut parts] {
        (0..3).for_each(|batch| bench.batch(batch * 10, 10));
        bench.end();
    }
    assert_eq!(covers(&whole.path("x.arrows")), Covers::All);
    assert_eq!(covers(&dump.path("x.dump-0001.arrows")), Covers::From(0));
    assert_eq!(covers(&parts.path("x.0001.arrows")), Covers::From(0));
    assert!(matches!(covers(&parts.path("x.0002.arrows")), Covers::From(from) if from > 0));
    assert_eq!(covers(&parts.path("x.arrows")), Covers::All);
}

#[test]
fn a_disk_that_is_full_is_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = bench_at(folder, PathBuf::from("/dev/full"), Keeping::Whole, None);
    bench.batch(0, 10);
    let said = bench.output.check().unwrap_err().to_string();
    assert!(
        said.starts_with("failed to write /dev/full: No space left on device"),
        "{said}"
    );
    assert!(said.contains("hint: free some space"), "{said}");
}

#[test]
fn a_file_says_which_piece_it_is() {
    let schema = crate::trace::schema::schema(&meta());
    for piece in [Piece::Whole, Piece::Part, Piece::Dump] {
        let of = crate::trace::schema::of_piece(&schema, piece, None);
        assert_eq!(crate::trace::schema::piece(&of), piece);
    }
    assert_eq!(crate::trace::schema::piece(&schema), Piece::Whole);
}

#[test]
fn parts_have_snapshots_of_the_whole_trace_and_all_of_them_the_last() {
    let mut bench = bench(Keeping::Parts(Rotate::Time(Duration::ZERO)), None);
    for at in 0..3 {
        let mut bytes = Vec::new();
        let totals = Record {
            args: Some("{}"),
            ..Record::new(Kind::Snapshot, at * 10, 0)
        };
        bench.recorder.push(&totals, &mut bytes);
        bench.output.write(&bytes);
        bench.batch(at * 10 + 1, 4);
    }
    let latest = |name: &str| {
        bench
            .read(name)
            .1
            .snapshot
            .map(|one| (one.at, one.rows_after, one.whole))
    };
    assert_eq!(latest("x.0002.arrows"), Some((10, Some(4), false)));
    assert_eq!(latest("x.arrows"), Some((20, Some(4), true)));
}
