//! What the sampler makes of NVML, asked of a simulated one that is loaded as the real one is.
//!
//! The simulated NVML reads its settings from the environment of who loads it, and from a file while it runs. So each
//! test runs itself a second time, with the machine it wants as environment: what it says is done there.

use crate::support::{eventually, on_machine, sim};
use gpuscope::device::telemetry::{Gpu, Pace, Sampler, Telemetry};
use gpuscope::owner::Owner;
use gpuscope::serve::gather::device::samples;
use gpuscope::serve::metric::Value;
use gpuscope::serve::metrics;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const PACE: Pace = Pace {
    every: Duration::from_millis(50),
    retry: Duration::from_millis(100),
};

fn state(file: &str) -> PathBuf {
    PathBuf::from(std::env::var_os("GPUSIM_STATE").expect("a state folder")).join(file)
}

/// What the simulated NVML says from here on.
fn set(lines: &str) {
    let whole = state("nvml.new");
    std::fs::write(&whole, lines.replace("ME", &std::process::id().to_string())).expect("written");
    std::fs::rename(whole, state("nvml")).expect("renamed");
}

fn start() -> Sampler {
    Sampler::at(PACE).expect("a thread")
}

/// The first telemetry of which this holds.
fn until(sampler: &Sampler, what: &str, holds: impl Fn(&Telemetry) -> bool) -> Arc<Telemetry> {
    let mut found = None;
    eventually(what, || {
        found = sampler.latest().filter(|telemetry| holds(telemetry));
        found.is_some()
    });
    found.expect("waited for")
}

fn answered(sampler: &Sampler) -> Arc<Telemetry> {
    until(sampler, "NVML answers", |telemetry| {
        !telemetry.gpus.is_empty() && telemetry.gpus.iter().all(|gpu| !gpu.gpm.is_empty())
    })
}

/// Series as `name{label=value,…}`, and their values.
fn series(telemetry: &Telemetry) -> BTreeMap<String, f64> {
    let mut owner_of = |pid: u32| {
        let name = if pid == std::process::id() { "me" } else { "other" };
        Some(Arc::new(Owner {
            labels: vec![("comm".to_owned(), name.to_owned())],
        }))
    };
    let mut all = BTreeMap::new();
    for sample in samples(telemetry, Instant::now(), &mut owner_of) {
        let hidden = |name: &str| ["uuid", "pci_bus_id"].contains(&name);
        let labels: Vec<String> = sample
            .labels()
            .filter(|(name, _)| !hidden(name))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let value = match sample.value {
            Value::Integer(number) => number as f64,
            Value::Number(number) => number,
            Value::Histogram(_) => panic!("no histogram is among these"),
        };
        let name = format!("{}{{{}}}", sample.metric.name, labels.join(","));
        assert_eq!(all.insert(name.clone(), value), None, "{name} is there twice");
    }
    all
}

fn value(telemetry: &Telemetry, name: &str) -> Option<f64> {
    series(telemetry).get(&format!("gpuscope_{name}")).copied()
}

