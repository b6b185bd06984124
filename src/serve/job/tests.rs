use super::figures::Figures;
use super::*;
use crate::serve::exposition;
use crate::serve::fixture::owner;
use crate::serve::metric::{Sample, Value};
use crate::serve::metrics::work;
use proptest::prelude::*;

const NODE: &str = r#"# HELP gpuscope_gpu_idle_at_least_seconds_total x
gpuscope_gpu_idle_at_least_seconds_total{comm="python",batch_job="4711"} 5400
gpuscope_gpu_busy_at_most_seconds_total{comm="python",batch_job="4711"} 9000
gpuscope_gpu_busy_at_most_seconds_total{comm="python",batch_job="42"} 77
gpuscope_waste_gpu_seconds_total{reason="host-bound",certainty="bound",gpu="0",comm="python",batch_job="4711"} 3600
gpuscope_waste_gpu_seconds_total{reason="forgotten",certainty="inferred",gpu="1",comm="python",batch_job="4711"} 1800
gpuscope_waste_gpu_seconds_total{reason="reserved-unused",certainty="bound",gpu="1",slurm_job="4711",batch_job="4711"} 720
gpuscope_reserved_gpu_seconds_total{gpu="0",slurm_job="4711",batch_job="4711"} 10800
gpuscope_reserved_gpu_seconds_total{gpu="1",slurm_job="4711",batch_job="4711"} 10800
gpuscope_reserved_bound_gpu_seconds_total{gpu="0",slurm_job="4711",batch_job="4711"} 10800
gpuscope_reserved_bound_gpu_seconds_total{gpu="1",slurm_job="4711",batch_job="4711"} 10080
gpuscope_sync_blocked_seconds_total{function="cudaDeviceSynchronize",batch_job="4711"} 120.5
gpuscope_hidden_wait_seconds_total{kind="item",batch_job="4711"} 30
gpuscope_wait_site_seconds_total{wait="item",site="train.py:31 step",batch_job="4711"} 29
gpuscope_wait_site_seconds_total{wait="cuStreamSynchronize",site="train.py:31 step",batch_job="4711"} 28.5
gpuscope_wait_site_seconds_total{wait="cuStreamSynchronize",site="eval.py:7 <module>",batch_job="4711"} 90
gpuscope_wait_site_seconds_total{wait="cuStreamSynchronize",site="",batch_job="4711"} 3
gpuscope_open_call_seconds{function="cudaStreamSynchronize",batch_job="4711"} 1260.5
gpuscope_launches_total{batch_job="4711"} 1234567
gpuscope_copy_bytes_total{direction="HtoD",host_memory="pageable",batch_job="4711"} 1073741824
gpuscope_copy_bytes_total{direction="HtoD",host_memory="pinned",batch_job="4711"} 3221225472
gpuscope_api_errors_total{layer="runtime",function="cudaMalloc",error="cudaErrorMemoryAllocation",batch_job="4711"} 3
gpuscope_api_errors_total{layer="runtime",function="cudaEventQuery",error="cudaErrorNotReady",batch_job="4711"} 900
gpuscope_lost_records_total{reason="work_ring"} 12
gpuscope_budget_unseen_seconds_total{calls="queries"} 0
gpuscope_budget_unseen_seconds_total{calls="work"} 900
no series
"#;

fn of_job(job: &str) -> Wanted {
    Wanted {
        job: Some(job.to_owned()),
        ..Wanted::default()
    }
}

fn of_4711() -> (Figures, Wanted) {
    (figures(&[read(NODE)], &of_job("4711")), of_job("4711"))
}

#[test]
fn a_job_as_text() {
    let (figures, wanted) = of_4711();
    insta::assert_snapshot!(text(&figures, &wanted));
}

#[test]
fn a_job_as_markdown() {
    let (figures, wanted) = of_4711();
    insta::assert_snapshot!(markdown(&figures, &wanted));
}

#[test]
fn a_job_as_json() {
    let (figures, wanted) = of_4711();
    let report: serde_json::Value = serde_json::from_str(&json(&figures, &wanted)).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&report).unwrap());
}

/// The waste of a process is that of each of its GPUs.
#[test]
fn what_a_cure_saves_is_no_more_of_a_job_with_many_gpus() {
    let of = |gpu: u32, reason: &str, seconds: u32| {
        format!("gpuscope_waste_gpu_seconds_total{{reason=\"{reason}\",gpu=\"{gpu}\",batch_job=\"1\"}} {seconds}\n")
    };
    let mut text = "gpuscope_gpu_idle_at_least_seconds_total{batch_job=\"1\"} 100\n\
                    gpuscope_gpu_busy_at_most_seconds_total{batch_job=\"1\"} 300\n"
        .to_owned();
    for gpu in 0..8 {
        text += &[of(gpu, "host-bound", 60), of(gpu, "memory", 38), of(gpu, "unknown", 2)].concat();
    }
    text += &of(0, "reserved-unused", 9_000);
    let cures = cures::cures(&figures(&[read(&text)], &of_job("1")));
    let found: Vec<_> = cures
        .iter()
        .map(|cure| (cure.reason.name(), cure.seconds, cure.share_of_use))
        .collect();
    assert_eq!(
        found,
        [
            ("reserved-unused", 9_000.0, None),
            ("host-bound", 480.0, Some(0.15)),
            ("memory", 304.0, Some(0.095))
        ],
        "480 of 800 of 100 of 400"
    );
}

