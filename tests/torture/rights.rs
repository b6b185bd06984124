//! A gpuscope that may trace its user's programs and nothing else: what they may do is what they may do without it.

use crate::effort::{rounds, tried};
use crate::subject::{copy, folder};
use crate::support::kernel_version;
use crate::tracer::{Tracer, program};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A user without any right.
const NOBODY: &str = "65534";

/// Where that user can run gpuscope and programs, one of which is root's and setuid.
fn open_folder() -> TempDir {
    let open = tempfile::tempdir().expect("a folder");
    let path = |name: &str| open.path().join(name);
    let set = |name: &str, mode| std::fs::set_permissions(path(name), PermissionsExt::from_mode(mode)).expect("a mode");
    for name in ["libcuda.so.1", "twice", "twice-static"] {
        copy(&folder().join(name), &path(name));
    }
    copy(&program(), &path("gpuscope"));
    copy(&path("twice-static"), &path("setuid"));
    set("setuid", 0o4755);
    set("", 0o777);
    open
}

/// `gpuscope ARGUMENTS…` of that user, with no more capabilities than tracing asks for.
fn start_as_nobody(open: &Path, arguments: &[&str]) -> Tracer {
    // single links, before uprobe.multi, ask for more
    let few = if kernel_version() >= (6, 6) {
        ""
    } else {
        ",+sys_admin,+sys_resource"
    };
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
    command.args(["inh-caps", "ambient-caps", "bounding-set"].map(|set| format!("--{set}=-all,+bpf,+perfmon{few}")));
    command.arg("env").arg(format!("LD_LIBRARY_PATH={}", open.display()));
    command.arg(open.join("gpuscope")).current_dir(open);
    Tracer::start_by(&mut command, arguments)
}

/// A process that is followed while it becomes a setuid program keeps its old rights, unless its follower could look into it.
#[test]
#[ignore = "needs root and BPF"]
fn a_setuid_program_has_its_rights_however_quickly_it_is_started() {
    let (times, open) = (rounds(200, 500, 2000, 50_000), open_folder());
    let count = times.to_string();
    for way in [&["run", "-q", "--summary", "none"][..], &["leaks"]] {
        let output = start_as_nobody(open.path(), &[way, &["--", "./twice", &count]].concat()).finish();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains(&format!("lost 0 of {times}\n")), "{way:?}: {output:?}");
        assert!(output.status.success(), "{way:?}: {output:?}");
    }
    tried(2 * times, "setuid programs started by one that had just been started");
}
