use super::convert::{Span, request};
use super::name::{self, Instrument};
use super::*;
use crate::serve::fixture::{any_samples, of_every_metric, owner};
use crate::serve::metric::{Histogram, Kind, Sample, Value};
use crate::serve::metrics::{self, api, device, memory, own};
use crate::serve::{Exchange, Scrape, Status};
use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{self as otlp, metric::Data, number_data_point::Value as Number};
use opentelemetry_proto::tonic::resource::v1::Resource;
use proptest::prelude::*;
use prost::Message;
use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

const START_NS: u64 = 1_000_000_000_000;
const END_NS: u64 = 2_000_000_000_000;

fn converted(samples: &[Sample]) -> Vec<otlp::Metric> {
    let at = |ns| UNIX_EPOCH + Duration::from_nanos(ns);
    let span = Span {
        start: at(START_NS),
        end: at(END_NS),
    };
    metrics_of(request(samples, span, Resource::default()))
}

fn metrics_of(mut message: ExportMetricsServiceRequest) -> Vec<otlp::Metric> {
    message.resource_metrics.remove(0).scope_metrics.remove(0).metrics
}

fn attributes(pairs: &[KeyValue]) -> BTreeMap<String, String> {
    let shown = |pair: &KeyValue| match pair.value.clone().unwrap().value.unwrap() {
        any_value::Value::StringValue(text) => (pair.key.clone(), text),
        other => (pair.key.clone(), format!("{other:?}")),
    };
    let map: BTreeMap<_, _> = pairs.iter().map(shown).collect();
    assert_eq!(map.len(), pairs.len(), "keys are unique: {pairs:?}");
    map
}

fn named(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn gpu() -> Vec<std::borrow::Cow<'static, str>> {
    vec!["0".into(), "GPU-1".into(), "00000000:01:00.0".into()]
}

fn calls(number: u64) -> Sample {
    let values = vec!["driver".into(), "launch".into()];
    Sample::new(&api::API_CALLS, values, Value::Integer(number)).of(&owner(&[("comm", "train"), ("pod", "a-0")]))
}

#[test]
fn a_counter_is_a_sum_since_gpuscope_was_started() {
    let metric = converted(&[calls(7)]).remove(0);
    assert_eq!(
        (metric.name.as_str(), metric.unit.as_str()),
        ("gpuscope.api.calls", "1")
    );
    let Some(Data::Sum(sum)) = metric.data else { panic!() };
    assert!(sum.is_monotonic);
    assert_eq!(sum.aggregation_temporality(), otlp::AggregationTemporality::Cumulative);
    let point = &sum.data_points[0];
    assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (START_NS, END_NS));
    assert_eq!(point.value, Some(Number::AsInt(7)));
    let expected = [
        ("layer", "driver"),
        ("class", "launch"),
        ("comm", "train"),
        ("k8s.pod.name", "a-0"),
    ];
    assert_eq!(attributes(&point.attributes), named(&expected));
}

#[test]
fn a_counter_of_the_driver_does_not_pretend_to_know_its_start() {
    let metric = converted(&[Sample::new(&device::GPU_ENERGY_JOULES, gpu(), Value::Number(12.5))]).remove(0);
    assert_eq!((metric.name.as_str(), metric.unit.as_str()), ("hw.energy", "J"));
    let Some(Data::Sum(sum)) = metric.data else { panic!() };
    let point = &sum.data_points[0];
    assert_eq!(
        (point.start_time_unix_nano, point.value),
        (0, Some(Number::AsDouble(12.5)))
    );
    let expected = [
        ("hw.id", "GPU-1"),
        ("hw.name", "GPU 0"),
        ("hw.type", "gpu"),
        ("gpu", "0"),
        ("pci_bus_id", "00000000:01:00.0"),
    ];
    assert_eq!(attributes(&point.attributes), named(&expected));
}

#[test]
fn utilizations_of_a_gpu_are_one_metric_by_task() {
    let sample = |metric, value| Sample::new(metric, gpu(), Value::Number(value));
    let metrics = converted(&[
        sample(&device::GPU_UTILIZATION_RATIO, 0.5),
        sample(&device::GPU_ENCODER_UTILIZATION_RATIO, 0.25),
    ]);
    assert_eq!(metrics.len(), 1);
    let Some(Data::Gauge(gauge)) = &metrics[0].data else {
        panic!()
    };
    let tasks: Vec<String> = gauge
        .data_points
        .iter()
        .map(|point| attributes(&point.attributes)["hw.gpu.task"].clone())
        .collect();
    assert_eq!(tasks, ["general", "encoder"]);
}

