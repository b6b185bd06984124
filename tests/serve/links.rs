//! A counter that NVML is asked for seldom: its rate is what it is, at every moment.

use super::exporter::Exporter;
use super::prometheus::Prometheus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const KIB_PER_SECOND: f64 = 1_000_000.0;

/// A link over which as much goes in each second, until `ended`.
fn constant_traffic(exporter: &Exporter, ended: &Arc<AtomicBool>) -> thread::JoinHandle<()> {
    let (state, ended) = (exporter.state(), Arc::clone(ended));
    thread::spawn(move || {
        let begun = Instant::now();
        while !ended.load(Ordering::Relaxed) {
            let kib = (begun.elapsed().as_secs_f64() * KIB_PER_SECOND) as u64;
            let lines = format!("0 nvlinks 1\n0 nvlink_sent_kib.0 {kib}\n0 nvlink_received_kib.0 0\n");
            std::fs::write(state.join("nvml.new"), lines).expect("a file");
            std::fs::rename(state.join("nvml.new"), state.join("nvml")).expect("renamed");
            thread::sleep(Duration::from_millis(20));
        }
    })
}

#[test]
#[ignore = "needs prometheus: scripts/fetch-tools.sh"]
fn the_rate_of_a_constant_traffic_is_constant() {
    let exporter = Exporter::start(&["--collect", "nvml,self"]);
    let ended = Arc::new(AtomicBool::new(false));
    let traffic = constant_traffic(&exporter, &ended);
    let prometheus = Prometheus::of(&exporter);
    thread::sleep(Duration::from_secs(16));
    let rate = "irate(gpuscope_gpu_nvlink_bytes_total{direction=\"sent\",gpu=\"0\"}[2m])";
    for (least_or_most, of) in [("least", "min"), ("most", "max")] {
        let series = prometheus.query(&format!("{of}_over_time({rate}[8s:1s])"));
        assert_eq!(series.len(), 2, "of both formats");
        for (labels, rate) in series {
            let share = rate / (KIB_PER_SECOND * 1024.0);
            assert!((0.95..1.05).contains(&share), "{least_or_most} of {labels:?}: {share}");
        }
    }
    ended.store(true, Ordering::Relaxed);
    traffic.join().expect("a thread");
}
