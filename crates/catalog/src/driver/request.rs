//! What an ioctl's request word says, by the device it was made on.

use std::fmt;

/// Major number of the front end's devices.
const FRONT_MAJOR: u32 = 195;

/// One of NVIDIA's devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Device {
    /// `/dev/nvidiactl`: nearly all calls of the resource manager.
    Control,
    /// `/dev/nvidiaN`, with N.
    Gpu(u8),
    /// `/dev/nvidia-uvm`.
    Uvm,
    /// `/dev/nvidia-uvm-tools`.
    UvmTools,
    /// `/dev/nvidia-modeset`.
    Modeset,
    /// `/dev/nvidia-caps/*`: opened to prove a right, no ioctls.
    Caps,
}

/// Major numbers that the kernel hands out when a module loads; read from `/proc/devices`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Majors {
    /// Of `nvidia-uvm`.
    pub uvm: Option<u32>,
    /// Of `nvidia-caps`.
    pub(crate) caps: Option<u32>,
}

impl Majors {
    /// Reads the text of `/proc/devices`.
    #[must_use]
    pub fn parse(devices: &str) -> Self {
        let characters = devices.split("Block devices").next().unwrap_or_default();
        let major = |name: &str| {
            let words = characters.lines().filter_map(|line| line.trim().split_once(' '));
            words
                .filter(|(_, found)| found.trim() == name)
                .find_map(|(major, _)| major.parse().ok())
        };
        Self {
            uvm: major("nvidia-uvm"),
            caps: major("nvidia-caps"),
        }
    }
}

impl Device {
    /// The device of these numbers; `None` when it is none of NVIDIA's.
    #[must_use]
    pub(crate) fn of(major: u32, minor: u32, majors: Majors) -> Option<Self> {
        match (major, minor) {
            (FRONT_MAJOR, 255) => Some(Self::Control),
            (FRONT_MAJOR, 254) => Some(Self::Modeset),
            (FRONT_MAJOR, 0..=247) => u8::try_from(minor).ok().map(Self::Gpu),
            (_, 0) if majors.uvm == Some(major) => Some(Self::Uvm),
            (_, 1) if majors.uvm == Some(major) => Some(Self::UvmTools),
            _ if majors.caps == Some(major) => Some(Self::Caps),
            _ => None,
        }
    }

    /// Whether requests carry the front end's numbers: `_IOWR('F', nr, size)`.
    #[must_use]
    pub(crate) fn is_front(self) -> bool {
        matches!(self, Self::Control | Self::Gpu(_))
    }

    /// Whether requests are UVM's bare numbers.
    #[must_use]
    pub(crate) fn is_uvm(self) -> bool {
        matches!(self, Self::Uvm | Self::UvmTools)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control => f.write_str("nvidiactl"),
            Self::Gpu(minor) => write!(f, "nvidia{minor}"),
            Self::Uvm => f.write_str("nvidia-uvm"),
            Self::UvmTools => f.write_str("nvidia-uvm-tools"),
            Self::Modeset => f.write_str("nvidia-modeset"),
            Self::Caps => f.write_str("nvidia-caps"),
        }
    }
}

/// A request, taken apart as the driver takes it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    pub device: Device,
    /// As it was passed to ioctl(2), or inside the wrapper.
    pub word: u32,
    pub nr: u32,
    /// Bytes of the argument; `None` on UVM, whose requests do not say.
    pub size: Option<u32>,
    /// Whether it came inside `IOCTL_XFER_CMD`.
    pub wrapped: bool,
}

impl Request {
    /// Takes a request word apart. The front end looks at number and size alone, not at type and direction.
    #[must_use]
    pub fn new(device: Device, word: u32) -> Self {
        let (nr, size) = match device {
            Device::Uvm | Device::UvmTools => (word, None),
            _ => (word & 0xff, Some(word >> 16 & 0x3fff)),
        };
        Self {
            device,
            word,
            nr,
            size,
            wrapped: false,
        }
    }
}