#[test]
fn every_value_is_what_nvml_says() {
    on_machine("every_value_is_what_nvml_says", &[("GPUSIM_MEMORY", "4GiB")], || {
        set(
            "0 gpu_percent 87\n0 memory_percent 31\n0 encoder_percent 3\n0 decoder_percent 4\n0 temperature 71\n\
             0 memory_temperature 83\n0 power_mw 345678\n0 power_limit_mw 500000\n0 energy_mj 123456789\n\
             0 clock.sm 1410\n0 highest_clock.sm 1980\n0 clock_reasons 68\n0 fans 2\n0 fan_percent.0 40\n\
             0 fan_percent.1 45\n0 performance_state 2\n0 ecc_corrected.aggregate 5\n0 ecc_uncorrected.aggregate 1\n\
             0 ecc_corrected.volatile 9\n0 rows_corrected 2\n0 rows_uncorrected 1\n0 rows_pending 1\n\
             0 pcie_replays 7\n0 pcie_generation 4\n0 pcie_lanes 8\n0 nvlinks 2\n0 nvlink_sent_kib.0 3\n\
             0 nvlink_sent_kib.1 4\n0 nvlink_received_kib.1 5\n0 nvlink_crc.1 6\n0 gpm.2 50\n0 gpm.3 25\n0 gpm.5 40\n\
             0 gpm.10 75\n0 gpm.20 2\n0 gpm.21 3\n0 gpm.11 1.5\n",
        );
        let sampler = start();
        let told = answered(&sampler);
        let all = series(&told);
        let expected = [
            ("nvml_up{}", 1.0),
            ("nvml_errors_total{gpu=0}", 0.0),
            ("gpu_up{gpu=0}", 1.0),
            ("gpu_info{gpu=0,name=Simulated GPU,minor=0,driver=580.00.00}", 1.0),
            ("gpu_utilization_ratio{gpu=0}", 0.87),
            ("gpu_memory_utilization_ratio{gpu=0}", 0.31),
            ("gpu_encoder_utilization_ratio{gpu=0}", 0.03),
            ("gpu_decoder_utilization_ratio{gpu=0}", 0.04),
            ("gpu_memory_total_bytes{gpu=0}", (4096 * MIB) as f64),
            ("gpu_memory_used_bytes{gpu=0}", 0.0),
            ("gpu_memory_free_bytes{gpu=0}", (4096 * MIB) as f64),
            ("gpu_memory_reserved_bytes{gpu=0}", (600 * MIB) as f64),
            ("gpu_temperature_celsius{gpu=0,sensor=gpu}", 71.0),
            ("gpu_temperature_celsius{gpu=0,sensor=memory}", 83.0),
            ("gpu_power_watts{gpu=0}", 345.678),
            ("gpu_power_limit_watts{gpu=0}", 500.0),
            ("gpu_energy_joules_total{gpu=0}", 123_456.789),
            ("gpu_clock_hertz{gpu=0,clock=sm}", 1.41e9),
            ("gpu_clock_limit_hertz{gpu=0,clock=sm}", 1.98e9),
            ("gpu_clocks_limited{gpu=0,reason=sw_power_cap}", 1.0),
            ("gpu_clocks_limited{gpu=0,reason=hw_thermal_slowdown}", 1.0),
            ("gpu_clocks_limited{gpu=0,reason=hw_slowdown}", 0.0),
            ("gpu_fan_speed_ratio{gpu=0}", 0.45),
            ("gpu_performance_state{gpu=0}", 2.0),
            ("gpu_ecc_errors_total{gpu=0,type=corrected}", 5.0),
            ("gpu_ecc_errors_total{gpu=0,type=uncorrected}", 1.0),
            ("gpu_remapped_rows{gpu=0,cause=corrected}", 2.0),
            ("gpu_remapped_rows{gpu=0,cause=uncorrected}", 1.0),
            ("gpu_row_remap_pending{gpu=0}", 1.0),
            ("gpu_row_remap_failed{gpu=0}", 0.0),
            ("gpu_pcie_bytes_per_second{gpu=0,direction=sent}", (2 * MIB) as f64),
            ("gpu_pcie_bytes_per_second{gpu=0,direction=received}", (3 * MIB) as f64),
            ("gpu_pcie_replays_total{gpu=0}", 7.0),
            ("gpu_pcie_generation{gpu=0}", 4.0),
            ("gpu_pcie_lanes{gpu=0}", 8.0),
            ("gpu_nvlink_bytes_total{gpu=0,direction=sent}", 7168.0),
            ("gpu_nvlink_bytes_total{gpu=0,direction=received}", 5120.0),
            ("gpu_nvlink_errors_total{gpu=0,link=1,kind=crc}", 6.0),
            ("gpu_nvlink_errors_total{gpu=0,link=0,kind=replay}", 0.0),
            ("gpu_sm_activity_ratio{gpu=0}", 0.5),
            ("gpu_sm_occupancy_ratio{gpu=0}", 0.25),
            ("gpu_pipe_activity_ratio{gpu=0,pipe=tensor}", 0.4),
            ("gpu_pipe_activity_ratio{gpu=0,pipe=fp64}", 0.015),
            ("gpu_dram_activity_ratio{gpu=0}", 0.75),
        ];
        for (name, value) in expected {
            let told = all.get(&format!("gpuscope_{name}")).copied();
            assert!(
                told.is_some_and(|told| (told - value).abs() < 1e-9),
                "{name}: {told:?} for {value}"
            );
        }
        assert_eq!(told.notes, Vec::<String>::new());
    });
}

