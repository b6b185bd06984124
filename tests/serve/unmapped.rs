//! Libraries that come and go, as those of containers do.

use super::exporter::Exporter;
use super::support::{Ledger, Program, eventually, sim_folder};
use std::path::Path;
use std::process::Command;

/// A container's own libraries, with its own program.
pub fn installed_as(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    install(name, folder.path());
    folder
}

fn install(name: &str, folder: &Path) {
    let files = std::fs::read_dir(sim_folder()).expect("a folder");
    for file in files.map(|file| file.expect("a file").path()) {
        let file_name = file.file_name().expect("a name");
        let is_wanted = file_name.to_string_lossy().contains(".so.") || file_name == "gpusim";
        if is_wanted {
            let to = if file_name == "gpusim" {
                Path::new(name).as_os_str()
            } else {
                file_name
            };
            std::fs::copy(&file, folder.join(to)).expect("a copy");
        }
    }
}

pub fn started(folder: &Path, name: &str, arguments: &str) -> Program {
    let script = format!("cd {} && LD_LIBRARY_PATH=. exec ./{name} {arguments}", folder.display());
    Program::start(Command::new("sh").args(["-c", &script]))
}

fn calls(exporter: &Exporter, name: &str) -> f64 {
    let labels = format!("comm=\"{name}\"");
    exporter.sum("gpuscope_api_calls_total", &[&labels]).unwrap_or(0.0)
}

fn attached_files(exporter: &Exporter) -> f64 {
    exporter.sum("gpuscope_attached_files", &[]).expect("a metric")
}

#[test]
#[ignore = "needs root and BPF"]
fn files_are_let_go_of_when_no_process_maps_them_and_found_again_when_one_does() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
    command.args(["serve", "--collect", "api,getters,self"]);
    let mut exporter = Exporter::start_as(command.env("GPUSCOPE_UNMAPPED_EVERY", "1s"));
    exporter.counts_getters();
    let before = attached_files(&exporter);

    let kept = installed_as("u-kept");
    let goes_on = started(kept.path(), "u-kept", "hammer 500 60");
    eventually("its libraries are attached", || {
        attached_files(&exporter) >= before + 2.0
    });
    let with_kept = attached_files(&exporter);

    let mut most = with_kept;
    for number in 0..4 {
        let name = format!("u-{number}");
        let folder = installed_as(&name);
        let running = started(folder.path(), &name, "hammer 100 3");
        eventually("its calls are counted", || calls(&exporter, &name) > 0.0);
        // on a busy machine those of the one before may be let go of already
        most = most.max(attached_files(&exporter));
        running.finish();
    }
    assert!(most > with_kept);
    eventually("those of the others are let go of", || {
        attached_files(&exporter) <= with_kept
    });
    let so_far = calls(&exporter, "u-kept");
    eventually("the one that goes on is counted", || {
        calls(&exporter, "u-kept") > so_far
    });
    drop(goes_on);
    eventually("its own, too", || attached_files(&exporter) <= before);

    let again = started(kept.path(), "u-kept", "hammer 500 60");
    eventually("the same files are attached again", || {
        attached_files(&exporter) >= before + 2.0
    });
    std::fs::copy(kept.path().join("u-kept"), kept.path().join("u-second")).expect("a copy");
    let ledger: Ledger = started(kept.path(), "u-second", "train 2").finish().ledger;
    let made = exporter.calls_of(&ledger) as f64;
    eventually("a program is counted from its first call to its last", || {
        calls(&exporter, "u-second") == made
    });
    drop(again);
}

/// A file system that is unmounted when dropped, at the latest.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new() -> Mounted {
        let folder = tempfile::tempdir().expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "tmpfs"])
            .arg(folder.path())
            .status();
        assert!(mounted.expect("mount runs").success());
        Mounted(folder)
    }

    fn is_let_go_of(&self) -> bool {
        let unmounted = Command::new("umount").arg(self.0.path()).output();
        unmounted.expect("umount runs").status.success()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-q", "-l"]).arg(self.0.path()).status();
    }
}

#[test]
#[ignore = "needs root and BPF"]
fn a_file_system_can_be_unmounted_once_its_programs_have_ended() {
    let exporter = Exporter::start(&["--collect", "api,memory,launches,self"]);
    let mounted = Mounted::new();
    install("u-mounted", mounted.0.path());
    started(mounted.0.path(), "u-mounted", "hammer 100 1").finish();
    eventually("its calls are counted", || calls(&exporter, "u-mounted") > 0.0);
    eventually("it can be unmounted", || mounted.is_let_go_of());
    drop(exporter);
}
