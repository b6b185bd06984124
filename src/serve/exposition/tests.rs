use super::*;
use crate::serve::fixture::{any_samples, of_every_metric, owner};
use crate::serve::metric::{Histogram, Kind, Metric, Value};
use crate::serve::metrics::{self, api, device, memory, own};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};

/// A line of the text, taken apart: name, labels, value.
type Line = (String, BTreeMap<String, String>, f64);

/// Reads both forms as their specifications say, and nothing laxer.
fn parsed(text: &str) -> Vec<Line> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(parsed_line).collect()
}

fn parsed_line(line: &str) -> Line {
    let name = line.find(['{', ' ']).unwrap();
    let (name, mut rest) = line.split_at(name);
    assert!(is_name(name), "{line}");
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, after) = rest.split_once("=\"").unwrap();
            assert!(is_name(label) && !label.starts_with("__"), "{line}");
            let (value, after) = unquoted(after);
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
            let separator = after.chars().next().unwrap();
            rest = &after[1..];
            match separator {
                ',' => {}
                '}' => break,
                other => panic!("{other} in {line}"),
            }
        }
    }
    (
        name.to_owned(),
        labels,
        rest.strip_prefix(' ').unwrap().parse().unwrap(),
    )
}

fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(match chars.next().unwrap().1 {
                'n' => '\n',
                quoted @ ('"' | '\\') => quoted,
                other => panic!("escaped {other}"),
            }),
            other => value.push(other),
        }
    }
    panic!("no end: {text}")
}

fn is_name(name: &str) -> bool {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    plain && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn counter(metric: &'static Metric, values: &[&'static str], number: u64) -> Sample {
    let values = values.iter().map(|value| (*value).into()).collect();
    Sample::new(metric, values, Value::Integer(number))
}