#[test]
fn what_a_gpu_does_not_support_has_no_series_and_is_no_error() {
    let name = "what_a_gpu_does_not_support_has_no_series_and_is_no_error";
    on_machine(name, &[], || {
        set(
            "0 temperature -\n0 memory_temperature -\n0 power_mw -\n0 energy_mj -\n0 ecc_corrected.aggregate -\n\
             0 ecc_uncorrected.aggregate -\n0 rows_pending -\n0 clock_reasons -\n0 pcie_replays -\n0 gpu_percent -\n\
             0 gpm 0\n0 pcie_sent_kib 5\n0 encoder_percent -\n0 performance_state 32\n",
        );
        let sampler = start();
        let told = until(&sampler, "NVML answers", |told| !told.gpus.is_empty());
        let absent = [
            "temperature",
            "power_watts",
            "energy",
            "ecc",
            "remap",
            "clocks_limited",
            "replays",
            "_gpu_utilization",
            "sm_activity",
            "encoder",
            "performance_state",
            "fan",
            "nvlink",
            "mig",
            "process",
            "xid",
        ];
        for name in series(&told).keys() {
            assert!(absent.iter().all(|absent| !name.contains(absent)), "{name}");
        }
        assert_eq!(value(&told, "gpu_power_limit_watts{gpu=0}"), Some(700.0));
        let speed = value(&told, "gpu_pcie_bytes_per_second{gpu=0,direction=sent}");
        assert_eq!(speed, Some(5120.0), "measured for 20 ms without GPM");
        assert_eq!((told.errors.get(&0), &told.notes), (None, &Vec::new()));
    });
}

#[test]
fn a_lost_gpu_takes_nothing_from_the_others_and_may_come_back() {
    let name = "a_lost_gpu_takes_nothing_from_the_others_and_may_come_back";
    on_machine(name, &[("GPUSIM_DEVICES", "8")], || {
        let sampler = start();
        until(&sampler, "eight answer", |told| told.gpus.len() == 8);
        set("5 lost 1\n* temperature 60\n");
        let told = until(&sampler, "seven answer", |told| told.gpus.len() == 7);
        assert_eq!(value(&told, "gpu_up{gpu=5}"), Some(0.0));
        assert_eq!(value(&told, "gpu_up{gpu=4}"), Some(1.0));
        assert_eq!(value(&told, "gpu_temperature_celsius{gpu=5,sensor=gpu}"), None);
        assert!(value(&told, "nvml_errors_total{gpu=5}") > Some(0.0));
        assert_eq!(value(&told, "nvml_errors_total{gpu=4}"), Some(0.0));
        assert!(
            told.notes.iter().all(|note| note.starts_with("NVML: GPU 5: ")),
            "{:?}",
            told.notes
        );
        let before = told.errors[&5];
        until(&sampler, "NVML was opened anew", |told| {
            told.gpus.len() == 7 && told.errors[&5] > before && told.gpus.iter().all(|gpu| gpu.gpu_celsius == Some(60))
        });
        set("* temperature 61\n");
        let told = until(&sampler, "eight answer again", |told| told.gpus.len() == 8);
        assert_eq!((told.lost.len(), value(&told, "gpu_up{gpu=5}")), (0, Some(1.0)));
    });
}