#[test]
fn a_histogram_has_one_count_more_than_bounds() {
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
    let metric = converted(&[sample]).remove(0);
    assert_eq!(
        (metric.name.as_str(), metric.unit.as_str()),
        ("gpuscope.api.duration", "s")
    );
    let Some(Data::Histogram(histogram)) = metric.data else {
        panic!()
    };
    let point = &histogram.data_points[0];
    assert_eq!((point.count, point.sum), (10, Some(2.5)));
    assert_eq!(point.explicit_bounds, [0.001, 0.5]);
    assert_eq!(point.bucket_counts, [2, 3, 5], "not cumulative here");
}

#[test]
fn a_number_beyond_what_otlp_counts_is_a_fraction() {
    let metric = converted(&[calls(u64::MAX)]).remove(0);
    let Some(Data::Sum(sum)) = metric.data else { panic!() };
    assert_eq!(
        sum.data_points[0].value,
        Some(Number::AsDouble(1.844_674_407_370_955_2e19))
    );
}

#[test]
fn every_metric_has_a_name_that_is_its_own_or_shared_on_purpose() {
    let mut seen = HashSet::new();
    for metric in metrics::all() {
        let name = name::name_of(metric);
        assert!(
            seen.insert((name.name.clone(), name.attributes)),
            "{} is {} too",
            metric.name,
            name.name
        );
        let dotted = name.name.split('.').all(|word| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit())
        });
        assert!(dotted && name.name.contains('.'), "{}", name.name);
        let counts = matches!(name.instrument, Instrument::Counter | Instrument::OlderCounter);
        assert_eq!(counts, metric.kind == Kind::Counter, "{}", metric.name);
        assert_eq!(
            name.instrument == Instrument::Histogram,
            metric.kind == Kind::Histogram,
            "{}",
            metric.name
        );
    }
}

#[test]
fn no_sample_is_missing() {
    let samples = of_every_metric();
    let points: usize = converted(&samples).iter().map(points_of).sum();
    assert_eq!(points, samples.len());
}

/// How many points there are; their attributes have unique keys.
fn points_of(metric: &otlp::Metric) -> usize {
    let points: Vec<&Vec<KeyValue>> = match metric.data.as_ref().unwrap() {
        Data::Sum(sum) => sum.data_points.iter().map(|point| &point.attributes).collect(),
        Data::Gauge(gauge) => gauge.data_points.iter().map(|point| &point.attributes).collect(),
        Data::Histogram(histogram) => histogram.data_points.iter().map(|point| &point.attributes).collect(),
        other => panic!("{other:?}"),
    };
    points.iter().for_each(|keys| drop(attributes(keys)));
    points.len()
}

proptest! {
    #[test]
    fn any_samples_become_points_with_unique_keys(samples in any_samples()) {
        let metrics = converted(&samples);
        let names: HashSet<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        prop_assert_eq!(names.len(), metrics.len());
        let points: usize = metrics.iter().map(points_of).sum();
        prop_assert!(points <= samples.len());
    }
}

#[test]
fn the_resource_names_service_and_host() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("proc/sys/kernel")).unwrap();
    std::fs::create_dir_all(root.path().join("etc")).unwrap();
    std::fs::write(root.path().join("proc/sys/kernel/hostname"), "node-7\n").unwrap();
    std::fs::write(root.path().join("etc/machine-id"), "0123\n").unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let mut expected = named(&[
        ("service.name", "gpuscope"),
        ("service.version", version),
        ("host.name", "node-7"),
        ("host.id", "0123"),
    ]);
    assert_eq!(attributes(&resource(root.path(), &|_| None).0.attributes), expected);
    std::fs::remove_file(root.path().join("etc/machine-id")).unwrap();
    expected.remove("host.id");
    assert_eq!(
        attributes(&resource(root.path(), &|_| None).0.attributes),
        expected,
        "what cannot be read is left out"
    );
}

#[test]
fn a_base_address_gets_the_path() {
    for url in [
        "http://c:4318",
        "http://c:4318/",
        "http://c:4318/v1/metrics",
        "http://c:4318/v1/metrics/",
    ] {
        assert_eq!(endpoint(url), "http://c:4318/v1/metrics");
    }
    assert_eq!(endpoint("https://c/tenant"), "https://c/tenant/v1/metrics");
}

/// One request as a collector sees it: head in lower case, and the message.
struct Received {
    head: String,
    message: ExportMetricsServiceRequest,
}

fn receive(stream: &TcpStream) -> Received {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    head.make_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    let mut plain = Vec::new();
    GzDecoder::new(body.as_slice()).read_to_end(&mut plain).unwrap();
    Received {
        head,
        message: ExportMetricsServiceRequest::decode(plain.as_slice()).unwrap(),
    }
}

