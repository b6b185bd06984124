//! Which tables fit the driver that runs: its version text, and the branch column that this chooses.

use std::fmt;

/// A release branch of the driver that has tables of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Branch {
    R535,
    R550,
    R570,
    R580,
    R590,
    R595,
}

impl Branch {
    /// Every branch, oldest first.
    pub const ALL: [Self; 6] = [Self::R535, Self::R550, Self::R570, Self::R580, Self::R590, Self::R595];

    /// The number by which NVIDIA names the branch.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::R535 => 535,
            Self::R550 => 550,
            Self::R570 => 570,
            Self::R580 => 580,
            Self::R590 => 590,
            Self::R595 => 595,
        }
    }

    /// The branch of that number exactly.
    #[must_use]
    pub(crate) fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|branch| branch.number() == number)
    }

    /// The newest branch that is not newer than `number`, or the oldest.
    fn at_most(number: u32) -> Self {
        Self::ALL
            .into_iter()
            .rfind(|branch| branch.number() <= number)
            .unwrap_or(Self::R535)
    }
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}

/// The tables that are used, and whether they were made from this very branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dialect {
    pub branch: Branch,
    /// False: the driver is of a branch without tables; layouts are those of the nearest, and may be wrong.
    pub certain: bool,
}

impl Dialect {
    /// The tables of a branch, for a driver that is known to be of it.
    #[must_use]
    pub fn of(branch: Branch) -> Self {
        Self { branch, certain: true }
    }

    /// When the driver's version cannot be read: the newest tables, uncertain.
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            branch: Branch::R595,
            certain: false,
        }
    }
}

/// Which of the two kernel modules NVIDIA ships.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// The open kernel modules.
    Open,
    /// The closed ones: names inside the RM core are obfuscated.
    Closed,
    /// The text does not say: `/sys/module/nvidia/version` holds the number alone.
    Unknown,
}

/// The version of the loaded driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverVersion {
    /// As NVIDIA writes it: `580.159.04`.
    pub text: String,
    pub flavour: Flavour,
    pub dialect: Dialect,
}

impl DriverVersion {
    /// Reads the text of `/proc/driver/nvidia/version` or of `/sys/module/nvidia/version`; `None` when no version
    /// stands in it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find(|line| !line.trim().is_empty())?;
        let (version, parts) = line.split_whitespace().find_map(|word| Some((word, parts(word)?)))?;
        Some(Self {
            text: version.to_owned(),
            flavour: flavour(line),
            dialect: dialect(parts),
        })
    }
}

/// `580.159.04` as `[580, 159, 4]`; the third part is 0 where it is not written.
fn parts(word: &str) -> Option<[u32; 3]> {
    let mut parts = [0; 3];
    let mut count = 0;
    for part in word.split('.') {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        *parts.get_mut(count)? = digits.then(|| part.parse().ok()).flatten()?;
        count += 1;
    }
    (count >= 2 && (100..10_000).contains(&parts[0])).then_some(parts)
}

fn flavour(line: &str) -> Flavour {
    match line {
        _ if line.contains("Open Kernel Module") => Flavour::Open,
        _ if line.contains("Kernel Module") => Flavour::Closed,
        _ => Flavour::Unknown,
    }
}

fn dialect([major, minor, patch]: [u32; 3]) -> Dialect {
    // the two structs with an entry for each GPU grew within the branch, at 550.40.53
    if major == 550 && (minor, patch) < (40, 53) {
        return Dialect {
            branch: Branch::R535,
            certain: false,
        };
    }
    Dialect {
        branch: Branch::at_most(major),
        certain: Branch::of(major).is_some(),
    }
}
