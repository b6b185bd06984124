//! What `device` makes of NVML, asked of a simulated one that is loaded as the real one is.
//!
//! The simulated NVML reads its settings from the environment of who loads it. So each test runs itself a second
//! time, with the machine it wants as environment: what it says is done there.

use crate::support::{eventually, on_machine, sim, sim_folder};
use gpuscope::device::{Device, Devices, Environment, Found, Ordinals, ProcessMemory, Tracked, reconcile};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const MIB: u64 = 1 << 20;

fn open() -> Devices {
    Devices::open().unwrap_or_else(|absent| panic!("{absent}"))
}

/// Lines for NVML's lists; `ME` is this process, which has the driver's library mapped.
fn list(lines: &str) {
    let folder = PathBuf::from(std::env::var_os("GPUSIM_STATE").expect("a state folder"));
    let lines = lines.replace("ME", &std::process::id().to_string());
    std::fs::write(folder.join("lists"), lines).expect("the lists are written");
}

/// Device, whether it is this process, bytes.
fn held(found: &Found<ProcessMemory>) -> Vec<(&str, bool, Option<u64>)> {
    let own = Some(std::process::id());
    found
        .items
        .iter()
        .map(|one| (one.device.as_str(), one.pid == own, one.bytes))
        .collect()
}

/// A simulated program that trains until it is dropped.
struct Training(Child);

