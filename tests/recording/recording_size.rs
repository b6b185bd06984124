//! A recording of a training loop takes little room. How its rows are made: `support/training.rs`.

#[path = "../support/training.rs"]
mod training;

use gpuscope::clock::Clock;
use gpuscope::record::Meta;
use gpuscope::trace::Recorder;
use training::Training;

const SECOND: i64 = 1_000_000_000;
const TARGET: f64 = 16.0;

fn meta() -> Meta {
    Meta {
        clock: Clock {
            start_monotonic_ns: 0,
            start_unix_ns: 0,
        },
        command: vec!["python3".to_owned(), "transformer.py".to_owned()],
        tier: "uprobe.session".to_owned(),
        host: "node-7".to_owned(),
        tool: "0.1.0".to_owned(),
    }
}

#[test]
fn a_training_loop_takes_at_most_sixteen_bytes_a_row() {
    let (rows, _) = Training::steps(400);
    let mut recorder = Recorder::new(&meta()).expect("a recorder");
    let (mut bytes, mut flushed) = (Vec::new(), 0);
    for row in &rows {
        recorder.push(&row.event(0), &mut bytes);
        if row.at() - flushed > SECOND {
            recorder.flush(&mut bytes);
            flushed = row.at();
        }
    }
    recorder.end(&mut bytes);
    let each = bytes.len() as f64 / rows.len() as f64;
    println!("{} rows of 400 steps: {each:.2} bytes each", rows.len());
    assert!(rows.len() > 150_000 && each <= TARGET, "{each:.2} bytes a row");
}
