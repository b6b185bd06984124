//! The GPUs that there should be, also those that were lost before we came: as a state file remembers them, and as PCI
//! has them.

use super::gpu::Identity;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

const NVIDIA: &str = "0x10de";
/// Display controllers; what follows tells their kinds.
const DISPLAY: &str = "0x03";
const STATE: &str = "gpus";
/// More than any machine has.
const MOST: usize = 256;

/// The GPUs that there should be, also those that were lost before we came.
#[derive(Debug, Default)]
pub(super) struct Inhabitants {
    /// `/`, or a folder that stands for it.
    root: PathBuf,
    state: Option<PathBuf>,
    /// By place on the bus.
    known: BTreeMap<String, Identity>,
    /// Why the state file is of no use.
    trouble: Option<String>,
}

impl Inhabitants {
    /// What is remembered in the folder `state`, if there is one.
    pub(super) fn new(root: &Path, state: Option<&Path>) -> Inhabitants {
        let mut this = Inhabitants {
            root: root.to_owned(),
            state: state.map(|folder| folder.join(STATE)),
            ..Inhabitants::default()
        };
        let read = this.state.as_deref().map(fs::read_to_string);
        match read {
            Some(Ok(text)) => this.known = parse(&text),
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => this.note(&error.into()),
            _ => {}
        }
        this
    }

    /// These answer; another one at the place of a known one has replaced it.
    pub(super) fn note_all<'a>(&mut self, gpus: impl Iterator<Item = &'a Identity>) {
        let mut changed = false;
        for gpu in gpus {
            let known = self.known.get(&gpu.pci_bus_id);
            if known != Some(gpu) {
                self.known.retain(|_, known| known.uuid != gpu.uuid);
                self.known.insert(gpu.pci_bus_id.clone(), gpu.clone());
                changed = true;
            }
        }
        if let (true, Some(state)) = (changed, &self.state) {
            let written = write(state, &self.known);
            self.trouble = None;
            written.unwrap_or_else(|error| self.note(&error));
        }
    }

    /// Those that `answers` does not hold of, by their place on the bus. One that nobody has ever seen answer has no
    /// UUID and no number.
    pub(super) fn missing(&self, answers: impl Fn(&str) -> bool) -> Vec<Identity> {
        let seen = |place: &str| answers(place) || self.known.contains_key(place);
        let never_seen = on_bus(&self.root, seen).unwrap_or_default().into_iter();
        let never_seen = never_seen.map(|pci_bus_id| Identity {
            pci_bus_id,
            ..Identity::default()
        });
        let known = self.known.values().cloned();
        let mut missing: Vec<Identity> = known
            .chain(never_seen)
            .filter(|gpu| !answers(&gpu.pci_bus_id))
            .collect();
        missing.sort();
        missing
    }

    /// What does not work, in one line.
    pub(super) fn trouble(&self) -> Option<&String> {
        self.trouble.as_ref()
    }

    fn note(&mut self, error: &anyhow::Error) {
        let state = self.state.as_deref().unwrap_or(Path::new("")).display();
        self.trouble = Some(format!(
            "GPUs that are lost while gpuscope is not running are not known: {state}: {error:#}; hint: STATE_DIRECTORY \
             names a folder that it may write to"
        ));
    }
}

/// A line for each: number, UUID, place on the bus.
fn parse(text: &str) -> BTreeMap<String, Identity> {
    let identity = |line: &str| {
        let mut words = line.split_whitespace();
        let (index, uuid, pci_bus_id) = (words.next()?, words.next()?, words.next()?);
        let gpu = Identity {
            index: index.parse().ok()?,
            uuid: uuid.to_owned(),
            pci_bus_id: pci_bus_id.to_owned(),
        };
        (uuid.len() + pci_bus_id.len() < 128).then(|| (pci_bus_id.to_owned(), gpu))
    };
    text.lines().filter_map(identity).take(MOST).collect()
}