/// While it is not known which GPU a process has, its idle time has no reason.
#[test]
fn idle_time_of_gpus_that_are_not_known_yet_is_idle_time() {
    let text = "gpuscope_gpu_idle_at_least_seconds_total{batch_job=\"1\"} 17.5\n\
                gpuscope_gpu_busy_at_most_seconds_total{batch_job=\"1\"} 2.5\n\
                gpuscope_waste_gpu_seconds_total{reason=\"host-bound\",gpu=\"0\",batch_job=\"1\"} 7.5\n";
    let figures = figures(&[read(text)], &of_job("1"));
    assert_eq!((figures.unplaced_seconds(), figures.wasted_seconds()), (10.0, 17.5));
    assert_eq!(cures::cures(&figures)[0].share_of_use, Some(0.375), "7.5 of 20 s");
    let page = write::text(&figures, &of_job("1"));
    assert!(page.contains("not known yet") && page.contains("17.50 s"), "{page}");
}

#[test]
fn without_any_idle_time_there_is_none() {
    let page = json(&figures(&[read(NODE)], &of_job("1")), &of_job("1"));
    assert!(page.contains("\"wasted_gpu_seconds_at_least\":0.0"), "{page}");
}

#[test]
fn where_nobody_has_followed_streams_time_in_use_is_said_to_be_unknown() {
    let text = "gpuscope_launches_total{batch_job=\"1\"} 200\ngpuscope_lost_records_total{reason=\"call_ring\"} 5\n";
    let page = write::text(&figures(&[read(text)], &of_job("1")), &of_job("1"));
    assert!(
        page.contains("not known: exporters know that with the collector sync"),
        "{page}"
    );
    assert!(
        !page.contains("records that the exporters lost"),
        "those of --keep are no loss here: {page}"
    );
}

#[test]
fn what_somebody_else_has_answered_is_told_from_metrics() {
    assert!(read(NODE).is_gpuscopes());
    for text in ["", "<!doctype html>\n<p>log in</p>\n", "node_load1 0.5\n"] {
        assert!(!read(text).is_gpuscopes(), "{text}");
    }
}

#[test]
fn nodes_add_up_and_gpus_of_one_number_are_different_ones() {
    let nodes = [read(NODE), read(NODE), read("")];
    let figures = figures(&nodes, &of_job("4711"));
    assert_eq!((figures.nodes, figures.nodes_with_job), (3, 2));
    assert_eq!((figures.wasted_seconds(), figures.waste_by_gpu.len()), (12_240.0, 4));
}

#[test]
fn a_job_that_nobody_knows_is_said_to_be_unknown() {
    let wanted = of_job("1");
    let page = text(&figures(&[read(NODE)], &wanted), &wanted);
    assert!(
        page.contains("on 0 of 1 nodes") && page.contains("note: no exporter knows it"),
        "{page}"
    );
}

#[test]
fn without_lines_it_is_said_who_knows_them() {
    let none: String = NODE
        .lines()
        .filter(|line| !line.contains("wait_site"))
        .fold(String::new(), |text, line| text + line + "\n");
    let page = text(&figures(&[read(&none)], &of_job("4711")), &of_job("4711"));
    assert!(
        page.contains("--collect +sites") && !page.contains("waiting at"),
        "{page}"
    );
}

#[test]
fn all_labels_have_to_be_the_jobs() {
    let with = |labels: &[(&str, &str)]| {
        let labels = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let wanted = Wanted {
            labels: labels.collect(),
            ..Wanted::default()
        };
        figures(&[read(NODE)], &wanted).used_seconds()
    };
    assert_eq!(with(&[("comm", "python")]), 14_477.0);
    assert_eq!(with(&[("comm", "python"), ("batch_job", "42")]), 77.0);
    assert_eq!(with(&[("pod", "a")]), 0.0);
}

#[test]
fn what_the_exporter_writes_is_read_with_its_hostile_labels() {
    let hostile = "a\"b\\c\nd,e=\"} 1";
    let labels = vec!["host-bound".into(), "bound".into(), "0".into(), "".into(), "".into()];
    let sample = Sample::new(&work::WASTE_GPU_SECONDS, labels, Value::Number(7.5));
    let sample = sample.of(&owner(&[("pod", hostile)]));
    let metrics = read(&exposition::render(&[sample], exposition::Format::Plain));
    assert_eq!(metrics.series[0].label("pod"), Some(hostile));
    assert_eq!((metrics.series[0].value, metrics.not_understood), (7.5, 0));
}

proptest! {
    #[test]
    fn any_text_is_read_and_written_without_control_codes(text_of in ".{0,200}", value in ".{0,20}") {
        let line = format!("gpuscope_api_errors_total{{error={value:?},function=\"f\"}} 1\n{text_of}");
        let found = figures(&[read(&line)], &Wanted::default());
        let page = text(&found, &Wanted::default()) + &markdown(&found, &Wanted::default());
        prop_assert!(!page.chars().any(|c| c.is_control() && c != '\n'), "{page:?}");
    }
}
