use super::*;
use answer::Series;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

const HOUR: f64 = 3600.0;

fn span() -> Span {
    Span {
        since: Duration::from_secs(7 * 86_400),
        until_seconds: 1_763_798_400,
        user: None,
    }
}

fn series(labels: &[(&str, &str)], value: f64) -> Series {
    let labels = labels
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Series::new(labels.collect(), value)
}

type Answers = BTreeMap<Question, Answer>;

fn put(answers: &mut Answers, question: Question, labels: &[(&str, &str)], value: f64) {
    answers.entry(question).or_default().series.push(series(labels, value));
}

const ANNA: [(&str, &str); 4] = [
    ("user", "anna"),
    ("batch_job", "4711"),
    ("program", "train.py"),
    ("comm", "python"),
];
const EVAL: [(&str, &str); 4] = [
    ("user", "anna"),
    ("batch_job", "4711"),
    ("program", "eval.py"),
    ("comm", "python"),
];
const POD: [(&str, &str); 4] = [
    ("user", "bert"),
    ("namespace", "ml"),
    ("pod", "notebook-0"),
    ("comm", "ipykernel"),
];

fn wasted(answers: &mut Answers, who: &[(&str, &str)], reason: &str, certainty: &str, hours: f64) {
    let why = [("reason", reason), ("certainty", certainty)];
    put(answers, Question::Waste, &[who, &why].concat(), hours * HOUR);
    put(answers, Question::Reasons, &why, hours * HOUR);
}

/// Two nodes of 8 GPUs, one of which was not there for half of the time.
fn answers() -> Answers {
    let mut answers = Answers::new();
    let moments = span().moments() as f64;
    for (node, share, lost) in [("a:9748", 1.0, 0.0), ("b:9748", 0.5, 12.0)] {
        let instance = [("instance", node)];
        put(&mut answers, Question::Nodes, &instance, moments * share);
        put(&mut answers, Question::Gpus, &instance, moments * share * 8.0);
        put(&mut answers, Question::Bound, &instance, moments * share * 6.0);
        put(&mut answers, Question::Busy, &instance, moments * share * 4.0);
        put(&mut answers, Question::LostRecords, &instance, lost);
    }
    put(
        &mut answers,
        Question::Versions,
        &[("version", "0.1.0"), ("commit", "abc")],
        2.0,
    );
    put(&mut answers, Question::Drivers, &[("driver", "580.1")], 16.0);
    wasted(&mut answers, &ANNA, "host-bound", "bound", 90.0);
    wasted(&mut answers, &ANNA, "memory", "bound", 5.0);
    wasted(&mut answers, &EVAL, "memory", "bound", 10.0);
    wasted(&mut answers, &POD, "forgotten", "inferred", 60.0);
    for (who, idle, rest) in [(ANNA, 95.0, 105.0), (EVAL, 10.0, 10.0), (POD, 60.0, 0.0)] {
        put(&mut answers, Question::Idle, &who, idle * HOUR);
        put(&mut answers, Question::NotIdle, &who, rest * HOUR);
    }
    put(&mut answers, Question::HiddenWaits, &ANNA, 30.0 * HOUR);
    put(&mut answers, Question::PageableBytes, &ANNA, 1e12);
    answers
}

fn told() -> Figures {
    figures(&answers(), &span())
}

#[test]
fn a_week_as_text() {
    insta::assert_snapshot!(text(&told(), &span(), false, None));
}

#[test]
fn a_week_as_markdown() {
    insta::assert_snapshot!(markdown(&told(), &span()));
}

#[test]
fn a_week_as_json() {
    let report: serde_json::Value = serde_json::from_str(&json(&told(), &span())).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&report).unwrap());
}

#[test]
fn a_week_as_a_page_has_every_chapter_and_no_foreign_markup() {
    let mut answers = answers();
    wasted(&mut answers, &[("user", "<img src=x>")], "unknown", "bound", 1.0);
    let page = html(&figures(&answers, &span()), &span());
    for id in ["hours", "jobs", "users", "programs", "nodes"] {
        assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
    }
    assert!(page.contains("&lt;img src=x&gt;") && !page.contains("<img"));
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
}

#[test]
fn what_a_job_has_and_does_not_use_is_of_who_runs_it() {
    let mut answers = answers();
    wasted(
        &mut answers,
        &[("batch_job", "4711"), ("slurm_job", "4711")],
        "reserved-unused",
        "bound",
        7.0,
    );
    let told = figures(&answers, &span());
    let of = |groups: &[figures::Group], user: &str| -> f64 {
        let of_user = groups.iter().filter(|group| group.who.user == user);
        of_user.map(|group| group.idle().seconds() / HOUR).sum()
    };
    assert_eq!([of(&told.jobs, "anna"), of(&told.users, "anna")], [112.0; 2]);
    assert_eq!(told.jobs.len(), 2);
    // of two clusters that count alike
    wasted(
        &mut answers,
        &[("user", "dora"), ("batch_job", "4711")],
        "memory",
        "bound",
        1.0,
    );
    let told = figures(&answers, &span());
    assert_eq!([of(&told.jobs, "anna"), of(&told.jobs, "")], [105.0, 7.0]);
}

