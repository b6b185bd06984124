//! What gpuscope needs to be allowed, and what it says when it is not.

mod kept;
use crate::support::{Counts, ENGINE, Ledger, assert_same, copy_program, kernel_version, number, sim, text};
use serde_json::Value;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A user without any right.
const NOBODY: &str = "65534";

/// A place where that user can run gpuscope and gpusim and write ledgers.
fn open_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let own = Path::new(env!("CARGO_BIN_EXE_gpuscope")).to_owned();
    let sims = ["gpusim", "libcuda.so.1", "libcudart.so.13"].map(sim);
    for file in sims.iter().chain([&own]) {
        let name = file.file_name().expect("a name");
        copy_program(file, &folder.path().join(name));
    }
    std::fs::create_dir(folder.path().join("ledger")).expect("a folder");
    for path in [folder.path(), &folder.path().join("ledger")] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("open to all");
    }
    folder
}

/// Runs `gpuscope ARGUMENTS…` there as that user, with those capabilities (`+bpf,+perfmon`) and no others.
fn as_nobody(folder: &Path, capabilities: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
    let only = |set| {
        format!(
            "--{set}=-all{}{capabilities}",
            if capabilities.is_empty() { "" } else { "," }
        )
    };
    command.args(["inh-caps", "ambient-caps", "bounding-set"].map(only));
    command.arg(folder.join("gpuscope")).args(arguments);
    command.current_dir(folder).env("LD_LIBRARY_PATH", folder);
    command
        .env("GPUSIM_LEDGER", folder.join("ledger/%p"))
        .env(ENGINE, "kernel")
        .output()
        .expect("setpriv runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
#[ignore = "needs root and BPF: which rights its programs need"]
fn without_rights_it_says_which_are_missing_and_the_cure() {
    let folder = open_folder();
    for (capabilities, missing) in [
        ("", "tracing needs root, or CAP_BPF and CAP_PERFMON"),
        ("+bpf", "tracing needs root, or CAP_PERFMON"),
        ("+perfmon", "tracing needs root, or CAP_BPF"),
    ] {
        let refused = as_nobody(
            folder.path(),
            capabilities,
            &["run", "--engine", "kernel", "--", "./gpusim", "train", "1"],
        );
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(125), "{said}");
        assert!(
            said.contains(missing) && said.contains("sudo setcap cap_bpf,cap_perfmon"),
            "{said}"
        );
        assert!(refused.stdout.is_empty(), "the command did not run");
    }
    let doctor = as_nobody(folder.path(), "", &["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert_eq!(doctor.status.code(), Some(0), "{said}");
    assert!(
        said.contains("run, record and leaks work here, from inside.")
            && said.contains("missing")
            && said.contains("CAP_BPF")
            && said.contains("cure: "),
        "{said}"
    );
}

/// A run that cannot begin has nothing to write: what is there from the last one stays.
#[test]
#[ignore = "needs root and BPF: which rights its programs need"]
fn a_refused_run_neither_begins_nor_empties_a_file() {
    let folder = open_folder();
    let ledger = folder.path().join("ledger");
    for (command, name) in [("run", "t.jsonl"), ("record", "t.arrows"), ("leaks", "t.jsonl")] {
        let (old, fresh) = (ledger.join(name), ledger.join(format!("new-{name}")));
        std::fs::write(&old, "from the last run").expect("a file");
        std::fs::set_permissions(&old, PermissionsExt::from_mode(0o666)).expect("open to all");
        for file in [&old, &fresh] {
            let path = file.to_str().expect("UTF-8");
            let refused = as_nobody(
                folder.path(),
                "",
                &[
                    command, "-o", path, "--engine", "kernel", "--", "./gpusim", "train", "1",
                ],
            );
            assert_eq!(refused.status.code(), Some(125), "{}", stderr(&refused));
        }
        assert_eq!(
            std::fs::read_to_string(&old).expect("a file"),
            "from the last run",
            "{command}"
        );
        assert!(!fresh.exists(), "{command} began a file");
    }
}

/// CAP_BPF and CAP_PERFMON are enough to trace a command of one's own, from the first call to the last.
#[test]
#[ignore = "needs root and BPF: which rights its programs need"]
fn two_capabilities_are_enough_to_trace_ones_own_command() {
    assert!(
        kernel_version() >= (6, 6),
        "single links need CAP_SYS_ADMIN: no claim is made for this kernel"
    );
    let folder = open_folder();
    let arguments = ["run", "--chatty", "-o", "ledger/t.jsonl", "--", "./gpusim", "fork"];
    let traced = as_nobody(folder.path(), "+bpf,+perfmon", &arguments);
    assert_eq!(traced.status.code(), Some(0), "{}", stderr(&traced));
    let lines = std::fs::read_to_string(folder.path().join("ledger/t.jsonl")).expect("lines");
    let records = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut written = Counts::new();
    for call in records.filter(|record| record["type"] == "userspace") {
        *written.entry((text(&call, "layer"), text(&call, "name"))).or_default() += 1;
    }
    let what = format!("events; {}", stderr(&traced));
    assert_same(&what, &Ledger::read(&folder.path().join("ledger")).visible(), &written);
}

/// The cure that the message names.
#[test]
#[ignore = "needs root and BPF: which rights its programs need"]
fn a_copy_with_file_capabilities_works_for_anybody() {
    let folder = open_folder();
    let capabilities = "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep";
    let set = Command::new("setcap")
        .arg(capabilities)
        .arg(folder.path().join("gpuscope"))
        .status();
    assert!(set.expect("setcap runs").success());
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid",
        NOBODY,
        "--regid",
        NOBODY,
        "--clear-groups",
        "./gpuscope",
        "run",
        "-q",
    ]);
    command.args(["--summary", "json", "--", "./gpusim", "train", "3"]);
    let traced = command
        .current_dir(folder.path())
        .env("LD_LIBRARY_PATH", folder.path())
        .env(ENGINE, "kernel")
        .output();
    let traced = traced.expect("setpriv runs");
    assert_eq!(traced.status.code(), Some(0), "{}", stderr(&traced));
    let summary: Value = serde_json::from_str(&stderr(&traced)).expect("JSON");
    let functions = summary["functions"].as_array().expect("functions");
    let launches = functions
        .iter()
        .find(|function| function["name"] == "cuLaunchKernel")
        .expect("launches");
    assert_eq!(number(launches, "calls"), 60);
}

/// Whoever starts a program that may do more than they may must not choose what it loads.
#[test]
#[ignore = "needs root and BPF: which rights its programs need"]
fn a_copy_with_file_capabilities_loads_no_library_that_its_user_names() {
    let folder = open_folder();
    let library = folder.path().join("libnvidia-ml.so.1");
    std::fs::copy(sim("libnvidia-ml.so.1"), &library).expect("a copy");
    let doctor = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "./gpuscope"]);
        command.args(["doctor", "--json"]).current_dir(folder.path());
        let output = command.env("GPUSCOPE_NVML", &library).output().expect("setpriv runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let simulated = "1 GPUs, NVML 13.580.00.00, driver 580.00.00";
    assert!(doctor().contains(simulated), "without more rights it is loaded");
    let mut setcap = Command::new("setcap");
    setcap.arg("cap_perfmon+ep").arg(folder.path().join("gpuscope"));
    assert!(setcap.status().expect("setcap runs").success());
    let said = doctor();
    assert!(
        said.contains("\"name\":\"nvml\"") && !said.contains(simulated),
        "{said}"
    );
}

