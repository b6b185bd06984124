//! Perfetto's own page in a browser: it opens what was exported, and shows it.

use super::made::Made;
use super::processor::{Found, QUESTIONS};
use super::support::browser::Browser;
use super::web::served;
use super::{exported, folder_with, seen_of};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Of a page that compiles 11 MB of WebAssembly on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
const DIALOG: &str = "document.querySelector('.pf-modal-dialog, .modal-dialog')?.innerText ?? null";
const TITLES: &str = "[...document.querySelectorAll('.pf-track__title-popup')].map(one => one.textContent)";
/// As a user opens processes; gives how many there are.
const OPEN_PROCESSES: &str = "[...document.querySelectorAll('.pf-track__title')]
    .filter(one => one.innerText.startsWith('made')).map(one => one.click()).length";

/// Tracks, with both processes open.
const SHOWN: [&str; 16] = [
    "GPU idle (nothing submitted can be running)",
    "Global Track Events",
    "System",
    "calls that are only counted",
    "copy bandwidth",
    "copy.bytes",
    "default stream (submitted)",
    "made 100",
    "made 200",
    r#"made \u{1b}[2J"<b> 101"#,
    r#"made \u{1b}[2J"<b> 200"#,
    r#"made \u{1b}[2J"<b> 201"#,
    "memory.held",
    "process",
    "steps (inferred)",
    "stream 0x5500 (submitted)",
];

/// Opens a trace. `Err`: what a dialog says instead.
fn opened(trace: &Path) -> Result<Browser, String> {
    let mut browser = Browser::start();
    browser.look(1600, false);
    browser.open(&served(trace));
    let start = Instant::now();
    loop {
        if let Some(words) = browser.value(DIALOG).as_str() {
            return Err(words.to_owned());
        }
        if browser.value("Boolean(globalThis.app?.trace)") == json!(true) {
            browser.value("waitForPerfettoIdle()");
            return Ok(browser);
        }
        assert!(start.elapsed() < PATIENCE, "the page opens nothing");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What the page's own engine answers.
fn found(browser: &mut Browser) -> Found {
    let rows = |question: &&str| {
        let asked = format!(
            "(async () => {{
                const answer = await app.trace.engine.query({});
                const plain = cell => typeof cell === 'bigint' ? Number(cell) : cell;
                const rows = [];
                for (const row = answer.iter({{}}); row.valid(); row.next())
                    rows.push(answer.columns().map(column => plain(row.get(column))));
                return rows;
            }})()",
            json!(question)
        );
        serde_json::from_value(browser.value(&asked)).expect("rows")
    };
    Found::of(QUESTIONS.iter().map(rows).collect())
}

#[test]
#[ignore = "needs chromium and target/tools"]
fn perfettos_page_shows_the_trace() {
    let made = Made::trace(200);
    let (_folder, recording) = folder_with(&made.recording("node-7"));
    let mut browser = opened(&exported(&recording, "t.pftrace").0).expect("no dialog");
    assert_eq!(found(&mut browser), seen_of(&made));
    assert_eq!(browser.value(OPEN_PROCESSES), json!(2));
    browser.value("waitForPerfettoIdle()");
    let titles: BTreeSet<String> = serde_json::from_value(browser.value(TITLES)).expect("titles");
    assert_eq!(titles, SHOWN.map(str::to_owned).into());
}

#[test]
#[ignore = "needs chromium and target/tools"]
fn perfettos_page_shows_less_of_half_a_trace_and_refuses_what_is_none() {
    let made = Made::trace(200);
    let (_folder, recording) = folder_with(&made.recording("node-7"));
    let (path, _) = exported(&recording, "t.pftrace");
    let whole = std::fs::read(&path).expect("a trace");
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("a file");
    let less = opened(&path).map(|mut browser| found(&mut browser));
    assert!(
        less.as_ref().is_ok_and(|found| found.slices < seen_of(&made).slices),
        "{less:?}"
    );
    std::fs::write(&path, whole.iter().map(|byte| !byte).collect::<Vec<u8>>()).expect("a file");
    let refused = opened(&path).err().unwrap_or_default();
    assert!(refused.contains("Cannot open this file"), "{refused}");
}
