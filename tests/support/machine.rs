//! A machine with the simulated NVML: what is asked of it depends on settings of the whole process.

use super::sim;
use std::process::Command;

const INSIDE: &str = "GPUSCOPE_TEST_INSIDE";

/// Runs `body` of the test `name` in a process with these settings.
pub fn on_machine(name: &str, settings: &[(&str, &str)], body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let state = tempfile::tempdir().expect("a folder");
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args([&format!("::{name}"), "--nocapture"])
        .env(INSIDE, "1")
        .env("GPUSIM_STATE", state.path())
        .env("GPUSCOPE_NVML", sim("libnvidia-ml.so.1"))
        .env_remove("CUDA_VISIBLE_DEVICES")
        .envs(settings.iter().copied())
        .output()
        .expect("this program starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("ok. 1 passed"), "{said}");
}
