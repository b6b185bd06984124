use super::super::{Absent, Access, Devices};
use nvml_wrapper::error::NvmlError;
use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn an_absent_library_is_tried_again_after_half_a_minute_and_not_before() {
    let (start, tries) = (Instant::now(), Cell::new(0));
    let mut access = Access::new();
    let mut after = |seconds| {
        let open = || {
            tries.set(tries.get() + 1);
            Err(Absent::new("x", &NvmlError::DriverNotLoaded))
        };
        assert!(access.devices_by(start + Duration::from_secs(seconds), open).is_err());
        tries.get()
    };
    assert_eq!([0, 1, 29, 30, 31, 59, 60].map(&mut after), [1, 1, 1, 2, 2, 2, 3]);
}

#[test]
fn what_is_wrong_is_one_line_with_its_cure() {
    let missing = Devices::open_library(Path::new("/nowhere/libnvidia-ml.so.1"))
        .err()
        .expect("nothing is there");
    let line = missing.to_string();
    assert!(
        line.starts_with("NVML: /nowhere/libnvidia-ml.so.1 cannot be loaded: /nowhere/"),
        "{line}"
    );
    assert!(
        line.contains("; hint: install the NVIDIA driver") && !line.contains('\n'),
        "{line}"
    );

    let unloaded = Absent::new("x", &NvmlError::DriverNotLoaded).to_string();
    assert_eq!(
        unloaded,
        "NVML: the NVIDIA driver is not loaded; hint: sudo modprobe nvidia"
    );
    let updated = Absent::new("x", &NvmlError::LibRmVersionMismatch).to_string();
    assert!(updated.contains("hint: reboot"), "{updated}");
}

#[test]
fn a_library_that_is_no_nvml_says_so() {
    let libc = std::fs::read_to_string("/proc/self/maps").expect("own mappings");
    let libc = libc
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| path.contains("libc.so"));
    let other = Devices::open_library(Path::new(libc.expect("libc is mapped")))
        .err()
        .expect("libc is no NVML");
    assert!(
        other.to_string().contains("is no NVML: ") && !other.to_string().contains('\n'),
        "{other}"
    );
}