#[test]
fn a_gpu_that_was_lost_before_we_came_is_known_from_the_time_before() {
    let name = "a_gpu_that_was_lost_before_we_came_is_known_from_the_time_before";
    on_machine(name, &[("GPUSIM_DEVICES", "4")], || {
        let folder = state("remembered");
        std::fs::create_dir(&folder).expect("a folder");
        let start = || Sampler::remembering(Duration::from_millis(50), Some(&folder)).expect("a thread");
        let first = start();
        let told = until(&first, "four answer", |told| told.gpus.len() == 4);
        let lost = told.gpus[2].identity.clone();
        drop(first);
        set("2 lost 1\n");
        for _ in 0..2 {
            let again = start();
            let told = until(&again, "three answer", |told| told.gpus.len() == 3);
            assert_eq!(told.lost, std::slice::from_ref(&lost));
            assert_eq!(value(&told, "gpu_up{gpu=2}"), Some(0.0));
            assert_eq!(value(&told, "gpu_up{gpu=3}"), Some(1.0));
        }
        let forgetful = Sampler::start(Duration::from_millis(50)).expect("a thread");
        let told = until(&forgetful, "three answer", |told| told.gpus.len() == 3);
        assert_eq!(value(&told, "gpu_up{gpu=2}"), None);
    });
}

#[test]
fn nvml_may_come_late_and_go_for_a_while() {
    on_machine("nvml_may_come_late_and_go_for_a_while", &[], || {
        set("driver fail 9\n");
        let sampler = start();
        let told = until(&sampler, "a first answer", |_| true);
        let absent = told.absent.as_ref().expect("the driver is not loaded").to_string();
        assert!(absent.contains("hint: sudo modprobe nvidia"), "{absent}");
        let shown = series(&told);
        assert_eq!(shown.get("gpuscope_nvml_up{}"), Some(&0.0));
        assert_eq!(shown.keys().filter(|name| name.contains("_gpu_")).count(), 0);

        set("0 temperature 50\n");
        until(&sampler, "the driver is loaded", |told| told.gpus.len() == 1);
        set("driver fail 1\n"); // uninitialized: the driver was loaded anew
        let told = until(&sampler, "NVML is gone", |told| told.gpus.is_empty());
        assert_eq!(value(&told, "gpu_up{gpu=0}"), Some(0.0));
        set("0 temperature 51\n");
        let told = until(&sampler, "NVML is there again", |told| told.gpus.len() == 1);
        assert_eq!(value(&told, "gpu_temperature_celsius{gpu=0,sensor=gpu}"), Some(51.0));
        assert_eq!(value(&told, "nvml_up{}"), Some(1.0));
    });
}

#[test]
fn a_library_that_is_missing_is_looked_for_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("libnvidia-ml.so.1");
    let name = "a_library_that_is_missing_is_looked_for_again";
    on_machine(name, &[("GPUSCOPE_NVML", path.to_str().expect("UTF-8"))], || {
        let sampler = start();
        let told = until(&sampler, "a first answer", |_| true);
        assert!(told.absent.is_some());
        let library = PathBuf::from(std::env::var_os("GPUSCOPE_NVML").expect("set"));
        std::os::unix::fs::symlink(sim("libnvidia-ml.so.1"), library).expect("a link");
        until(&sampler, "the driver is installed", |told| told.gpus.len() == 1);
    });
}