/// What a shell says of whom it runs as.
const WHO: &str = "id -u; id -g; id -G; echo $HOME; echo $PATH; echo $CUDA_VISIBLE_DEVICES; echo $LD_LIBRARY_PATH; \
    echo $SUDO_UID; echo $ASKED; sed -n 's/^Cap[IPEA].*:\t//p' /proc/self/status | sort -u";

/// Has `sudo` run `script` as root, on behalf of that user. It is a shell of that name: the real one asks for a
/// configuration of the machine.
fn by_sudo(folder: &Path, script: &str) -> Output {
    let sudo = folder.join("sudo");
    copy_program(Path::new("/bin/sh"), &sudo);
    std::fs::set_permissions(&sudo, PermissionsExt::from_mode(0o4755)).expect("a mode");
    let mut command = Command::new(&sudo);
    command.current_dir(folder).env_clear();
    command.envs([
        ("HOME", "/home/of/caller"),
        ("PATH", "/venv/bin:/usr/bin:/bin"),
        ("CUDA_VISIBLE_DEVICES", "0"),
    ]);
    command.env("LD_LIBRARY_PATH", folder);
    let roots = format!(
        "unset LD_LIBRARY_PATH; export HOME=/root PATH=/usr/bin:/bin ASKED=yes SUDO_UID={NOBODY} SUDO_GID={NOBODY}"
    );
    command.args(["-c", &format!("{roots}; {script}; exit $?")]);
    command.output().expect("a shell runs")
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn under_sudo_a_command_runs_as_who_called_it_and_files_are_theirs() {
    let folder = open_folder();
    let script = format!("./gpuscope run --summary none -o t.jsonl -- sh -c {}", quoted(WHO));
    let traced = by_sudo(folder.path(), &script);
    let said = String::from_utf8_lossy(&traced.stdout).into_owned();
    assert_eq!(traced.status.code(), Some(0), "{said}{}", stderr(&traced));
    let here = folder.path().to_str().expect("UTF-8");
    let lines: Vec<&str> = said.lines().collect();
    let home_and_more = ["/home/of/caller", "/venv/bin:/usr/bin:/bin", "0", here, "", "yes"];
    assert_eq!(lines[..2], [NOBODY, NOBODY], "{said}");
    assert!(lines[2].split(' ').all(|group| group == NOBODY), "{said}");
    assert_eq!(lines[3..9], home_and_more, "{said}");
    assert_eq!(lines[9..], ["0000000000000000"], "no capability is left: {said}");
    let about = std::fs::metadata(folder.path().join("t.jsonl")).expect("a file");
    assert_eq!((about.uid(), about.mode() & 0o777), (65534, 0o600));
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn under_sudo_every_call_of_the_callers_command_is_seen() {
    let folder = open_folder();
    let script = "GPUSIM_LEDGER=ledger/%p ./gpuscope run -o t.jsonl --summary none -- ./gpusim train 3";
    let traced = by_sudo(folder.path(), script);
    assert_eq!(traced.status.code(), Some(0), "{}", stderr(&traced));
    let lines = std::fs::read_to_string(folder.path().join("t.jsonl")).expect("lines");
    let launches = lines
        .lines()
        .filter(|line| line.starts_with("{\"event_id\"") && line.contains("\"name\":\"cuLaunchKernel\""))
        .count();
    assert_eq!(launches, 60);
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn as_root_and_as_another_user_where_that_is_asked_for() {
    let folder = open_folder();
    for (option, user, home) in [
        ("--as-root", "0", "/root"),
        ("--user root", "0", "/root"),
        ("--user daemon", "1", "/usr/sbin"),
    ] {
        let traced = by_sudo(
            folder.path(),
            &format!("./gpuscope run -q --summary none {option} -- sh -c 'id -u; echo $HOME'"),
        );
        let said = String::from_utf8_lossy(&traced.stdout).into_owned();
        assert_eq!(said, format!("{user}\n{home}\n"), "{option}: {}", stderr(&traced));
    }
    let refused = by_sudo(folder.path(), "./gpuscope run -q --user nobody-of-that-name -- true");
    assert_eq!(refused.status.code(), Some(125));
    assert!(stderr(&refused).contains("hint: getent passwd"), "{}", stderr(&refused));
}

fn quoted(script: &str) -> String {
    format!("'{}'", script.replace('\'', "'\\''"))
}
