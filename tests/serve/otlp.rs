//! What a collector of OpenTelemetry gets is what Prometheus would.

use super::exporter::Exporter;
use super::workload::Workloads;
use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric::Data, number_data_point::Value};
use prost::Message;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
#[ignore = "needs root and BPF"]
fn a_collector_gets_the_ledgers_numbers() {
    let collector = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", collector.local_addr().expect("an address"));
    let exporter = Exporter::start(&["--otlp", &url, "--otlp-interval", "1s"]);
    let workloads = Workloads::of(&exporter);
    let answering = std::thread::spawn(move || pushes(&collector));
    workloads.until_seen_whole(&exporter);
    let ledger = workloads.run("o-train", "train 20").ledger;
    let launches: u64 = ledger.kernels.values().sum();
    assert!(launches > 0, "the program launches kernels");
    let got = answering.join().expect("a collector");
    assert_eq!(got, Some(launches as i64));
}

/// Answers pushes until the launches of `o-train` are the same in two of them; these.
fn pushes(collector: &TcpListener) -> Option<i64> {
    let begun = Instant::now();
    let mut last = None;
    while begun.elapsed() < PATIENCE {
        let (stream, _) = collector.accept().expect("a push");
        let pushed = launches_of(&request(&stream), "o-train");
        if pushed.is_some() && pushed == last {
            return pushed;
        }
        last = pushed;
    }
    None
}

fn request(mut stream: &TcpStream) -> ExportMetricsServiceRequest {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).expect("a line") > 0, "{head}");
    }
    assert!(head.starts_with("POST /v1/metrics "), "{head}");
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.expect("a length").parse().expect("a number")];
    reader.read_exact(&mut body).expect("a body");
    let mut plain = Vec::new();
    GzDecoder::new(body.as_slice()).read_to_end(&mut plain).expect("gzip");
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.write_all(answer).expect("an answer");
    ExportMetricsServiceRequest::decode(plain.as_slice()).expect("a message")
}

fn launches_of(message: &ExportMetricsServiceRequest, comm: &str) -> Option<i64> {
    let scopes = message
        .resource_metrics
        .iter()
        .flat_map(|resource| &resource.scope_metrics);
    let mut metrics = scopes.flat_map(|scope| &scope.metrics);
    let launches: &Metric = metrics.find(|metric| metric.name == "gpuscope.launches")?;
    let Some(Data::Sum(sum)) = &launches.data else {
        panic!("launches are no sum")
    };
    let of_it = |pair: &KeyValue| {
        let value = pair.value.as_ref().and_then(|value| value.value.as_ref());
        pair.key.ends_with("comm") && matches!(value, Some(any_value::Value::StringValue(text)) if text == comm)
    };
    let point = sum
        .data_points
        .iter()
        .find(|point| point.attributes.iter().any(of_it))?;
    match point.value {
        Some(Value::AsInt(count)) => Some(count),
        _ => None,
    }
}
