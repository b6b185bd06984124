//! Rows and totals that a recording may hold, whatever they say, in another format; of JSON lines what is read again.

use crate::{World, is_harmless, rows};
use gpuscope::export::csv::Csv;
use gpuscope::export::paths::{ByPath, Profile, collapsed::Collapsed, pprof::Pprof, speedscope::Speedscope};
use gpuscope::export::{Writing, chrome, perfetto};
use gpuscope::paths::Weight;
use gpuscope::record::{Encoder, Ending, Record, Taker};
use gpuscope::sink::json::Json;
use gpuscope::trace::lines::Lines;

struct Rows(u64);

impl Taker for Rows {
    fn take(&mut self, _: &Record<'_>) {
        self.0 += 1;
    }
}

fn written(encoder: impl Encoder, first: u8, summary: &str, bytes: &[u8]) -> Vec<u8> {
    tried(encoder, first, summary, bytes).expect("memory takes all")
}

/// `None`: there is nothing of what is weighed.
fn by_path(profile: impl Profile, first: u8, summary: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let weight = if first & 32 == 0 { Weight::Gpu } else { Weight::Wait };
    tried(ByPath::new(profile, weight), first, summary, bytes).ok()
}

fn tried(encoder: impl Encoder, first: u8, summary: &str, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut writing = Writing::new(encoder, &mut out);
    writing.start(&rows::meta(first));
    rows::give(bytes, &mut writing);
    let ending = Ending {
        summary: (!summary.is_empty()).then_some(summary),
        cut: (first & 64 != 0).then_some("why"),
    };
    writing.end(&ending)?;
    Ok(out)
}

fn is_text(bytes: &[u8]) {
    is_harmless(std::str::from_utf8(bytes).expect("UTF-8"));
}

pub fn run(input: &[u8]) {
    let Some((first, summary, bytes)) = rows::split(input) else {
        return;
    };
    match first % 8 {
        0 => {
            let lines = written(
                Json::default().with_names(&World::shared().catalog),
                first,
                summary,
                bytes,
            );
            is_text(&lines);
            let mut rows = Rows(0);
            Lines::new(&lines[..]).expect("lines").read(&mut rows);
            assert!(rows.0 <= (bytes.len() / rows::ROW) as u64);
        }
        1 => is_text(&written(Csv::default(), first, summary, bytes)),
        2 => {
            let page = written(chrome::encoder(), first, summary, bytes);
            serde_json::from_slice::<serde_json::Value>(&page).expect("JSON");
        }
        4 => by_path(Collapsed, first, summary, bytes)
            .iter()
            .for_each(|lines| is_text(lines)),
        5 => by_path(Speedscope, first, summary, bytes).iter().for_each(|file| {
            is_text(file);
            serde_json::from_slice::<serde_json::Value>(file).expect("JSON");
        }),
        6 => drop(by_path(Pprof, first, summary, bytes)),
        _ => drop(written(perfetto::encoder(), first, summary, bytes)),
    }
}