/// Whole or not at all.
fn write(path: &Path, known: &BTreeMap<String, Identity>) -> Result<()> {
    let lines = known.values();
    let text: String = lines
        .map(|gpu| format!("{} {} {}\n", gpu.index, gpu.uuid, gpu.pci_bus_id))
        .collect();
    let new = path.with_extension("new");
    fs::write(&new, text).with_context(|| format!("failed to write {}", new.display()))?;
    fs::rename(&new, path).with_context(|| format!("failed to rename {}", new.display()))
}

/// The GPUs that NVIDIA's driver has taken, and that we may use, as NVML writes their places; but those that are seen.
fn on_bus(root: &Path, seen: impl Fn(&str) -> bool) -> io::Result<Vec<String>> {
    let devices = fs::read_dir(root.join("sys/bus/pci/devices"))?;
    let devices = devices.flatten().map(|device| device.path());
    let gpus = devices.filter(|device| is_gpu(device) && is_driven(device));
    let places = gpus.filter_map(|device| Some(device.file_name()?.to_str()?.to_owned()));
    let ours = places.filter(|place| !seen(&as_nvml_writes(place)) && is_ours(root, place));
    Ok(ours.map(|place| as_nvml_writes(&place)).take(MOST).collect())
}

fn is_gpu(device: &Path) -> bool {
    let begins = |file: &str, with: &str| {
        let text = fs::read_to_string(device.join(file));
        text.is_ok_and(|text| text.starts_with(with))
    };
    // a part of a GPU for a virtual machine is none
    begins("vendor", NVIDIA) && begins("class", DISPLAY) && !device.join("physfn").exists()
}

/// By NVIDIA's driver; one that was given to a virtual machine has another.
fn is_driven(device: &Path) -> bool {
    let driver = fs::read_link(device.join("driver")).unwrap_or_default();
    driver.file_name().is_some_and(|name| name == "nvidia")
}

/// A container may be given some GPUs alone: of the others it has no node, or may not open it.
fn is_ours(root: &Path, place: &str) -> bool {
    let about = root.join("proc/driver/nvidia/gpus").join(place).join("information");
    let about = fs::read_to_string(about).unwrap_or_default();
    let minor = about.lines().find_map(|line| line.strip_prefix("Device Minor:"));
    let Some(minor) = minor.map(str::trim).filter(|minor| minor.parse::<u32>().is_ok()) else {
        return false;
    };
    may_use(&root.join(format!("dev/nvidia{minor}")))
}

