//! Kernel versions, and what goes wrong in which of them.

/// Major, minor and patch level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(pub u32, pub u32, pub u32);

/// The release of the running kernel, as `uname -r` prints it; empty when `/proc` does not tell.
pub(super) fn release() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    text.trim().to_owned()
}

/// The numbers at the start of a release such as `6.12.13-amd64`; a patch level that is absent is 0.
pub(super) fn parse(release: &str) -> Option<Version> {
    let end = release
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(release.len());
    let mut parts = release.get(..end)?.split('.').map(str::parse);
    let major = parts.next()?.ok()?;
    let minor = parts.next()?.ok()?;
    let patch = parts.next().and_then(Result::ok).unwrap_or(0);
    Some(Version(major, minor, patch))
}

/// Whether a probe cannot tell which function it is at.
pub(super) fn lacks_cookies(version: Version) -> bool {
    version < Version(5, 15, 0)
}

/// Whether probes are set one at a time, each as an event of perf.
pub(super) fn lacks_multi(version: Version) -> bool {
    version < Version(6, 6, 0)
}

/// Whether a return probe kills a process that runs under seccomp.
///
/// Read from the version: the fault shows only when the process dies.
pub(super) fn return_probes_kill_seccomp(version: Version) -> bool {
    let in_stable = version >= Version(6, 11, 0) && version <= Version(6, 12, 13);
    in_stable || (version >= Version(6, 13, 0) && version <= Version(6, 13, 2))
}

/// Whether return probes know of shadow stacks, without which they kill a process that has one.
pub(super) fn return_probes_know_shadow_stacks(version: Version) -> bool {
    version >= Version(6, 11, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_distributions_are_read() {
        assert_eq!(parse("6.18.44-fc-v669"), Some(Version(6, 18, 44)));
        assert_eq!(parse("5.15.0-1053-aws"), Some(Version(5, 15, 0)));
        assert_eq!(parse("6.6"), Some(Version(6, 6, 0)));
        assert_eq!(parse("6.13-rc2"), Some(Version(6, 13, 0)));
        assert_eq!(parse("4.18.0-553.el8_10.x86_64"), Some(Version(4, 18, 0)));
        assert_eq!(parse("6.1.0+"), Some(Version(6, 1, 0)));
    }

    #[test]
    fn other_text_is_no_version() {
        for text in ["", "6", "linux-6.1", "6.x", ".6.1", "99999999999.1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_kernels_that_kill_under_seccomp_are_known() {
        let faulty = |text| parse(text).map(return_probes_kill_seccomp);
        assert_eq!(faulty("6.10.14"), Some(false));
        assert_eq!(faulty("6.11.0"), Some(true));
        assert_eq!(faulty("6.12.13"), Some(true));
        assert_eq!(faulty("6.12.14"), Some(false));
        assert_eq!(faulty("6.13.2"), Some(true));
        assert_eq!(faulty("6.13.3"), Some(false));
    }
}