#[test]
fn nobody_waits_for_an_nvml_that_hangs() {
    on_machine(
        "nobody_waits_for_an_nvml_that_hangs",
        &[("GPUSIM_DEVICES", "2")],
        || {
            let sampler = start();
            until(&sampler, "both answer", |told| told.gpus.len() == 2);
            set("1 hang_ms 600000\n");
            let mut last = None;
            eventually("nothing new comes", || {
                std::thread::sleep(Duration::from_millis(500));
                let at = sampler.latest().map(|told| told.at);
                std::mem::replace(&mut last, at) == at
            });
            let told = sampler.latest().expect("told before");
            assert_eq!(told.gpus.len(), 2);
            assert!(value(&told, "nvml_age_seconds{}") >= Some(0.5));
            let later = samples(&told, told.at + Duration::from_secs(60), &mut |_| None);
            let up: Vec<_> = later
                .iter()
                .filter(|one| one.metric.name.ends_with("_up"))
                .map(|one| &one.value)
                .collect();
            assert_eq!(
                up,
                [&Value::Integer(0), &Value::Integer(0), &Value::Integer(0)],
                "two GPUs and NVML"
            );
            let names: Vec<&str> = later.iter().map(|one| one.metric.name).collect();
            assert!(!names.contains(&"gpuscope_gpu_temperature_celsius"), "{names:?}");
            drop(sampler); // this test would take ten minutes
        },
    );
}

/// Events as the sampler counts them: GPU, code, how many.
fn xids(told: &Telemetry) -> Vec<(u32, u64, u64)> {
    told.xids
        .iter()
        .map(|xid| (xid.gpu.index, xid.code, xid.count))
        .collect()
}

#[test]
fn xid_events_are_counted_by_gpu_and_code_also_of_a_gpu_that_is_lost() {
    let name = "xid_events_are_counted_by_gpu_and_code_also_of_a_gpu_that_is_lost";
    on_machine(name, &[("GPUSIM_DEVICES", "2")], || {
        set("0 xid 13\n"); // before the sampler came
        let sampler = start();
        let told = until(&sampler, "some rounds", |told| {
            told.gpus.iter().any(|gpu| !gpu.gpm.is_empty())
        });
        assert_eq!(xids(&told), []);
        let mut lines = "0 xid 13\n".to_owned();
        let mut more = |line: &str, expected: &[(u32, u64, u64)]| {
            lines += line;
            set(&lines);
            until(&sampler, line, |told| xids(told) == expected)
        };
        more("1 xid 31\n", &[(1, 31, 1)]);
        more("0 xid 94\n", &[(0, 94, 1), (1, 31, 1)]);
        more("1 xid 31\n1 xid 31\n", &[(0, 94, 1), (1, 31, 3)]);
        let told = more("1 xid 79\n1 lost 1\n", &[(0, 94, 1), (1, 31, 3), (1, 79, 1)]);
        assert_eq!(value(&told, "gpu_xid_errors_total{gpu=1,xid=31}"), Some(3.0));
        let last = value(&told, "gpu_xid_last_timestamp_seconds{gpu=1,xid=79}");
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("after 1970");
        assert!(
            last.is_some_and(|last| last > 1.7e9 && last <= now.as_secs_f64()),
            "{last:?}"
        );
        more("0 xid 94\n", &[(0, 94, 2), (1, 31, 3), (1, 79, 1)]);
    });
}

#[test]
fn events_that_cannot_be_had_are_a_note_and_nothing_else() {
    let name = "events_that_cannot_be_had_are_a_note_and_nothing_else";
    let settings = [("GPUSIM_FAIL", "nvmlDeviceRegisterEvents:*=4"), ("GPUSIM_DEVICES", "2")];
    on_machine(name, &settings, || {
        let sampler = start();
        let told = answered(&sampler);
        assert_eq!((told.gpus.len(), told.notes.len()), (2, 2), "{:?}", told.notes);
        assert!(
            told.notes[1].starts_with("NVML: GPU 1: Xid events are not told: "),
            "{:?}",
            told.notes
        );
    });
}