fn answer(mut stream: &TcpStream, head: &str, body: &[u8]) {
    write!(
        stream,
        "HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .unwrap();
    stream.write_all(body).unwrap();
}

fn published(number: u64, calls_seen: u64) -> Arc<Exchange> {
    let exchange = Exchange::new().unwrap();
    exchange.publish(Scrape {
        at: Instant::now(),
        number,
        samples: vec![calls(calls_seen)],
        status: Status::default(),
    });
    Arc::new(exchange)
}

/// An exchange whose tracer answers every question with one call more.
fn counting() -> Arc<Exchange> {
    let exchange = published(1, 1);
    let weak = Arc::downgrade(&exchange);
    std::thread::spawn(move || {
        let mut number = 1;
        while let Some(exchange) = weak.upgrade() {
            if exchange.take_wish() {
                number += 1;
                exchange.publish(Scrape {
                    at: Instant::now(),
                    number,
                    samples: vec![calls(number)],
                    status: Status::default(),
                });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    exchange
}

fn settings(listener: &TcpListener, interval: Duration) -> Settings {
    Settings {
        url: format!("http://{}", listener.local_addr().unwrap()),
        interval,
        timeout: Duration::from_secs(10),
        headers: vec![("X-Tenant".to_owned(), "a b".to_owned())],
        since: SystemTime::now(),
    }
}

/// What is said on stderr is said to nobody.
fn unheard() -> Box<Notice> {
    Box::new(|_| {})
}

fn first_value(received: &Received) -> Option<Number> {
    let metrics = metrics_of(received.message.clone());
    let Some(Data::Sum(sum)) = &metrics[0].data else {
        panic!()
    };
    sum.data_points[0].value
}

fn count(pusher: &Pusher, result: &str) -> Value {
    let samples = pusher.samples();
    let found = samples
        .into_iter()
        .find(|sample| sample.metric == &own::OTLP_EXPORTS && sample.values[0] == result);
    found.unwrap().value
}

/// Waits for what the thread notes after the answer.
fn until(what: impl Fn() -> bool) {
    while !what() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

const SHORT: Duration = Duration::from_millis(20);
/// Longer than a first wait with its spread.
const LONG: Duration = Duration::from_secs(4);
const NEVER: Duration = Duration::from_secs(100_000);

#[test]
fn a_collector_receives_what_is_known() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let before = SystemTime::now();
    let pusher = Pusher::start(&settings(&listener, SHORT), counting(), unheard()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    let received = receive(&stream);
    answer(&stream, "200 OK", &[]);
    assert!(
        received.head.starts_with("post /v1/metrics http/1.1\r\n"),
        "{}",
        received.head
    );
    for line in [
        "content-type: application/x-protobuf\r\n",
        "content-encoding: gzip\r\n",
        "x-tenant: a b\r\n",
    ] {
        assert!(received.head.contains(line), "{}", received.head);
    }
    assert!(matches!(first_value(&received), Some(Number::AsInt(1..))));
    let Some(Data::Sum(sum)) = metrics_of(received.message).remove(0).data else {
        panic!()
    };
    let start = UNIX_EPOCH + Duration::from_nanos(sum.data_points[0].start_time_unix_nano);
    let end = UNIX_EPOCH + Duration::from_nanos(sum.data_points[0].time_unix_nano);
    assert!(before <= start && start <= end && end <= SystemTime::now());
    until(|| count(&pusher, "taken") == Value::Integer(1));
    assert_eq!(pusher.trouble(), None);
}

#[test]
fn a_collector_that_is_busy_is_asked_again_with_the_same() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pusher = Pusher::start(&settings(&listener, LONG), counting(), unheard()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    let first = receive(&stream);
    answer(&stream, "503 Service Unavailable\r\nRetry-After: 0", &[]);
    let (stream, _) = listener.accept().unwrap();
    let second = receive(&stream);
    answer(&stream, "200 OK", &[]);
    assert_eq!(first.message, second.message);
    until(|| count(&pusher, "taken") == Value::Integer(1));
    assert_eq!(count(&pusher, "failed"), Value::Integer(0));
}

#[test]
fn a_lost_connection_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pusher = Pusher::start(&settings(&listener, LONG), counting(), unheard()).unwrap();
    drop(listener.accept().unwrap());
    let (stream, _) = listener.accept().unwrap();
    receive(&stream);
    answer(&stream, "200 OK", &[]);
    until(|| count(&pusher, "taken") == Value::Integer(1));
}

#[test]
fn a_refusal_is_not_repeated_but_the_next_push_is_newer() {
    for refusal in [
        "400 Bad Request",
        "401 Unauthorized",
        "302 Found\r\nLocation: /elsewhere",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let pusher = Pusher::start(&settings(&listener, Duration::from_millis(1500)), counting(), unheard()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let first = receive(&stream);
        answer(&stream, refusal, &[]);
        until(|| count(&pusher, "refused") == Value::Integer(1));
        let said = pusher.trouble().unwrap();
        assert!(said.contains(&refusal[..3]) && said.contains("/v1/metrics"), "{said}");
        let (stream, _) = listener.accept().unwrap();
        assert_ne!(first_value(&first), first_value(&receive(&stream)));
    }
}

#[test]
fn points_that_were_thrown_away_are_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pusher = Pusher::start(&settings(&listener, SHORT), counting(), unheard()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    receive(&stream);
    let said = ExportMetricsServiceResponse {
        partial_success: Some(ExportMetricsPartialSuccess {
            rejected_data_points: 3,
            error_message: "too old\n".to_owned(),
        }),
    };
    answer(&stream, "200 OK", &said.encode_to_vec());
    until(|| count(&pusher, "partly") == Value::Integer(1));
    assert!(
        pusher
            .trouble()
            .unwrap()
            .ends_with(r"it threw 3 points away: too old\n")
    );
}

#[test]
fn the_end_pushes_what_is_known_once_more() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pusher = Pusher::start(&settings(&listener, NEVER), published(5, 42), unheard()).unwrap();
    let collector = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let received = receive(&stream);
        answer(&stream, "200 OK", &[]);
        first_value(&received)
    });
    pusher.stop();
    assert_eq!(collector.join().unwrap(), Some(Number::AsInt(42)));
}

#[test]
fn nobody_there_is_a_failure_that_is_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = settings(&listener, SHORT);
    drop(listener);
    let pusher = Pusher::start(&settings, counting(), unheard()).unwrap();
    until(|| count(&pusher, "failed") != Value::Integer(0));
    assert!(
        pusher
            .trouble()
            .unwrap()
            .starts_with("failed to push metrics to http://127.0.0.1:")
    );
}

#[test]
fn failures_and_their_end_are_told_once_each() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&heard);
    let notice = Box::new(move |words: &str| ear.lock().unwrap().push(words.to_owned()));
    let pusher = Pusher::start(&settings(&listener, SHORT), counting(), notice).unwrap();
    for refusal in [
        "400 Bad Request",
        "404 Not Found",
        "400 Bad Request",
        "200 OK",
        "200 OK",
    ] {
        let (stream, _) = listener.accept().unwrap();
        receive(&stream);
        answer(&stream, refusal, &[]);
    }
    until(|| count(&pusher, "taken") == Value::Integer(2));
    let heard = heard.lock().unwrap();
    let [first, last] = heard.as_slice() else {
        panic!("{heard:?}")
    };
    assert!(first.starts_with("failed to push metrics to http://127.0.0.1:") && first.contains("it answered 400"));
    assert!(last.starts_with("metrics are pushed again, after "), "{last}");
}

