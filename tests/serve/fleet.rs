//! `gpuscope fleet` of a week that never was: what was planted in it comes first, and sums are those of the plan.

use super::prometheus::{Prometheus, tool};
use super::support::asked_store;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Counters are looked at each 120 s, and extrapolated by half of that at the end of a job of three hours or more.
const ROUNDING: f64 = 0.006;

fn fleet(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gpuscope"))
        .arg("fleet")
        .args(arguments)
        .output()
        .expect("gpuscope runs")
}

fn succeeded(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The data of the week in a Prometheus, and its plan.
fn week() -> (Prometheus, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/simulate_week.py");
    let made = Command::new(script).arg(folder.path()).status().expect("python3");
    assert!(made.success());
    let blocks = Command::new(tool("promtool"))
        .args([
            "tsdb",
            "create-blocks-from",
            "openmetrics",
            "--max-block-duration=24h",
            "--quiet",
            "week.om",
            "data",
        ])
        .current_dir(folder.path())
        .output()
        .expect("promtool");
    assert!(blocks.status.success(), "{}", String::from_utf8_lossy(&blocks.stderr));
    let plan = std::fs::read_to_string(folder.path().join("plan.json")).expect("a plan");
    (Prometheus::of_data(folder), serde_json::from_str(&plan).expect("JSON"))
}

/// Names and hours of a chapter of the report, largest first; what is nobody's has no name.
fn told<'a>(report: &'a Value, chapter: &str, name: &str) -> Vec<(&'a str, f64)> {
    let seconds = |group: &Value| {
        let idle = &group["idle_gpu_seconds"];
        idle["at_least"].as_f64().expect("a number") + idle["inferred"].as_f64().expect("a number")
    };
    let groups = report[chapter].as_array().expect("groups").iter();
    groups
        .map(|group| (group[name].as_str().unwrap_or_default(), seconds(group)))
        .collect()
}

fn same(what: &str, planned: f64, found: f64) {
    assert!(
        (planned - found).abs() <= ROUNDING * planned,
        "{what}: planned {planned}, told {found}"
    );
}

fn sums_are_those_of_the_plan(report: &Value, plan: &Value) {
    for (chapter, name) in [("users", "user"), ("jobs", "job"), ("programs", "program")] {
        let told = told(report, chapter, name);
        let planned = plan["waste"][name].as_object().expect("sums");
        assert_eq!(told.len(), planned.len(), "{chapter}");
        for (who, seconds) in told {
            same(who, planned[who].as_f64().expect("a number"), seconds);
        }
    }
    for (reason, seconds) in plan["waste"]["reason"].as_object().expect("sums") {
        let found = report["idle_by_reason"][reason]["at_least"].as_f64().expect("a number");
        same(reason, seconds.as_f64().expect("a number"), found);
    }
    let planned = plan["gpu_seconds"].as_f64().expect("a number");
    same(
        "devices' time",
        planned,
        report["gpu_seconds"].as_f64().expect("a number"),
    );
    same(
        "busy",
        planned / 2.0,
        report["gpu_busy_seconds"].as_f64().expect("a number"),
    );
}

fn the_worst_come_first(report: &Value, plan: &Value) {
    for (chapter, name) in [("users", "user"), ("jobs", "job"), ("programs", "program")] {
        assert_eq!(told(report, chapter, name)[0].0, plan["worst"][name], "{chapter}");
    }
    let reasons = &report["jobs"][0]["idle_by_reason"];
    let of = |reason: &str| reasons[reason]["at_least"].as_f64().expect("a number");
    assert!(of("host-bound") > 10.0 * of("memory"), "{reasons}");
}

fn the_pages_say_so(url: &str, plan: &Value) {
    let worst = |name: &str| plan["worst"][name].as_str().expect("a name").to_owned();
    let line = format!(
        "1. job {} of {} ({}), ≥ 99",
        worst("job"),
        worst("user"),
        worst("program")
    );
    for format in ["text", "markdown", "html"] {
        let page = succeeded(fleet(&["--prometheus", url, "--format", format]));
        let plain = page.replace(['\\', '\n'], "").replace("&#8203;", "");
        assert!(
            plain.contains(&line) && plain.contains("mostly host-bound"),
            "{format}: {page}"
        );
    }
    let of_user = succeeded(fleet(&["--prometheus", url, "--user", "emil", "--json"]));
    let report: Value = serde_json::from_str(&of_user).expect("JSON");
    assert_eq!(told(&report, "users", "user").len(), 1, "{of_user}");
    assert_eq!(told(&report, "jobs", "job")[0].0, "4712", "the notebook that was left");
}

