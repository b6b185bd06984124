//! Rows, recorded and read again: they are the same.

use crate::rows;
use gpuscope::record::{Kind, Record, Taker};
use gpuscope::trace::{Reader, Recorder};

/// What is taken, as text: all fields of it.
#[derive(Default)]
struct Taken(Vec<String>);

impl Taker for Taken {
    fn take(&mut self, event: &Record<'_>) {
        if !matches!(event.kind, Kind::Snapshot | Kind::Summary) {
            self.0.push(format!("{event:?}"));
        }
    }
}

/// Records what it takes.
struct Recording<'a>(Recorder, &'a mut Vec<u8>);

impl Taker for Recording<'_> {
    fn take(&mut self, event: &Record<'_>) {
        self.0.push(event, self.1);
        if event.depth == 7 {
            self.0.flush(self.1);
        }
    }
}

pub fn run(input: &[u8]) {
    let Some((&first, bytes)) = input.split_first() else {
        return;
    };
    let (mut taken, mut out) = (Taken::default(), Vec::new());
    let meta = rows::meta(first);
    let recorder = Recorder::new(&meta).expect("a recorder");
    let mut recording = Recording(recorder, &mut out);
    rows::give(bytes, &mut recording);
    recording.0.end(&mut out);
    rows::give(bytes, &mut taken);
    let reader = Reader::new(&out[..]).expect("a recording");
    assert_eq!(*reader.meta(), meta);
    let mut again = Taken::default();
    reader.read(&mut again);
    assert_eq!(again.0, taken.0);
}
