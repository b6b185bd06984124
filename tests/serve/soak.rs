//! The long-run test, made short, of the optimised program: `target/release/gpuscope`.

use std::path::Path;
use std::process::Command;

#[test]
#[ignore = "needs root and BPF"]
fn it_does_not_grow_with_processes_that_come_and_go() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let release = root.join("target/release/gpuscope");
    let hint = "is missing; cargo build --release --locked makes it";
    assert!(release.exists(), "{} {hint}", release.display());
    let mut script = Command::new(root.join("scripts/soak.sh"));
    let output = script.arg("15s").arg(release).output().expect("soak.sh runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("soak: steady"), "{said}");
    println!("{said}");
}