/// Without opening it, which would have the driver try the GPU.
fn may_use(node: &Path) -> bool {
    let Ok(path) = CString::new(node.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: the path ends with a NUL and outlives the call
    unsafe { libc::access(path.as_ptr(), libc::R_OK | libc::W_OK) == 0 }
}

/// `0000:17:00.0` is `00000000:17:00.0`.
fn as_nvml_writes(place: &str) -> String {
    let (domain, rest) = place.split_once(':').unwrap_or(("", place));
    format!("{domain:0>8}:{rest}").to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(index: u32, uuid: &str, place: &str) -> Identity {
        Identity {
            index,
            uuid: uuid.to_owned(),
            pci_bus_id: place.to_owned(),
        }
    }

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Machine {
            Machine(tempfile::tempdir().unwrap())
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn device(&self, place: &str, vendor: &str, class: &str, driver: Option<&str>) {
            let folder = format!("sys/bus/pci/devices/{place}");
            self.file(&format!("{folder}/vendor"), vendor);
            self.file(&format!("{folder}/class"), class);
            if let Some(driver) = driver {
                let link = self.0.path().join(&folder).join("driver");
                std::os::unix::fs::symlink(format!("../../../bus/pci/drivers/{driver}"), link).unwrap();
            }
        }

        fn node(&self, place: &str, minor: u32) {
            let about = format!("Model: \t\t NVIDIA H200\nDevice Minor: \t {minor}\n");
            self.file(&format!("proc/driver/nvidia/gpus/{place}/information"), &about);
            self.file(&format!("dev/nvidia{minor}"), "");
        }
    }

    fn places(missing: &[Identity]) -> Vec<&str> {
        missing.iter().map(|gpu| gpu.pci_bus_id.as_str()).collect()
    }

    #[test]
    fn a_gpu_that_only_the_bus_knows_is_missing() {
        let machine = Machine::new();
        machine.device("0000:17:00.0", "0x10de\n", "0x030200\n", Some("nvidia"));
        machine.device("0000:65:00.0", "0x10de\n", "0x030200\n", Some("nvidia"));
        machine.node("0000:17:00.0", 0);
        machine.node("0000:65:00.0", 1);
        let known = Inhabitants::new(machine.0.path(), None);
        let missing = known.missing(|place| place == "00000000:17:00.0");
        assert_eq!(missing, [gpu(0, "", "00000000:65:00.0")]);
    }

    #[test]
    fn what_is_no_gpu_of_ours_is_not_missed() {
        let machine = Machine::new();
        machine.device("0000:01:00.0", "0x8086", "0x030000", Some("nvidia"));
        machine.device("0000:02:00.0", "0x10de", "0x068000", Some("nvidia"));
        machine.device("0000:03:00.0", "0x10de", "0x030000", Some("vfio-pci"));
        machine.device("0000:04:00.0", "0x10de", "0x030000", None);
        machine.device("0000:05:00.0", "0x10de", "0x030200", Some("nvidia"));
        machine.file("sys/bus/pci/devices/0000:05:00.0/physfn/vendor", "0x10de");
        for (minor, number) in (1..=5).zip(1..=5) {
            machine.node(&format!("0000:0{number}:00.0"), minor);
        }
        machine.device("0000:06:00.0", "0x10de", "0x030200", Some("nvidia"));
        let known = Inhabitants::new(machine.0.path(), None);
        assert_eq!(known.missing(|_| false), []);
    }

    #[test]
    fn who_comes_again_remembers_what_was_there() {
        let machine = Machine::new();
        let state = tempfile::tempdir().unwrap();
        let both = [gpu(0, "GPU-a", "00000000:17:00.0"), gpu(1, "GPU-b", "00000000:65:00.0")];
        Inhabitants::new(machine.0.path(), Some(state.path())).note_all(both.iter());
        let again = Inhabitants::new(machine.0.path(), Some(state.path()));
        assert_eq!(again.missing(|place| place == "00000000:17:00.0"), [both[1].clone()]);
        assert_eq!(again.trouble(), None);
    }

    #[test]
    fn a_card_that_was_replaced_or_put_elsewhere_is_not_missed() {
        let machine = Machine::new();
        let mut known = Inhabitants::new(machine.0.path(), None);
        known.note_all([gpu(0, "GPU-a", "1"), gpu(1, "GPU-b", "2")].iter());
        known.note_all([gpu(0, "GPU-c", "1"), gpu(1, "GPU-b", "3")].iter());
        assert_eq!(places(&known.missing(|_| false)), ["1", "3"]);
    }

    #[test]
    fn a_state_file_that_cannot_be_used_is_told_and_hinders_nothing() {
        let machine = Machine::new();
        machine.file("gpus", "nonsense\n1 GPU-b\nx GPU-b 2\n7 GPU-d 4 more\n");
        let known = Inhabitants::new(machine.0.path(), Some(machine.0.path()));
        assert_eq!(known.missing(|_| false), [gpu(7, "GPU-d", "4")]);
        let mut nowhere = Inhabitants::new(machine.0.path(), Some(&machine.0.path().join("no/where")));
        nowhere.note_all([gpu(0, "GPU-a", "1")].iter());
        assert!(nowhere.trouble().is_some_and(|words| words.contains("STATE_DIRECTORY")));
    }
}