#[test]
fn what_is_asked() {
    let asked = Span {
        user: Some("a\"b\\".to_owned()),
        ..span()
    };
    let lines = Question::ALL
        .iter()
        .map(|question| format!("{question:?}: {}", question.expression(&asked)));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn however_long_the_time_gauges_are_looked_at_at_so_many_moments_at_most() {
    for (seconds, step, moments) in [
        (60, 60, 1),
        (3600, 300, 12),
        (7 * 86_400, 1800, 336),
        (30 * 86_400, 7715, 335),
    ] {
        let span = Span {
            since: Duration::from_secs(seconds),
            ..span()
        };
        assert_eq!((span.step_seconds(), span.moments()), (step, moments), "{seconds}");
    }
}

#[test]
fn a_jobs_sums_are_those_of_its_programs_and_a_pod_is_a_job_where_no_scheduler_is() {
    let figures = told();
    let jobs: Vec<_> = figures
        .jobs
        .iter()
        .map(|job| {
            (
                job.who.job.as_str(),
                job.who.program.as_str(),
                job.idle().seconds() / HOUR,
            )
        })
        .collect();
    assert_eq!(
        jobs,
        [("4711", "train.py", 105.0), ("ml/notebook-0", "ipykernel", 60.0)]
    );
    let sum = |groups: &[figures::Group]| groups.iter().map(|group| group.idle().seconds()).sum::<f64>();
    for groups in [&figures.users, &figures.jobs, &figures.programs] {
        assert_eq!(sum(groups), figures.idle().seconds());
    }
}

#[test]
fn what_a_store_lacks_is_said() {
    let mut answers = answers();
    let warnings = vec!["store 10.0.0.1 is down\u{1b}[2J".to_owned()];
    answers.get_mut(&Question::Waste).unwrap().warnings = warnings.clone();
    answers.get_mut(&Question::Idle).unwrap().warnings = warnings;
    let page = text(&figures(&answers, &span()), &span(), false, None);
    assert_eq!(
        page.matches("! the store says: store 10.0.0.1 is down\\u{1b}[2J")
            .count(),
        1,
        "{page}"
    );
}

#[test]
fn without_labels_idle_time_or_half_of_the_data_it_is_said() {
    let mut answers = Answers::new();
    put(&mut answers, Question::Nodes, &[("instance", "a")], 10.0);
    let page = text(&figures(&answers, &span()), &span(), false, None);
    assert!(
        page.contains("at most 3 % of that time") && page.contains("no idle time is counted"),
        "{page}"
    );
    wasted(&mut answers, &[("comm", "python")], "host-bound", "bound", 1.0);
    let page = text(&figures(&answers, &span()), &span(), false, None);
    assert!(page.contains("no series has the label user"), "{page}");
}

#[test]
fn what_is_beyond_the_largest_is_told_as_a_sum() {
    let mut answers = answers();
    for number in 0..question::MOST_SETS {
        put(
            &mut answers,
            Question::Waste,
            &[("user", &number.to_string()), ("reason", "memory")],
            HOUR,
        );
    }
    put(
        &mut answers,
        Question::Reasons,
        &[("reason", "memory")],
        (question::MOST_SETS as f64 + 7.0) * HOUR,
    );
    let figures = figures(&answers, &span());
    assert_eq!(figures.rest_seconds.round(), 7.0 * HOUR);
    assert!(text(&figures, &span(), false, None).contains("7.00 h are of others than the 5,000 largest"));
}

#[test]
fn answers_of_all_kinds_of_stores_are_read() {
    let vector = |more: &str| {
        format!(
            r#"{{"status":"success"{more},"data":{{"resultType":"vector","result":[{{"metric":{{"a":"b"}},"value":[1.5,"2"]}},{{"metric":{{}},"value":[1,"NaN"]}}]}}}}"#
        )
    };
    let read = |text: &str| answer::read(text.as_bytes());
    let plain = read(&vector("")).unwrap();
    assert_eq!(
        (plain.series, plain.warnings),
        (vec![series(&[("a", "b")], 2.0)], Vec::new())
    );
    assert_eq!(
        read(&vector(r#","warnings":["x"],"infos":["y"]"#)).unwrap().warnings,
        ["x"]
    );
    assert!(read(&vector(r#","isPartial":true,"stats":{}"#)).unwrap().warnings[0].contains("partial"));
    let refused = r#"{"status":"error","errorType":"execution","error":"too many samples"}"#;
    assert_eq!(
        read(refused),
        Err(Wrong::Refused("execution: too many samples".to_owned()))
    );
    let matrix = r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
    for other in ["", "<html>", "{}", "[]", matrix, r#"{"status":"success"}"#] {
        assert_eq!(read(other), Err(Wrong::NotPrometheus), "{other}");
    }
}

proptest! {
    #[test]
    fn whatever_is_answered_is_written_without_control_codes(name in ".{0,30}", value in -1e18..1e18f64, label in "user|batch_job|reason|instance|version|x") {
        let mut answers = answers();
        for question in Question::ALL {
            put(&mut answers, *question, &[(&label, &name)], value);
            answers.entry(*question).or_default().warnings.push(name.clone());
        }
        let figures = figures(&answers, &span());
        let page = text(&figures, &span(), false, None) + &markdown(&figures, &span()) + &json(&figures, &span());
        prop_assert!(!page.chars().any(|c| c.is_control() && c != '\n'), "{page:?}");
    }
}