impl Training {
    fn start(settings: &[(&str, &str)]) -> Training {
        let mut command = Command::new(sim("gpusim"));
        command
            .args(["train", "0"])
            .env("LD_LIBRARY_PATH", sim_folder())
            .stdout(Stdio::null());
        Training(command.envs(settings.iter().copied()).spawn().expect("gpusim starts"))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// What NVML says that it holds of each device, once it holds some.
    fn held(&self, devices: &Devices) -> Vec<ProcessMemory> {
        let mut held = Vec::new();
        eventually("the program allocates", || {
            held = devices.processes().items;
            held.retain(|one| one.pid == Some(self.pid()) && one.bytes > Some(0));
            !held.is_empty()
        });
        held
    }
}

impl Drop for Training {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn devices_are_described() {
    on_machine(
        "devices_are_described",
        &[("GPUSIM_DEVICES", "2"), ("GPUSIM_MEMORY", "4GiB")],
        || {
            let found = open().list();
            assert_eq!(found.notes, Vec::<String>::new());
            let [first, second] = &found.items[..] else {
                panic!("{found:?}")
            };
            assert_eq!(
                (first.index, first.minor, first.name.as_str()),
                (0, Some(0), "Simulated GPU")
            );
            assert_eq!(first.uuid, "GPU-47505553-434f-5045-2d53-494d00000001");
            assert_eq!(
                (first.pci_bus_id.as_str(), second.pci_bus_id.as_str()),
                ("00000000:01:00.0", "00000000:02:00.0")
            );
            let memory = second.memory.expect("told");
            assert_eq!((memory.total_bytes, memory.used_bytes), (4 << 30, 0));
            assert_eq!(memory.reserved_bytes, Some(600 * MIB));
            assert_eq!(second.mig, None);
        },
    );
}

#[test]
fn mig_devices_are_described_with_their_parent() {
    let settings = [("GPUSIM_DEVICES", "3"), ("GPUSIM_MIG", "0:2,1:0")];
    on_machine("mig_devices_are_described_with_their_parent", &settings, || {
        let found = open().list();
        assert_eq!(found.notes, Vec::<String>::new());
        let parts: Vec<Option<usize>> = found.items.iter().map(|one| one.mig.as_ref().map(Vec::len)).collect();
        assert_eq!(parts, [Some(2), Some(0), None]);
        let part = &found.items[0].parts()[1];
        assert_eq!(part.uuid, "MIG-47505553-434f-5045-2d4d-494700010002");
        assert_eq!(
            (part.parent.as_str(), part.name.as_str()),
            (found.items[0].uuid.as_str(), "Simulated GPU MIG 1g")
        );
        assert_eq!((part.gpu_instance, part.compute_instance), (8, 0));
        assert_eq!(part.memory.expect("told").total_bytes, 4 << 30);
    });
}

#[test]
fn a_process_in_three_lists_counts_once_and_untold_bytes_are_not_zero() {
    let name = "a_process_in_three_lists_counts_once_and_untold_bytes_are_not_zero";
    on_machine(name, &[("GPUSIM_DEVICES", "2")], || {
        list("compute 0 ME 700\ngraphics 0 ME 700\nmps 0 ME 0\ncompute 1 ME -\ncompute 1 0 5\ncompute 1 0 6\n");
        let devices = open();
        let (names, found) = (devices.list().items, devices.processes());
        let (first, second) = (names[0].uuid.as_str(), names[1].uuid.as_str());
        let expected = [
            (first, true, Some(700)),
            (second, false, Some(11)),
            (second, true, None),
        ];
        assert_eq!(held(&found), expected);
        assert_eq!((found.items[1].nvml_pid, found.items[1].pid), (0, None));
    });
}

#[test]
fn processes_on_mig_devices_are_not_repeated_for_the_gpu() {
    let name = "processes_on_mig_devices_are_not_repeated_for_the_gpu";
    on_machine(name, &[("GPUSIM_MIG", "0:2")], || {
        list("compute 0/0 ME 300\nmps 0/0 ME 300\ncompute 0/1 ME 40\ngraphics 0 ME 340\n");
        let devices = open();
        let (names, found) = (devices.list().items, devices.processes());
        let parts = names[0].parts();
        let expected = [
            (parts[0].uuid.as_str(), true, Some(300)),
            (parts[1].uuid.as_str(), true, Some(40)),
        ];
        assert_eq!(held(&found), expected);
    });
}

#[test]
fn more_processes_than_at_the_first_question_are_all_listed() {
    on_machine("more_processes_than_at_the_first_question_are_all_listed", &[], || {
        let lines: Vec<String> = (1..=200)
            .map(|pid| format!("mps 0 {} {pid}", 4_000_000 + pid))
            .collect();
        list(&lines.join("\n"));
        let found = open().processes();
        assert_eq!(found.items.len(), 200);
        assert_eq!(
            found.items.iter().filter_map(|one| one.bytes).sum::<u64>(),
            200 * 201 / 2
        );
    });
}

#[test]
fn drivers_that_lack_the_newest_calls_are_asked_the_older_ones() {
    let old = "nvmlDeviceGetComputeRunningProcesses_v3:*=13,nvmlDeviceGetGraphicsRunningProcesses_v3:*=13,\
               nvmlDeviceGetMPSComputeRunningProcesses_v3:*=13,nvmlDeviceGetMemoryInfo_v2:*=13,nvmlDeviceGetMigMode:*=13";
    let name = "drivers_that_lack_the_newest_calls_are_asked_the_older_ones";
    on_machine(name, &[("GPUSIM_FAIL", old)], || {
        list("compute 0 ME 700\ngraphics 0 ME 800\nmps 0 ME 900\n");
        let devices = open();
        let (described, found) = (devices.list(), devices.processes());
        assert_eq!((described.notes, found.notes.clone()), (Vec::new(), Vec::new()));
        let memory = described.items[0].memory.expect("told");
        assert_eq!((memory.total_bytes, memory.reserved_bytes), (8 << 30, None));
        assert_eq!(held(&found), [(described.items[0].uuid.as_str(), true, Some(800))]);
    });
}

#[test]
fn one_device_that_does_not_answer_takes_nothing_from_the_others() {
    let settings = [
        ("GPUSIM_DEVICES", "3"),
        ("GPUSIM_FAIL", "nvmlDeviceGetUUID:2=15,nvmlDeviceGetUUID:5=15"),
    ];
    on_machine(
        "one_device_that_does_not_answer_takes_nothing_from_the_others",
        &settings,
        || {
            list("compute 0 ME 1\ncompute 1 ME 2\ncompute 2 ME 4\n");
            let devices = open();
            let (described, found) = (devices.list(), devices.processes());
            assert_eq!(described.items.iter().map(|one| one.index).collect::<Vec<_>>(), [0, 2]);
            assert_eq!(
                found.items.iter().filter_map(|one| one.bytes).collect::<Vec<_>>(),
                [1, 4]
            );
            for notes in [&described.notes, &found.notes] {
                assert!(
                    notes.len() == 1 && notes[0].starts_with("NVML: GPU 1: does not answer: "),
                    "{notes:?}"
                );
            }
        },
    );
}

#[test]
fn a_list_that_fails_is_named_and_the_others_are_kept() {
    let settings = [("GPUSIM_FAIL", "nvmlDeviceGetGraphicsRunningProcesses_v3:*=999")];
    on_machine("a_list_that_fails_is_named_and_the_others_are_kept", &settings, || {
        list("compute 0 ME 1\n");
        let found = open().processes();
        assert_eq!(found.items.len(), 1);
        assert!(
            found.notes[0].starts_with("NVML: GPU 0: graphics processes not listed: "),
            "{:?}",
            found.notes
        );
    });
}

#[test]
fn a_driver_that_is_not_loaded_is_a_line_with_its_cure() {
    on_machine(
        "a_driver_that_is_not_loaded_is_a_line_with_its_cure",
        &[("GPUSIM_FAIL", "nvmlInit_v2:*=9")],
        || {
            let absent = Devices::open().err().expect("no driver");
            assert_eq!(
                absent.to_string(),
                "NVML: the NVIDIA driver is not loaded; hint: sudo modprobe nvidia"
            );
        },
    );
}

#[test]
fn memory_of_another_process_is_reconciled() {
    on_machine(
        "memory_of_another_process_is_reconciled",
        &[("GPUSIM_DEVICES", "2")],
        || {
            let (devices, training) = (open(), Training::start(&[]));
            let held = training.held(&devices);
            let [one] = &held[..] else {
                panic!("one device: {held:?}")
            };
            let machine: Vec<Device> = devices.list().items;
            assert_eq!(
                (one.device.as_str(), one.bytes),
                (machine[0].uuid.as_str(), machine[0].memory.map(|m| m.used_bytes))
            );

            let environment = Environment::of(training.pid()).expect("a child of ours");
            let ordinals = Ordinals::new(&environment, &machine, &BTreeMap::new()).settled(&[0], training.pid(), &held);
            let bytes = one.bytes.expect("told");
            let tracked = [Tracked {
                pid: training.pid(),
                ordinal: 0,
                bytes: bytes - 1000,
            }];
            let rows = reconcile(&tracked, &held, &BTreeMap::from([(training.pid(), ordinals)]));
            assert_eq!(rows.len(), 1);
            assert_eq!(
                (rows[0].driver_bytes, rows[0].unattributed_bytes),
                (Some(bytes), Some(1000))
            );
            assert_eq!(rows[0].notes, Vec::<String>::new(), "NVML settles which device it is");
        },
    );
}

#[test]
fn a_process_in_a_namespace_of_its_own_is_found_by_its_number_within() {
    // The simulated NVML is told the number that the process has within, as from inside that namespace.
    on_machine(
        "a_process_in_a_namespace_of_its_own_is_found_by_its_number_within",
        &[],
        || {
            let within = Command::new("unshare")
                .args([
                    "--user",
                    "--map-root-user",
                    "--pid",
                    "--fork",
                    "--kill-child",
                    "sh",
                    "-c",
                    "\"$0\" train 0 & wait",
                ])
                .arg(sim("gpusim"))
                .env("LD_LIBRARY_PATH", sim_folder())
                .env_remove("GPUSIM_STATE")
                .stdout(Stdio::null())
                .spawn();
            let outer = Training(within.expect("unshare starts"));
            let child = |pid| {
                let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
                children.trim().parse::<u32>().ok()
            };
            let mut here = None;
            eventually("the program starts", || {
                here = child(outer.pid()).and_then(child);
                let maps = here.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).ok());
                maps.is_some_and(|maps| maps.contains("libcuda.so"))
            });
            let status = std::fs::read_to_string(format!("/proc/{}/status", here.expect("it runs"))).expect("it runs");
            let numbers = status
                .lines()
                .find(|line| line.starts_with("NSpid:"))
                .expect("its numbers");
            let within: u32 = numbers
                .split_whitespace()
                .last()
                .and_then(|last| last.parse().ok())
                .expect("a number");
            assert_ne!(Some(within), here);
            list(&format!("compute 0 {within} 77\n"));
            let found = open().processes();
            assert_eq!(
                (found.items[0].nvml_pid, found.items[0].pid, found.items[0].bytes),
                (within, here, Some(77))
            );
        },
    );
}

