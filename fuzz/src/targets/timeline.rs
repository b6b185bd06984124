//! Rows that a recording may hold, whatever they say, as a picture in the terminal.

use crate::{is_harmless, rows};
use gpuscope::filter::Filter;
use gpuscope::record::Taker;
use gpuscope::timeline::{Bins, Look, Survey, Window, draw};
use std::sync::LazyLock;

static ALL: LazyLock<Filter> = LazyLock::new(|| Filter::parse(&[], &[]).expect("no rules"));

pub fn run(input: &[u8]) {
    let Some((&[first, lanes, width], bytes)) = input.split_first_chunk() else {
        return;
    };
    let limits = Window {
        from: if first & 1 == 0 { i64::MIN } else { 1000 },
        to: if first & 2 == 0 { i64::MAX } else { 1 << 30 },
    };
    let meta = rows::meta(first);
    let mut survey = Survey::new(&ALL, limits);
    survey.start(&meta);
    rows::give(bytes, &mut survey);
    let Some(window) = survey.window() else { return };
    let look = Look {
        width: usize::from(width),
        colour: false,
    };
    let lanes = survey.busiest(usize::from(lanes) % 32 + 1);
    let mut bins = Bins::new(&ALL, window, look.columns(), &lanes);
    bins.start(&meta);
    rows::give(bytes, &mut bins);
    is_harmless(&draw::draw("x", &survey, &bins, look));
}
