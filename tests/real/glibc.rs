//! C libraries older and newer than the one here, each in a root directory of its own: programs there are traced from inside, by
//! a gpuscope outside.
//!
//! `scripts/old-glibc.sh` fetches them and runs this.

use crate::support::{Gpuscope, Trace, assert_same};
use std::path::PathBuf;

/// Makes the process see such a root, in which the agent's folder and the ledger's have the names that they have outside.
const ENTER: &str = r#"
set -e
mount --bind /dev/shm "$0/dev/shm"
mount --bind /tmp "$0/tmp"
mount -t proc none "$0/proc"
LD_LIBRARY_PATH=/cuda exec chroot "$0" "$@"
"#;

const SCENARIOS: [&[&str]; 8] = [
    &["train", "20"],
    &["late-dlopen"],
    &["threads", "8", "50"],
    &["fork"],
    &["longjmp", "20"],
    &["exec-midcall"],
    &["static"],
    &["errors", "3"],
];

fn root(suite: &str) -> PathBuf {
    let folder = std::env::var_os("GPUSCOPE_GLIBC").expect("GPUSCOPE_GLIBC; scripts/old-glibc.sh");
    PathBuf::from(folder).join(suite)
}

fn traced(suite: &str, scenario: &[&str]) -> Trace {
    let root = root(suite);
    let root = root.to_str().expect("UTF-8");
    let command = [&["unshare", "-m", "sh", "-c", ENTER, root, "/cuda/gpusim"], scenario].concat();
    Gpuscope::run(&[], &command).tier("inside").finish()
}

fn assert_exact(suite: &str) {
    for scenario in SCENARIOS {
        let trace = traced(suite, scenario).ok();
        let visible = trace.ledger.visible();
        assert!(visible.values().sum::<u64>() > 0, "{scenario:?}: no call");
        let what = format!("{suite} {scenario:?}: {:?}", trace.unseen());
        assert_same(&what, &visible, &trace.entered());
        assert_eq!(trace.summary()["attach"], "inside");
        assert_eq!(trace.summary()["lost_events"], 0);
    }
}

#[test]
#[ignore = "needs root and fetched C libraries"]
fn glibc_2_31_of_debian_11() {
    assert_exact("bullseye");
}

#[test]
#[ignore = "needs root and fetched C libraries"]
fn glibc_2_41_of_debian_13() {
    assert_exact("trixie");
}
