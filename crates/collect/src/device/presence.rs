//! Whether this machine has an NVIDIA device, by what the kernel shows of its buses; NVML is not asked.

use std::path::Path;

const NVIDIA: &str = "0x10de";
/// PCI's class of display controllers; bridges and sound of the same vendor are no devices that compute.
const DISPLAY: &str = "0x03";
/// Nodes of drivers whose devices are on no PCI bus: Windows' in WSL, Tegra's; and NVIDIA's own, where the bus is hidden.
const NODES: [&str; 4] = ["dev/nvidiactl", "dev/nvidia0", "dev/dxg", "dev/nvhost-ctrl-gpu"];

/// False: surely none. `root` is `/`, other than in tests.
#[must_use]
pub fn may_have_device(root: &Path) -> bool {
    on_pci(root) || NODES.iter().any(|node| root.join(node).exists())
}

/// Where the bus cannot be read, there may be one.
fn on_pci(root: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(root.join("sys/bus/pci/devices")) else {
        // a machine without PCI shows its other buses
        return !root.join("sys/bus").exists();
    };
    entries.flatten().any(|entry| {
        let begins = |file: &str, with: &str| {
            let text = std::fs::read_to_string(entry.path().join(file));
            text.is_ok_and(|text| text.starts_with(with))
        };
        begins("vendor", NVIDIA) && begins("class", DISPLAY)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(devices: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(root.path().join("sys/bus/pci/devices")).expect("a folder");
        for (number, (vendor, class)) in devices.iter().enumerate() {
            let device = root.path().join(format!("sys/bus/pci/devices/0000:0{number}:00.0"));
            std::fs::create_dir(&device).expect("a folder");
            std::fs::write(device.join("vendor"), format!("{vendor}\n")).expect("a file");
            std::fs::write(device.join("class"), format!("{class}\n")).expect("a file");
        }
        root
    }

    #[test]
    fn a_device_is_a_display_controller_of_nvidias() {
        for (devices, expected) in [
            (&[][..], false),
            (&[("0x8086", "0x030000")], false),
            (&[("0x10de", "0x040300")], false),
            (&[("0x10de", "0x068000")], false),
            (&[("0x8086", "0x030000"), ("0x10de", "0x030200")], true),
            (&[("0x10de", "0x030000")], true),
        ] {
            assert_eq!(may_have_device(machine(devices).path()), expected, "{devices:?}");
        }
    }

    #[test]
    fn a_device_on_another_bus_has_a_node() {
        let root = machine(&[]);
        std::fs::create_dir(root.path().join("dev")).expect("a folder");
        std::fs::write(root.path().join("dev/dxg"), "").expect("a file");
        assert!(may_have_device(root.path()));
    }

    #[test]
    fn what_cannot_be_seen_may_be_there() {
        let root = tempfile::tempdir().expect("a folder");
        assert!(may_have_device(root.path()), "no sysfs");
        std::fs::create_dir_all(root.path().join("sys/bus/usb")).expect("a folder");
        assert!(!may_have_device(root.path()), "no PCI");
    }
}
