//! What NVML says of devices and of processes on them: as the simulated one says it.

use super::{Machine, gpuscope};
use crate::exporter::LINKS;
use crate::support::{Program, eventually};
use serde_json::Value;
use std::process::Stdio;

#[test]
#[ignore = "needs root and BPF: the whole machine is looked at"]
fn a_device_that_falls_off_the_bus_is_said_to_be_gone_and_the_other_stays() {
    let machine = Machine::new();
    let top = machine.top(&mut gpuscope(), &["--json", "--delay", "300ms"]);
    let up = || {
        let look = top.looks().pop()?;
        let devices = look["devices"].as_array()?.clone();
        Some(devices.iter().map(|device| device["up"] == true).collect::<Vec<bool>>())
    };
    eventually("both devices answer", || up() == Some(vec![true, true]));
    let told = format!("{LINKS}1 lost 1\n");
    std::fs::write(machine.folder.path().join("state/nvml"), told).expect("a file");
    eventually("one does not", || up() == Some(vec![true, false]));
}

#[test]
#[ignore = "needs root and BPF: the whole machine is looked at"]
fn shares_of_a_process_are_those_of_nvml_and_its_instance_is_named() {
    let machine = Machine::new();
    let state = machine.folder.path().join("state");
    let program = Program::start(machine.command("t-shares", "train 0").stdin(Stdio::null()));
    let own = program.pid();
    std::fs::write(state.join("lists"), format!("compute 1/1 {own} 4096\n")).expect("a file");
    std::fs::write(state.join("nvml"), format!("0 work {own} 33 5 7 40\n")).expect("a file");
    let top = machine.top(gpuscope().env("GPUSIM_MIG", "1:2"), &["--json", "--delay", "300ms"]);
    let it = || {
        let look = top.looks().pop()?;
        let process = look["processes"]
            .as_array()?
            .iter()
            .find(|one| one["pid"] == own)?
            .clone();
        Some((look["devices"][1]["parts"].clone(), process))
    };
    eventually("its share of the encoder", || {
        it().is_some_and(|(_, process)| process["encoder_share"] == 0.07)
    });
    let (parts, process) = it().expect("seen before");
    assert_eq!(
        (&process["memory_share"], &process["decoder_share"]),
        (&Value::from(0.05), &Value::from(0.4))
    );
    assert_eq!(process["parts"], serde_json::json!(["1/8"]));
    let processes: Vec<&Value> = parts
        .as_array()
        .expect("parts")
        .iter()
        .map(|part| &part["processes"])
        .collect();
    assert_eq!(processes, [0, 1]);
}
