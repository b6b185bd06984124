//! What the running kernel lists of itself: functions, tracepoints, modules, what may not be hooked.

use super::format::Format;
use crate::probe::privilege;
use anyhow::{Context, Result, anyhow, bail};
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Larger lists than any kernel writes are not read to their end.
const MOST_BYTES: u64 = 256 << 20;

/// Every symbol, as [`super::symbols`] reads it.
///
/// # Errors
/// The kernel does not list them, or not for us.
pub(crate) fn kallsyms() -> Result<String> {
    read("/proc/kallsyms".into())
}

/// Functions at whose entry a call into tracers has been compiled; those that no probe may be at.
#[derive(Debug, Default)]
pub struct Hookable {
    /// `None`: the kernel does not say.
    pub traceable: Option<HashSet<String>>,
    pub forbidden: HashSet<String>,
}

impl Hookable {
    /// As the kernel lists them.
    #[must_use]
    pub(crate) fn read() -> Hookable {
        let traceable = tracefs("available_filter_functions").ok();
        let traceable = traceable.map(|text| first_words(&text));
        let forbidden = read("/sys/kernel/debug/kprobes/blacklist".into()).unwrap_or_default();
        Hookable {
            traceable,
            forbidden: forbidden
                .lines()
                .filter_map(|line| line.split_whitespace().nth(1))
                .map(str::to_owned)
                .collect(),
        }
    }

    /// Why no probe can be at a function.
    #[must_use]
    pub fn refusal(&self, name: &str) -> Option<&'static str> {
        self.forbidden
            .contains(name)
            .then_some("the kernel forbids probes there")
    }

    /// Whether many of them can be hooked at once.
    #[must_use]
    pub(crate) fn is_traceable(&self, name: &str) -> bool {
        self.traceable.as_ref().is_some_and(|names| names.contains(name))
    }
}

fn first_words(text: &str) -> HashSet<String> {
    let words = text.lines().filter_map(|line| line.split_whitespace().next());
    words.map(str::to_owned).collect()
}

/// Tracepoints, `GROUP:NAME`, whose name is wanted.
///
/// # Errors
/// tracefs cannot be read.
pub(crate) fn tracepoints(wanted: &dyn Fn(&str) -> bool) -> Result<Vec<String>> {
    let text = tracefs("available_events")?;
    Ok(text.lines().filter(|line| wanted(line)).map(str::to_owned).collect())
}

/// What a tracepoint's record holds.
///
/// # Errors
/// There is no such tracepoint, or tracefs cannot be read.
pub(super) fn format_of(full: &str) -> Result<Format> {
    format_text(full).map(|text| Format::parse(&text))
}

fn format_text(full: &str) -> Result<String> {
    let (group, name) = full.split_once(':').context("is no tracepoint")?;
    if [group, name].iter().any(|part| part.contains(['/', '.'])) {
        bail!("{full} is no tracepoint");
    }
    tracefs(&format!("events/{group}/{name}/format"))
}

/// Tracepoints, each with what the kernel says of its record: asked once, so that nothing is opened later.
pub(super) struct Tracepoints(Vec<(String, Result<String, String>)>);

impl Tracepoints {
    /// Those whose name is wanted.
    ///
    /// # Errors
    /// tracefs cannot be read.
    pub(super) fn read(wanted: &dyn Fn(&str) -> bool) -> Result<Tracepoints> {
        let text = |name: String| {
            let text = format_text(&name).map_err(|error| format!("{error:#}"));
            (name, text)
        };
        tracepoints(wanted).map(|names| Tracepoints(names.into_iter().map(text).collect()))
    }

    /// Where there are none to be read.
    pub(super) fn none() -> Tracepoints {
        Tracepoints(Vec::new())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.0.iter().map(|(name, _)| name)
    }

    /// What the record of one holds.
    ///
    /// # Errors
    /// It is none of these, or tracefs could not be read.
    pub(super) fn format_of(&self, full: &str) -> Result<Format> {
        let found = self.0.iter().find(|(name, _)| name == full);
        match found.map(|(_, text)| text) {
            Some(Ok(text)) => Ok(Format::parse(text)),
            Some(Err(why)) => Err(anyhow!("{why}")),
            None => bail!("{full} is no tracepoint"),
        }
    }
}

/// Loaded modules, and which load of each it is: see [`load_of`].
#[must_use]
pub(crate) fn modules() -> Vec<(String, Option<u64>)> {
    let text = read("/proc/modules".into()).unwrap_or_default();
    let module = |name: &str| (name.to_owned(), load_of(name));
    live(&text).map(module).collect()
}

/// Names of the modules that are loaded to their end, of `/proc/modules`.
fn live(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        words.next().filter(|_| words.nth(3) == Some("Live"))
    })
}

/// A number that a module has for as long as it stays loaded, and no module after it; `None`: sysfs is not there. The
/// address of a module would not do: the kernel shows it as 0 to who has given up CAP_SYSLOG, as we do while tracing.
fn load_of(module: &str) -> Option<u64> {
    let folder = PathBuf::from("/sys/module").join(module);
    std::fs::metadata(folder).ok().map(|folder| folder.ino())
}

/// Whether the kernel can place probes at its functions at all.
///
/// # Errors
/// Why not.
pub(crate) fn kprobes() -> std::result::Result<(), String> {
    privilege::readable_kernel()?;
    let there = std::path::Path::new("/sys/bus/event_source/devices/kprobe/type").exists();
    there.then_some(()).ok_or_else(|| {
        "this kernel has none; hint: use one built with CONFIG_KPROBES=y and CONFIG_KPROBE_EVENTS=y".to_owned()
    })
}

fn tracefs(name: &str) -> Result<String> {
    let roots = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let mut tried = roots.map(|root| read(PathBuf::from(root).join(name)));
    let found = tried.iter().position(Result::is_ok).unwrap_or(0);
    let read = std::mem::replace(&mut tried[found], Ok(String::new()));
    read.map_err(|error| anyhow!("{error:#}; hint: mount -t tracefs nodev /sys/kernel/tracing"))
}

fn read(path: PathBuf) -> Result<String> {
    use std::io::Read;
    let file = std::fs::File::open(&path).with_context(|| format!("failed to open {}", path.display()))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES)
        .read_to_end(&mut bytes)
        .with_context(|| format!("failed to read {}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_whose_address_is_hidden_from_us_is_the_same() {
        let shown = "nvidia 20480 1 - Live 0xffffffffc0600000 (OE)\nfuse 4096 0 - Live 0xffffffffc0700000\n";
        let hidden = "nvidia 20480 3 - Live 0x0000000000000000 (OE)\nfuse 4096 0 - Live 0x0000000000000000\n";
        assert!(live(shown).eq(["nvidia", "fuse"]));
        assert!(live(hidden).eq(live(shown)));
    }

    #[test]
    fn a_module_that_comes_or_goes_is_not_there() {
        let text = "a 1 0 - Loading 0x0\nb 1 0 - Unloading 0x0\nc 1 0 d, Live 0x0\nshort\n\n";
        assert!(live(text).eq(["c"]));
    }

    #[test]
    fn what_is_loaded_has_a_number_that_stays() {
        let (first, again) = (load_of("kernel"), load_of("kernel"));
        assert!(first.is_some());
        assert_eq!(first, again);
        assert_ne!(first, load_of("module"));
        assert_eq!(load_of("no such module"), None);
    }
}