#[test]
fn a_counter_in_openmetrics_has_its_name_without_total_in_the_head() {
    let samples = [
        counter(&api::API_CALLS, &["driver", "launch"], 7).of(&owner(&[("comm", "train")])),
        counter(&own::BUILD_INFO, &["0.1.0", "abc", "false", "", "", ""], 1),
        Sample::new(&own::PROBE_SECONDS, vec![], Value::Number(0.5)),
    ];
    insta::assert_snapshot!(render(&samples, Format::OpenMetrics), @r#"
    # HELP gpuscope_api_calls Calls of CUDA functions that have ended; those of functions that only give something out are hooked with the collector getters alone
    # TYPE gpuscope_api_calls counter
    gpuscope_api_calls_total{layer="driver",class="launch",comm="train"} 7
    # HELP gpuscope_build This gpuscope
    # TYPE gpuscope_build info
    gpuscope_build_info{version="0.1.0",commit="abc",dirty="false"} 1
    # HELP gpuscope_probe_seconds Time that programs have spent in probes: hits times the cost of one, measured on this machine
    # TYPE gpuscope_probe_seconds counter
    # UNIT gpuscope_probe_seconds seconds
    gpuscope_probe_seconds_total 0.5
    # EOF
    "#);
}

#[test]
fn the_plain_text_has_full_names_and_knows_no_info() {
    let samples = [
        counter(&api::API_CALLS, &["driver", ""], 7).of(&owner(&[("comm", "# TYPE x\n# HELP y")])),
        counter(&own::BUILD_INFO, &["0.1.0", "abc", "false", "", "", ""], 1),
    ];
    insta::assert_snapshot!(render(&samples, Format::Plain), @r##"
    # HELP gpuscope_api_calls_total Calls of CUDA functions that have ended; those of functions that only give something out are hooked with the collector getters alone
    # TYPE gpuscope_api_calls_total counter
    gpuscope_api_calls_total{layer="driver",comm="# TYPE x\n# HELP y"} 7
    # HELP gpuscope_build_info This gpuscope
    # TYPE gpuscope_build_info gauge
    gpuscope_build_info{version="0.1.0",commit="abc",dirty="false"} 1
    "##);
}

#[test]
fn buckets_are_cumulative_and_end_with_all() {
    let histogram = Histogram {
        sum: 2.5,
        count: 10,
        buckets: vec![(0.001, 2), (0.5, 3)],
    };
    let sample = Sample::new(
        &api::API_DURATION_SECONDS,
        vec!["driver".into(), "copy".into()],
        Value::Histogram(histogram),
    );
    insta::assert_snapshot!(render(&[sample], Format::Plain), @r#"
    # HELP gpuscope_api_duration_seconds Time from entry to return of each call; calls of getters that are only counted are not in it
    # TYPE gpuscope_api_duration_seconds histogram
    gpuscope_api_duration_seconds_bucket{layer="driver",class="copy",le="0.001"} 2
    gpuscope_api_duration_seconds_bucket{layer="driver",class="copy",le="0.5"} 5
    gpuscope_api_duration_seconds_bucket{layer="driver",class="copy",le="+Inf"} 10
    gpuscope_api_duration_seconds_sum{layer="driver",class="copy"} 2.5
    gpuscope_api_duration_seconds_count{layer="driver",class="copy"} 10
    "#);
}

#[test]
fn nothing_known_is_a_valid_text() {
    assert_eq!(render(&[], Format::OpenMetrics), "# EOF\n");
    assert_eq!(render(&[], Format::Plain), "");
}

#[test]
fn an_owners_label_that_a_metric_uses_is_renamed_everywhere() {
    let owner = owner(&[
        ("class", "A"),
        ("le", "1"),
        ("9-lives", "9"),
        ("__name__", "x"),
        ("none", ""),
    ]);
    let samples = [
        counter(&api::API_CALLS, &["driver", "launch"], 1).of(&owner),
        counter(&memory::MEMORY_UNRETURNED_BYTES, &[], 1).of(&owner),
    ];
    let lines = parsed(&render(&samples, Format::Plain));
    let owners = [
        ("_9_lives", "9"),
        ("_name__", "x"),
        ("exported_class", "A"),
        ("exported_le", "1"),
    ];
    let owners: BTreeMap<String, String> = owners.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    assert_eq!(lines[1].1, owners);
    assert_eq!(lines[0].1["class"], "launch");
    assert!(
        owners
            .iter()
            .all(|label| lines[0].1.get_key_value(label.0) == Some(label))
    );
}

#[test]
fn names_that_become_alike_are_told_apart() {
    let owner = owner(&[("a-b", "1"), ("a.b", "2"), ("a_b", "3")]);
    let text = render(
        &[counter(&memory::MEMORY_UNRETURNED_BYTES, &[], 1).of(&owner)],
        Format::Plain,
    );
    assert!(
        text.ends_with("{a_b=\"1\",exported_a_b=\"2\",exported_exported_a_b=\"3\"} 1\n"),
        "{text}"
    );
}

#[test]
fn control_codes_are_shown_as_such_and_lines_stay_lines() {
    let owner = owner(&[("comm", "a\0b\u{1b}[31m\r\n\"\\\u{85}é")]);
    let text = render(
        &[counter(&memory::MEMORY_UNRETURNED_BYTES, &[], 1).of(&owner)],
        Format::OpenMetrics,
    );
    let shown = "a\u{fffd}b\u{fffd}[31m\u{fffd}\n\"\\\u{fffd}é";
    assert_eq!(parsed(&text)[0].1["comm"], shown);
    assert!(text.contains(r#"\n\"\\"#), "{text}");
}

#[test]
fn doubles_of_counters_are_added_and_of_gauges_the_last_stays() {
    let (one, same) = (owner(&[("comm", "a\u{1}")]), owner(&[("comm", "a\u{2}")]));
    let gpu = || vec!["0".into(), "GPU-1".into(), "00000000:01:00.0".into()];
    let samples = [
        counter(&memory::MEMORY_UNRETURNED_BYTES, &[], 1).of(&one),
        Sample::new(&device::GPU_POWER_WATTS, gpu(), Value::Number(70.0)),
        counter(&memory::MEMORY_UNRETURNED_BYTES, &[], u64::MAX).of(&same),
        Sample::new(&device::GPU_POWER_WATTS, gpu(), Value::Number(80.5)),
    ];
    let lines = parsed(&render(&samples, Format::Plain));
    let values: Vec<f64> = lines.iter().map(|line| line.2).collect();
    #[allow(clippy::cast_precision_loss)]
    let most = u64::MAX as f64;
    assert_eq!(values, [most, 80.5]);
}

#[test]
fn doubles_of_histograms_are_added_by_edge() {
    let of = |buckets: &[(f64, u64)], count| {
        let histogram = Histogram {
            sum: 1.0,
            count,
            buckets: buckets.to_vec(),
        };
        Sample::new(
            &api::API_DURATION_SECONDS,
            vec!["driver".into(), "copy".into()],
            Value::Histogram(histogram),
        )
    };
    let text = render(
        &[of(&[(1.0, 1), (2.0, 2)], 4), of(&[(2.0, 5), (4.0, 1)], 6)],
        Format::Plain,
    );
    let lines = parsed(&text);
    let values: Vec<f64> = lines.iter().map(|line| line.2).collect();
    assert_eq!(values, [1.0, 8.0, 9.0, 10.0, 2.0, 10.0], "{text}");
}

#[test]
fn what_is_no_valid_number_is_left_out() {
    let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0];
    let samples = values.map(|value| Sample::new(&own::PROBE_SECONDS, vec![], Value::Number(value)));
    assert_eq!(render(&samples, Format::Plain), "");
    let gauge = Sample::new(&own::GATHERED_TIMESTAMP_SECONDS, vec![], Value::Number(-1.0));
    assert!(render(&[gauge], Format::Plain).ends_with("gpuscope_gathered_timestamp_seconds -1.0\n"));
}

#[test]
fn both_forms_say_the_same_of_every_metric() {
    let samples = of_every_metric();
    let [open, plain] = [Format::OpenMetrics, Format::Plain].map(|format| parsed(&render(&samples, format)));
    assert_eq!(open, plain);
    let more_in_a_histogram = 5;
    let histograms = samples
        .iter()
        .filter(|sample| sample.metric.kind == Kind::Histogram)
        .count();
    let expected = samples.len() + histograms * more_in_a_histogram;
    assert_eq!(open.len(), expected);
}

#[test]
fn names_and_helps_are_fit_for_every_format() {
    let mut families = HashMap::new();
    for metric in metrics::all() {
        let harmful = ['"', '\\', '\n'];
        assert!(is_name(metric.name), "{}", metric.name);
        assert!(
            !metric.help.contains(harmful) && !metric.help.ends_with('.'),
            "{}",
            metric.help
        );
        assert!(
            metric
                .labels
                .iter()
                .all(|label| is_name(label) && !["le", "quantile"].contains(label)),
            "{}",
            metric.name
        );
        assert_eq!(
            metric.kind == Kind::Counter,
            metric.name.ends_with("_total"),
            "{}",
            metric.name
        );
        assert_eq!(
            metric.kind == Kind::Info,
            metric.name.ends_with("_info"),
            "{}",
            metric.name
        );
        let family = metric.name.trim_end_matches("_total").trim_end_matches("_info");
        assert_eq!(families.insert(family, metric.name), None, "{}", metric.name);
    }
}

fn total(lines: &[Line], suffix: &str) -> f64 {
    lines
        .iter()
        .filter(|line| line.0.ends_with(suffix))
        .map(|line| line.2)
        .sum()
}

proptest! {
    /// Whatever is given, each line can be read back, no series is there twice, and nothing counted is gone.
    #[test]
    fn any_samples_make_a_valid_text(samples in any_samples()) {
        let open = render(&samples, Format::OpenMetrics);
        prop_assert!(open.ends_with("# EOF\n"));
        prop_assert_eq!(open.matches("# EOF\n").count(), 1);
        let lines = parsed(&open);
        prop_assert_eq!(&lines, &parsed(&render(&samples, Format::Plain)));
        let series: HashMap<_, _> = lines.iter().map(|(name, labels, value)| ((name, labels), value)).collect();
        prop_assert_eq!(series.len(), lines.len());
        prop_assert!(lines.iter().all(|line| line.2.is_finite()));
        prop_assert!(lines.iter().all(|line| line.2 >= 0.0 || metrics::all().any(|metric| metric.name == line.0 && metric.kind == Kind::Gauge)));
    }

    #[test]
    #[allow(clippy::cast_precision_loss)]
    fn counters_keep_their_sum(numbers in prop::collection::vec((0..3usize, 0..1000u32), 0..20)) {
        let owners = [owner(&[("comm", "a")]), owner(&[("comm", "\u{1}")]), owner(&[("comm", "\u{2}")])];
        let sample = |(owner, number): &(usize, u32)| counter(&api::API_CALLS, &["driver", "copy"], u64::from(*number)).of(&owners[*owner]);
        let samples: Vec<Sample> = numbers.iter().map(sample).collect();
        let lines = parsed(&render(&samples, Format::Plain));
        let counted: u32 = numbers.iter().map(|(_, number)| number).sum();
        prop_assert_eq!(total(&lines, "_total"), f64::from(counted));
    }
}

#[test]
fn a_counter_that_was_read_before_says_when() {
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_042);
    let gpu = || vec!["0".into(), "GPU-a".into(), "0:1".into()];
    let read = |at| Sample::new(&device::GPU_ENERGY_JOULES, gpu(), Value::Number(1.5)).read_at(at);
    let line = |at, format| {
        let text = render(&[read(at)], format);
        text.lines()
            .find(|line| line.starts_with("gpuscope_"))
            .unwrap()
            .to_owned()
    };
    let series = "gpuscope_gpu_energy_joules_total{gpu=\"0\",uuid=\"GPU-a\",pci_bus_id=\"0:1\"} 1.5";
    assert_eq!(line(Some(at), Format::OpenMetrics), format!("{series} 1700000000.042"));
    assert_eq!(line(Some(at), Format::Plain), format!("{series} 1700000000042"));
    assert_eq!(line(None, Format::Plain), series);
}
