//! Rows that a recording may hold, whatever they say, of which a part is asked for: its steps, or what lies within ranges.

use crate::rows;
use gpuscope::part::{Part, Within};
use gpuscope::record::{Record, Taker};
use gpuscope::steps::{Follower, Numbered, Spans};
use gpuscope::trace::End;

const GLOBS: [&str; 4] = ["*", "step*", "cu*", "no such range"];

struct Kept(u64);

impl Taker for Kept {
    fn take(&mut self, _: &Record<'_>) {
        self.0 += 1;
    }
}

/// How many rows are of this part.
fn kept(part: &Part, bytes: &[u8]) -> u64 {
    let mut kept = Kept(0);
    let end = part.through(&mut kept, |to| End {
        rows: rows::give(bytes, to),
        ..End::default()
    });
    assert_eq!(end.rows, kept.0);
    std::hint::black_box(part.words());
    kept.0
}

fn steps(bytes: &[u8]) -> Vec<Numbered> {
    let mut first = Follower::<Spans>::default();
    rows::give(bytes, &mut first);
    let followed = first.finish();
    let Some(anchors) = followed.again.clone() else {
        return followed.numbered();
    };
    let mut again = Follower::<Spans>::at(anchors);
    rows::give(bytes, &mut again);
    again.finish().numbered()
}

fn within_steps(bytes: &[u8]) {
    for numbered in steps(bytes) {
        numbered.hand(&mut Kept(0));
        let last = numbered.kept();
        assert!(numbered.part(0, last).is_none() && numbered.part(1, last + 1).is_none());
        let Some(part) = numbered.part(1, last) else { continue };
        kept(&Part::Steps(part), bytes);
    }
}

fn within_ranges(glob: &str, bytes: &[u8]) {
    let mut within = Within::of(glob);
    rows::give(bytes, &mut within);
    let Some(within) = within.whole() else { return };
    kept(&Part::Ranges(within), bytes);
}

pub fn run(input: &[u8]) {
    let Some((&first, bytes)) = input.split_first() else {
        return;
    };
    within_ranges(GLOBS[usize::from(first) % GLOBS.len()], bytes);
    within_steps(bytes);
    assert_eq!(kept(&Part::All, bytes), (bytes.len() / rows::ROW) as u64);
}