#[test]
fn mig_devices_have_their_own_memory_engines_and_processes() {
    let name = "mig_devices_have_their_own_memory_engines_and_processes";
    on_machine(name, &[("GPUSIM_MIG", "0:2"), ("GPUSIM_MEMORY", "8GiB")], || {
        // has the driver's library mapped, as a process that holds memory has
        std::fs::write(
            state("lists"),
            format!("compute 0/1 {} {}\n", std::process::id(), 512 * MIB),
        )
        .expect("written");
        set("0 gpm.2.7 10\n0 gpm.2.8 90\n");
        let sampler = start();
        let told = answered(&sampler);
        let part = "mig_uuid=MIG-47505553-434f-5045-2d4d-494700010002";
        let expected = [
            ("gpu_sm_activity_ratio{gpu=0,gpu_instance=7}".to_owned(), 0.1),
            ("gpu_sm_activity_ratio{gpu=0,gpu_instance=8}".to_owned(), 0.9),
            (
                format!("gpu_mig_info{{gpu=0,{part},gpu_instance=8,compute_instance=0,profile=1g}}"),
                1.0,
            ),
            (
                format!("gpu_mig_memory_total_bytes{{gpu=0,{part},gpu_instance=8,compute_instance=0}}"),
                (4096 * MIB) as f64,
            ),
            (
                format!("gpu_process_memory_bytes{{gpu=0,{part},comm=me}}"),
                (512 * MIB) as f64,
            ),
        ];
        for (name, expected) in expected {
            assert_eq!(value(&told, &name), Some(expected), "{name}: {:#?}", series(&told));
        }
        assert_eq!(value(&told, "gpu_utilization_ratio{gpu=0}"), None);
        assert_eq!(told.errors.len(), 0, "{:?}", told.notes);
    });
}

#[test]
fn work_and_memory_of_processes_are_summed_by_owner() {
    on_machine("work_and_memory_of_processes_are_summed_by_owner", &[], || {
        let list = format!("compute 0 {} 1048576\ngraphics 0 4194303 2097152\n", std::process::id());
        std::fs::write(state("lists"), list).expect("written");
        // the last is no sample: NVML gives some with nonsense in them
        set("0 work ME 33 5 7 40\n0 work 4194303 20 1 0 0\n0 work 4194302 10 1 0 0\n0 work 4194301 4000000 1 0 0\n");
        let sampler = start();
        let told = answered(&sampler);
        assert_eq!(
            value(&told, "gpu_process_sm_utilization_ratio{gpu=0,comm=me}"),
            Some(0.33)
        );
        for (engine, share) in [("memory", 0.05), ("encoder", 0.07), ("decoder", 0.4)] {
            let name = format!("gpu_process_engine_utilization_ratio{{gpu=0,engine={engine},comm=me}}");
            assert_eq!(value(&told, &name), Some(share), "{engine}");
        }
        assert_eq!(
            value(&told, "gpu_process_sm_utilization_ratio{gpu=0}"),
            Some(0.3),
            "whose is not known"
        );
        assert_eq!(
            value(&told, "gpu_process_memory_bytes{gpu=0,comm=me}"),
            Some(1_048_576.0)
        );
        assert_eq!(value(&told, "gpu_process_memory_bytes{gpu=0}"), Some(2_097_152.0));
    });
}

#[test]
fn samples_come_in_the_order_of_the_table_with_all_their_labels() {
    let name = "samples_come_in_the_order_of_the_table_with_all_their_labels";
    on_machine(name, &[("GPUSIM_DEVICES", "8"), ("GPUSIM_MIG", "3:2")], || {
        let sampler = start();
        let told = answered(&sampler);
        let samples = samples(&told, Instant::now(), &mut |_| None);
        let place = |name: &str| metrics::device::ALL.iter().position(|metric| metric.name == name);
        let places: Vec<_> = samples.iter().map(|sample| place(sample.metric.name)).collect();
        assert!(places.is_sorted() && places.iter().all(Option::is_some));
        for sample in &samples {
            assert_eq!(
                sample.values.len(),
                sample.metric.labels.len(),
                "{}",
                sample.metric.name
            );
        }
        let indices = |gpu: &Gpu| gpu.identity.index;
        assert_eq!(
            told.gpus.iter().map(indices).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5, 6, 7]
        );
    });
}
