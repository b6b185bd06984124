use super::super::environment::{Environment, length_in, minors, parse};
use std::io::ErrorKind;
use std::process::{Child, Command};

#[test]
fn variables_are_told_from_others_that_begin_or_end_alike() {
    let environ = b"XCUDA_VISIBLE_DEVICES=9\0CUDA_VISIBLE_DEVICES_X=8\0CUDA_VISIBLE_DEVICES=1,0\0CUDA_DEVICE_ORDER=\0";
    let read = parse(environ);
    assert_eq!(read.visible_devices.as_deref(), Some("1,0"));
    assert_eq!(read.device_order.as_deref(), Some(""));
    assert_eq!(parse(b""), Environment::default());
    assert_eq!(parse(b"CUDA_VISIBLE_DEVICES\0\0=").visible_devices, None);
}

#[test]
fn the_first_of_several_counts_as_for_getenv() {
    let read = parse(b"CUDA_VISIBLE_DEVICES=1\0CUDA_VISIBLE_DEVICES=2\0");
    assert_eq!(read.visible_devices.as_deref(), Some("1"));
}

#[test]
fn device_files_are_told_from_the_drivers_other_files() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["nvidia0", "nvidia12", "nvidiactl", "nvidia-uvm", "nvidia", "nvme0"] {
        std::fs::write(folder.path().join(name), "").expect("a file");
    }
    assert_eq!(
        minors(std::process::id(), folder.path())
            .into_iter()
            .collect::<Vec<_>>(),
        [0, 12]
    );
    assert!(minors(std::process::id(), &folder.path().join("absent")).is_empty());
}

/// The environment of a sleeping process with `CUDA_VISIBLE_DEVICES=3`, or without any variable.
fn of_sleeping(is_empty: bool) -> Environment {
    let mut command = Command::new("/bin/sleep");
    // many, so that exec takes its time to lay them out
    let others = (0..5_000).map(|number| (format!("OTHER_{number}"), "x"));
    command.arg("60").envs(others).env("CUDA_VISIBLE_DEVICES", "3");
    let mut child = if is_empty { command.env_clear() } else { &mut command }
        .spawn()
        .expect("sleep starts");
    let read = once_started(&child);
    child.kill().expect("it was running");
    let ended = Environment::of(child.id()).map_err(|error| error.kind());
    assert!(
        ended.is_err() || ended.is_ok_and(|late| late == read),
        "never a wrong one"
    );
    child.wait().expect("it has ended");
    read
}

fn once_started(child: &Child) -> Environment {
    // until then it is a copy of this program, with its environment
    let runs_another = |pid: u32| {
        let program = |of: &str| std::fs::read_link(format!("/proc/{of}/exe")).expect("a child of ours");
        program(&pid.to_string()) != program("self")
    };
    while !runs_another(child.id()) {
        std::thread::yield_now();
    }
    loop {
        match Environment::of(child.id()) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            read => return read.expect("a child of ours"),
        }
    }
}

#[test]
fn the_environment_of_another_process_is_read() {
    for _ in 0..50 {
        assert_eq!(of_sleeping(false).visible_devices.as_deref(), Some("3"));
    }
    assert_eq!(of_sleeping(true).visible_devices, None);
    assert!(Environment::of(u32::MAX).is_err());
}

#[test]
fn no_environment_is_told_from_an_empty_one() {
    let stat = |place: &str| format!("7 (a) b) S {} {place} 0\n", ["1"; 46].join(" ")).into_bytes();
    assert_eq!(length_in(&stat("100 140")), Some(40));
    assert_eq!(length_in(&stat("100 100")), Some(0));
    let code = |code: &str| {
        format!(
            "7 (a) S {} {code} {} 100 100 0\n",
            ["1"; 22].join(" "),
            ["1"; 23].join(" ")
        )
    };
    assert_eq!(length_in(code("4096").as_bytes()), Some(0));
    assert_eq!(length_in(code("0").as_bytes()), None, "exec has not laid it out yet");
    for none in [stat("0 0"), stat("100 0"), Vec::new(), b"7 (a) S 1".to_vec()] {
        assert_eq!(length_in(&none), None);
    }
}
