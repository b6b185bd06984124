//! Markdown as GitHub renders it: `cmark-gfm` is the parser that it uses.

use super::{gpuscope, recorded};
use gpuscope::catalog::Class;
use gpuscope::record::{Kind, Record};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// With the extensions that GitHub has.
fn rendered(markdown: &str) -> String {
    let mut child = Command::new("cmark-gfm")
        .args([
            "--unsafe",
            "-e",
            "table",
            "-e",
            "strikethrough",
            "-e",
            "autolink",
            "-e",
            "tagfilter",
            "-e",
            "tasklist",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("cmark-gfm, which scripts/setup.sh test installs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(markdown.as_bytes()).expect("cmark-gfm reads");
    drop(stdin);
    let output = child.wait_with_output().expect("cmark-gfm ends");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn page(words: &[&str], files: &[&Path]) -> String {
    let output = gpuscope(words, files);
    rendered(&String::from_utf8(output.stdout).expect("UTF-8"))
}

fn tables(page: &str) -> usize {
    page.matches("<table>").count()
}

/// What is shown of a page where its markup is understood: no sign of markup is left over.
fn assert_no_markup_is_left(page: &str) {
    let shown: String = page
        .split('<')
        .filter_map(|part| part.split_once('>'))
        .map(|(_, text)| text)
        .collect();
    for sign in ["| ", " |", "**", "``", "\\_", "\\*", "---", "###"] {
        assert!(!shown.contains(sign), "{sign:?} is shown: {shown}");
    }
}

#[test]
#[ignore = "needs cmark-gfm"]
fn a_report_with_findings_has_all_its_tables() {
    let (_folder, path) = recorded(true, None, &[]);
    let page = page(&["report", "--md"], &[&path]);
    assert!(page.contains("<strong>Memory is given back"), "{page}");
    // totals, steps, two layers, slowest, kernels, copies, waits, idle, meanwhile, memory, its call sites, processes
    assert_eq!(tables(&page), 13, "{page}");
    assert!(page.contains("<td>launches</td>"), "{page}");
    assert_no_markup_is_left(&page);
}

#[test]
#[ignore = "needs cmark-gfm"]
fn names_that_look_like_markup_are_shown_as_they_are() {
    let call = |layer, name, error| Record {
        failed: true,
        error: Some(error),
        result: Some(2),
        layer,
        name,
        class: Class::Other,
        ns: Some(10_000_000),
        ..Record::new(Kind::Call, 5_000, 4711)
    };
    let odd = [
        call("my_lib_x", "a|b`c", ""),
        call("<b>lib</b>", "*x*", "`"),
        call("driver", "", "\\|x"),
    ];
    let (_folder, path) = recorded(false, None, &odd);
    let page = page(&["report", "--md"], &[&path]);
    // totals, steps, four layers, failures; slowest, kernels, copies, waits, idle, meanwhile, processes
    assert_eq!(tables(&page), 2 + 4 + 1 + 7, "{page}");
    assert!(page.contains("my_lib_x layer: 1 call"), "{page}");
    assert!(page.contains("&lt;b&gt;lib&lt;/b&gt; layer"), "{page}");
    assert!(page.contains("<code>*x*</code>"), "{page}");
    assert_no_markup_is_left(&page);
}

#[test]
#[ignore = "needs cmark-gfm"]
fn a_comparison_has_all_its_tables() {
    let summary = json!({"functions": [], "work": [], "kernels": []});
    let (_one, before) = recorded(true, Some(&summary), &[]);
    let (_other, after) = recorded(false, None, &[]);
    let page = page(&["diff", "--md"], &[&before, &after]);
    assert_eq!(tables(&page), 2, "{page}");
    assert!(page.contains("<strong>Memory is given back"), "{page}");
    assert_no_markup_is_left(&page);
}