fn the_dashboard_says_so(prometheus: &Prometheus, plan: &Value) {
    let over_the_week = |expression: &str| {
        let filled = expression
            .replace("$__range", "7d")
            .replace("=~\"$instance\"", "=~\".*\"");
        match filled.contains("$__rate_interval") {
            // a line, of which some moment has to have data
            true => format!("last_over_time(({})[7d:1h])", filled.replace("$__rate_interval", "10m")),
            false => filled,
        }
    };
    let panels = super::queries::expressions("fleet");
    assert!(panels.len() > 15);
    for (title, expression) in &panels {
        assert!(
            !prometheus.query(&over_the_week(expression)).is_empty(),
            "{title}: {expression}"
        );
    }
    let first = |title: &str| {
        let (_, expression) = panels.iter().find(|(name, _)| name == title).expect(title);
        prometheus.query(&over_the_week(expression)).remove(0).0
    };
    let worst = first("Programs and reasons");
    for (label, name) in [("user", "user"), ("batch_job", "job"), ("program", "program")] {
        assert_eq!(worst[label], plan["worst"][name], "{worst:?}");
    }
    assert_eq!(worst["reason"], "host-bound");
    assert_eq!(first("Users")["user"], plan["worst"]["user"]);
}

#[test]
#[ignore = "needs prometheus: scripts/fetch-tools.sh"]
fn who_wastes_most_this_week_and_why() {
    let (prometheus, plan) = week();
    let report = succeeded(fleet(&["--prometheus", &prometheus.url(), "--json"]));
    let report: Value = serde_json::from_str(&report).expect("JSON");
    sums_are_those_of_the_plan(&report, &plan);
    the_worst_come_first(&report, &plan);
    the_pages_say_so(&prometheus.url(), &plan);
    the_dashboard_says_so(&prometheus, &plan);
}

fn store(status: &'static str, body: &'static str) -> String {
    asked_store(status, body).0
}

fn refusal(url: &str) -> String {
    let output = fleet(&["--prometheus", url, "--timeout", "10s"]);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[test]
fn whoever_does_not_answer_as_prometheus_is_told_of_with_a_cure() {
    // a port that was free a moment ago may be another test's by now
    let nobody = "127.0.0.1:1";
    let nothing = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
    let too_much = r#"{"status":"error","errorType":"execution","error":"query timed out\u001b[2J"}"#;
    for (url, says, cure) in [
        (format!("http://{nobody}"), "failed to ask", "does Prometheus run there"),
        (
            store("200 OK", "<html>Grafana</html>"),
            "does not answer as Prometheus does (HTTP 200)",
            "before /api/v1",
        ),
        (store("404 Not Found", ""), "(HTTP 404)", "before /api/v1"),
        (store("401 Unauthorized", ""), "who asks (HTTP 401)", "--headers FILE"),
        (
            store("200 OK", nothing),
            "knows no gpuscope_build_info",
            "does it scrape gpuscope serve",
        ),
        (
            store("422 Unprocessable Entity", too_much),
            "it refuses: execution: query timed out\\u{1b}[2J",
            "--since 1d",
        ),
    ] {
        let said = refusal(&url);
        let hint = said.split("hint: ").nth(1).unwrap_or_default();
        assert!(said.contains(says) && hint.contains(cure), "{said}");
    }
}

#[test]
fn a_store_that_answers_in_part_is_told_of_on_the_page() {
    let partly = r#"{"status":"success","warnings":["2 stores are down"],"data":{"resultType":"vector","result":[{"metric":{"instance":"a"},"value":[1,"336"]}]}}"#;
    let page = succeeded(fleet(&["--prometheus", &store("200 OK", partly)]));
    assert!(page.contains("! the store says: 2 stores are down"), "{page}");
}

#[test]
fn headers_of_a_file_are_sent_and_a_wrong_line_is_told_of_without_its_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("headers");
    let path = file.to_str().expect("UTF-8");
    std::fs::write(&file, "Authorization: Bearer hunter2\n\nX-Scope-OrgID: a\n").expect("a file");
    let (url, asked) = asked_store("401 Unauthorized", "");
    fleet(&["--prometheus", &url, "--headers", path]);
    let asked = asked.recv().expect("a request").to_lowercase();
    assert!(asked.starts_with("post /api/v1/query "), "{asked}");
    assert!(
        asked.contains("authorization: bearer hunter2\r\n") && asked.contains("x-scope-orgid: a\r\n"),
        "{asked}"
    );
    std::fs::write(&file, "X: y\nhunter2\n").expect("a file");
    let said = String::from_utf8(fleet(&["--prometheus", &url, "--headers", path]).stderr).expect("UTF-8");
    assert!(
        said.contains("line 2 is no header\nhint: ") && !said.contains("hunter2"),
        "{said}"
    );
}

#[test]
fn a_password_in_the_address_is_in_no_message() {
    let said = refusal("http://reader:hunter2@127.0.0.1:1");
    assert!(
        said.contains("http://127.0.0.1:1") && !said.contains("hunter2"),
        "{said}"
    );
}