#[test]
fn doctor_says_what_nvml_answers() {
    let doctor = |settings: &[(&str, &str)]| {
        let output = Command::new(env!("CARGO_BIN_EXE_gpuscope"))
            .args(["doctor", "--json"])
            .env("GPUSCOPE_NVML", sim("libnvidia-ml.so.1"))
            .envs(settings.iter().copied())
            .output()
            .expect("gpuscope starts");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
        let checks = report["checks"].as_array().expect("checks").clone();
        checks
            .into_iter()
            .find(|check| check["name"] == "nvml")
            .expect("a check of NVML")
    };
    let there = doctor(&[("GPUSIM_DEVICES", "3"), ("GPUSIM_MIG", "0:2")]);
    assert_eq!(there["state"], "ok");
    assert_eq!(
        there["detail"],
        "3 GPUs, 2 MIG devices, NVML 13.580.00.00, driver 580.00.00"
    );
    let unloaded = doctor(&[("GPUSIM_FAIL", "nvmlInit_v2:*=9")]);
    assert_eq!(
        (&unloaded["state"], &unloaded["cure"]),
        (&"limited".into(), &"sudo modprobe nvidia".into())
    );
    let absent = doctor(&[("GPUSCOPE_NVML", "/nowhere/x.so")]);
    assert!(
        absent["detail"]
            .as_str()
            .expect("text")
            .starts_with("/nowhere/x.so cannot be loaded: "),
        "{absent}"
    );
}