#[test]
fn a_collector_that_never_answers_does_not_delay_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = settings(&listener, SHORT);
    settings.timeout = NEVER;
    let pusher = Pusher::start(&settings, counting(), unheard()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    receive(&stream);
    // it would wait for a day
    pusher.stop();
    drop(stream);
}

#[test]
fn nonsense_is_an_error_at_the_start() {
    let settings = |url: &str, name: &str, value: &str| Settings {
        url: url.to_owned(),
        interval: NEVER,
        timeout: SHORT,
        headers: vec![(name.to_owned(), value.to_owned())],
        since: SystemTime::now(),
    };
    let wrong = [
        settings("localhost", "a", "b"),
        settings("ftp://c", "a", "b"),
        settings("http://", "a", "b"),
        settings("http://c", "a b", "c"),
        settings("http://c", "a", "secret\n"),
    ];
    for settings in wrong {
        let error = Pusher::start(&settings, published(1, 1), unheard()).unwrap_err();
        let said = format!("{error:#}");
        assert!(said.starts_with("failed to ") && !said.contains("secret"), "{said}");
    }
}

#[test]
fn what_owns_memory_keeps_its_kubernetes_names() {
    let owner = owner(&[
        ("namespace", "ml"),
        ("container", "c"),
        ("container_id", "abc"),
        ("pid", "17"),
        ("unit", "x.service"),
    ]);
    let sample = Sample::new(&memory::MEMORY_UNRETURNED_BYTES, vec![], Value::Integer(1)).of(&owner);
    let Some(Data::Sum(sum)) = converted(&[sample]).remove(0).data else {
        panic!()
    };
    let expected = [
        ("k8s.namespace.name", "ml"),
        ("k8s.container.name", "c"),
        ("container.id", "abc"),
        ("process.pid", "IntValue(17)"),
        ("unit", "x.service"),
    ];
    assert_eq!(attributes(&sum.data_points[0].attributes), named(&expected));
}
