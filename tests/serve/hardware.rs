//! A machine without a device: nothing is missing there, and nobody is alerted.

use super::exporter::Exporter;
use gpuscope::device::presence::may_have_device;
use std::path::Path;
use std::process::Command;

#[test]
#[ignore = "needs root"]
fn without_a_device_nvml_is_not_said_to_be_down() {
    let has_device = may_have_device(Path::new("/"));
    let mut command = Command::new("env");
    command.args([
        "-u",
        "GPUSCOPE_NVML",
        "-u",
        "LD_LIBRARY_PATH",
        env!("CARGO_BIN_EXE_gpuscope"),
        "serve",
        "--collect",
        "nvml,self",
    ]);
    let exporter = Exporter::start_as(&mut command);
    super::support::eventually("an answer about devices", || {
        let page = exporter.get("/", "*/*");
        page.contains("<th scope=\"row\">GPUs</th>") || page.contains("NVML")
    });
    let page = exporter.get("/", "*/*");
    let says_none = page.contains("none: this machine shows no NVIDIA device");
    assert_eq!(says_none, !has_device, "{page}");
    assert_eq!(exporter.sum("gpuscope_nvml_up", &[]).is_some(), has_device);
    assert!(exporter.sum("gpuscope_build_info", &[]).is_some());
}
