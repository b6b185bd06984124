//! The landing page in a real browser.

use super::exporter::Exporter;
use super::workload::Workloads;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

fn browse(profile: &TempDir, arguments: &[&str]) -> Output {
    let is_there = |name: &&&str| {
        Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .status()
            .is_ok()
    };
    let browser = BROWSERS
        .iter()
        .find(is_there)
        .expect("chromium: scripts/setup.sh test installs it");
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    output.expect("a browser starts")
}

#[test]
#[ignore = "needs root, BPF and chromium"]
fn a_browser_shows_what_is_seen_and_what_not() {
    let exporter = Exporter::start(&[]);
    let workloads = Workloads::of(&exporter);
    workloads.until_seen_whole(&exporter);
    let profile = tempfile::tempdir().expect("a folder");
    let url = format!("http://{}/", exporter.address());
    let page = browse(&profile, &["--dump-dom", &url]);
    let page = String::from_utf8_lossy(&page.stdout).into_owned();
    for fact in [
        "gpuscope",
        env!("CARGO_PKG_VERSION"),
        "href=\"/metrics\"",
        "ready",
        "Functions with probes",
        "Collectors",
    ] {
        assert!(page.contains(fact), "{fact}:\n{page}");
    }
    assert!(!page.contains("src=\"http"), "it needs nobody else:\n{page}");
    let picture = exporter.folder().join("page.png");
    let screenshot = format!("--screenshot={}", picture.display());
    let said = browse(&profile, &[&screenshot, "--window-size=900,1200", &url]);
    let bytes = std::fs::read(&picture).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    assert!(
        bytes.starts_with(b"\x89PNG") && bytes.len() > 10_000,
        "{} bytes",
        bytes.len()
    );
    if let Some(folder) = std::env::var_os("GPUSCOPE_PICTURES") {
        std::fs::copy(&picture, std::path::Path::new(&folder).join("landing-page.png")).expect("a copy");
    }
}
