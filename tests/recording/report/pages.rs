//! The page in a browser: it is quiet, asks nobody, can be sorted, and obeys no text of a trace.

use super::fixture::Loop;
use super::support::browser::Browser;
use gpuscope::model::finding::{Finding, Moment};
use gpuscope::model::work::Certainty;
use gpuscope::part::Part;
use gpuscope::record::{Kind, Record};
use gpuscope::report::{Report, html, load, markdown, text};
use gpuscope::trace::Files;
use serde_json::json;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=\"document.title='owned'\">'\"&\u{1b}[2J`|";

fn finding() -> Finding {
    Finding {
        title: "Memory is given back and taken again".to_owned(),
        rule: "alloc-churn",
        what: "10 allocations of 256.0 MiB are made and freed again, 103 times a second".to_owned(),
        cost_ns: 20_000_000,
        grave: false,
        certainty: Certainty::Measured,
        count: 20,
        moments: vec![Moment {
            at: 4_000_000,
            ns: 900_000,
            pid: 4711,
            tid: 4711,
            name: "cudaMalloc".to_owned(),
        }],
        site: Some(
            r#"[{"function":"make_batch","file":"/home/me/train.py","line":23,"language":"python"}]"#.to_owned(),
        ),
        cure: "allocate once before the loop, or use a caching allocator".to_owned(),
        thresholds: "more than 10 a second or 1 % of the time".to_owned(),
        weakened: None,
        places: Vec::new(),
    }
}

/// A recording in which every name is hostile, and a report of it.
fn hostile() -> (TempDir, Report) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bytes = Vec::new();
    let mut made = Loop::new(&mut bytes);
    (0..20).for_each(|step| made.step(step, 30, step % 2 == 0));
    let stack = json!([{"function": HOSTILE, "module": HOSTILE, "file": HOSTILE, "line": 1, "language": "python"}]);
    let args = json!({ HOSTILE: HOSTILE }).to_string();
    let stack = stack.to_string();
    for class in gpuscope::catalog::Class::ALL {
        for layer in ["driver", HOSTILE] {
            made.push(&Record {
                ns: Some(200_000_000),
                comm: HOSTILE,
                layer,
                name: HOSTILE,
                class: *class,
                result: Some(1),
                error: Some(HOSTILE),
                failed: *class == gpuscope::catalog::Class::Other,
                bytes: Some(1),
                held: Some(u64::MAX),
                kernel: Some(HOSTILE),
                stack: Some(&stack),
                args: Some(&args),
                ..Record::new(Kind::Call, 1_000_000, 4711)
            });
        }
    }
    let xid = json!({"name": HOSTILE, "comm": HOSTILE, "meaning": HOSTILE}).to_string();
    let lost = Record {
        name: HOSTILE,
        ns: Some(1),
        ..Record::new(Kind::Lost, 5, 0)
    };
    made.push(&lost);
    made.push(&Record {
        args: Some(&xid),
        ..Record::new(Kind::Xid, 6, 0)
    });
    let summary = json!({"unseen": [HOSTILE], "kernels": [], "functions": []}).to_string();
    made.end(Some(&summary));
    let path = folder.path().join("trace.arrows");
    std::fs::write(&path, bytes).expect("a file");
    let mut report = load(&Files::open(&path).expect("a file"), &Part::All, &mut |_, _| {}).expect("a report");
    let bad = || HOSTILE.to_owned();
    report.findings = vec![
        finding(),
        Finding {
            title: bad(),
            what: bad(),
            cure: bad(),
            thresholds: bad(),
            weakened: Some(bad()),
            site: Some(stack),
            ..finding()
        },
    ];
    (folder, report)
}

/// A page as a file, and where it is.
fn filed(folder: &Path, page: &str) -> (PathBuf, String) {
    let path = folder.join("report.html");
    std::fs::write(&path, page).expect("a file");
    let url = format!("file://{}", path.display());
    (path, url)
}

#[test]
fn nothing_in_a_trace_is_obeyed() {
    let (_folder, report) = hostile();
    let page = html::page(&report);
    assert!(
        !page.contains("<img") && !page.contains("onerror=\""),
        "markup of a name is in the page"
    );
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!text::page(&report, false, None).contains('\u{1b}'));
    let markdown = markdown::page(&report);
    let loose = markdown
        .lines()
        .filter(|line| line.contains("<img") && !line.contains('`'));
    assert_eq!(loose.count(), 0, "{markdown}");
}

#[test]
#[ignore = "needs root, BPF and chromium"]
fn a_page_is_quiet_and_asks_nobody() {
    let (folder, report) = hostile();
    let (_, url) = filed(folder.path(), &html::page(&report));
    let mut browser = Browser::start();
    browser.look(1280, false);
    browser.open(&url);
    assert_eq!(browser.value("document.title === 'owned'"), json!(false));
    assert_eq!(browser.value("document.images.length"), json!(0));
    assert_eq!(browser.value("document.scripts.length"), json!(1));
    assert_eq!(browser.value("document.querySelectorAll('.finding').length"), json!(2));
    let wide = "document.documentElement.scrollWidth <= innerWidth";
    assert_eq!(browser.value(wide), json!(true), "it scrolls sideways");
    let light = browser.value("getComputedStyle(document.body).backgroundColor");
    browser.look(390, true);
    let widest = "[...document.querySelectorAll('main *, header *')].filter(one => !one.closest('.scroll, nav') &&
        one.getBoundingClientRect().right > innerWidth).map(one => one.outerHTML.slice(0, 200))";
    assert_eq!(browser.value(widest), json!([]), "it scrolls sideways on a telephone");
    assert_eq!(browser.value(wide), json!(true));
    assert_ne!(browser.value("getComputedStyle(document.body).backgroundColor"), light);
    browser.value("document.getElementById('theme').click()");
    assert_eq!(browser.value("getComputedStyle(document.body).backgroundColor"), light);
    keep_pictures(&mut browser);
    let complaints = browser.complaints();
    assert!(complaints.is_empty(), "{complaints:?}");
    let requests = browser.requests(&url);
    assert!(requests.is_empty(), "{requests:?}");
}

#[test]
#[ignore = "needs root, BPF and chromium"]
fn plots_have_points_and_tables_sort() {
    let (folder, report) = hostile();
    let (_, url) = filed(folder.path(), &html::page(&report));
    let mut browser = Browser::start();
    browser.look(1280, false);
    browser.open(&url);
    for plot in ["memory", "launches", "copies", "waits"] {
        let length = format!("document.querySelector('#plot-{plot} .line').getTotalLength()");
        assert!(
            browser.value(&length).as_f64().is_some_and(|length| length > 100.0),
            "{plot}"
        );
    }
    assert!(
        browser
            .value("document.querySelectorAll('.strip rect').length")
            .as_u64()
            > Some(3)
    );
    assert!(
        browser
            .value("document.querySelectorAll('.histogram rect').length")
            .as_u64()
            > Some(3)
    );
    let totals =
        "[...document.querySelector('#functions table').tBodies[0].rows].map(row => Number(row.cells[2].dataset.v))";
    let click = "document.querySelector('#functions th:nth-child(3) button').click()";
    for order in [|a: f64, b: f64| a >= b, |a: f64, b: f64| a <= b] {
        browser.value(click);
        let calls: Vec<f64> = serde_json::from_value(browser.value(totals)).expect("numbers");
        assert!(
            calls.len() > 2 && calls.windows(2).all(|pair| order(pair[0], pair[1])),
            "{calls:?}"
        );
    }
    let point = "(() => { const area = document.querySelector('#plot-launches .area'); const box = area.getBoundingClientRect();
        area.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width / 3, clientY: box.top + 5}));
        return document.getElementById('tip').textContent; })()";
    let tip = browser.value(point).as_str().unwrap_or_default().to_owned();
    assert!(tip.starts_with("at ") && tip.ends_with("/s"), "{tip}");
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

#[test]
#[ignore = "needs root, BPF and chromium"]
fn a_flame_graph_is_zoomed_searched_and_walked_by_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bytes = Vec::new();
    let mut made = Loop::new(&mut bytes);
    (0..20).for_each(|step| made.step(step, 30, true));
    made.end(None);
    let path = folder.path().join("trace.arrows");
    std::fs::write(&path, bytes).expect("a file");
    let (_, url) = filed(
        folder.path(),
        &html::page(&load(&Files::open(&path).expect("a file"), &Part::All, &mut |_, _| {}).expect("a report")),
    );
    let mut browser = Browser::start();
    browser.look(1280, false);
    browser.open(&url);
    let mut is = |expression: &str, expected: serde_json::Value| {
        assert_eq!(browser.value(expression), expected, "{expression}");
    };
    is(
        "(window.all = () => [...document.querySelectorAll('#flame-wait .f')]).call().length",
        json!(6),
    );
    is("all().at(-1).textContent", json!("cuStreamSynchronize"));
    is("document.querySelector('#flame-wait details').open", json!(false));
    is(
        "(window.key = key => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true})))
        && all()[0].focus()",
        json!(null),
    );
    is("['ArrowDown', 'ArrowDown', 'ArrowDown'].map(key).length", json!(3));
    is("document.activeElement.textContent", json!("train.py:80 <module>"));
    is(
        "key('Enter') || all().filter(one => one.matches('.outer')).length",
        json!(3),
    );
    is(
        "key('Escape') || all().filter(one => one.matches('.outer')).length",
        json!(0),
    );
    is(
        "(input => { input.value = 'loss'; input.dispatchEvent(new Event('input')); })
        (document.querySelector('#flame-wait input'))",
        json!(null),
    );
    is(
        "all().filter(one => one.matches('.hit')).map(one => one.textContent)",
        json!(["train.py:50 loss_item"]),
    );
    is(
        "document.querySelector('#flame-wait output').textContent.startsWith('100.0 % (')",
        json!(true),
    );
}

/// For whoever wants to look: `GPUSCOPE_PICTURES=FOLDER`.
fn keep_pictures(browser: &mut Browser) {
    let Some(folder) = std::env::var_os("GPUSCOPE_PICTURES") else {
        return;
    };
    use base64::Engine;
    for (width, dark) in [(1280, false), (1280, true), (390, false), (390, true)] {
        browser.value("delete document.documentElement.dataset.theme");
        browser.look(width, dark);
        let bytes = base64::engine::general_purpose::STANDARD.decode(browser.picture());
        let name = format!("report-{width}-{}.png", if dark { "dark" } else { "light" });
        std::fs::write(Path::new(&folder).join(name), bytes.expect("base64")).expect("a picture");
    }
}
