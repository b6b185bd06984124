//! Whether faults of GPUs would be seen, and those of this boot that the kernel's log still has.

use super::Check;
use crate::driver::xid::Xid;
use crate::driver::xid::words::{meaning, place, process, title};
use crate::probe::kernel_log::{From, KernelLog, Logged, Missed};

const NAME: &str = "xids";
const TRACEPOINTS: [&str; 2] = [
    "/sys/kernel/tracing/events/nvidia/nvidia_dev_xid",
    "/sys/kernel/debug/tracing/events/nvidia/nvidia_dev_xid",
];
/// Kinds that are listed, newest first.
const SHOWN: usize = 5;
/// What asks nothing of the machine and its driver.
const HARMLESS: [&str; 5] = ["", "IGNORE", "RESTART_APP", "WORKFLOW_XID_45", "XID_154"];

/// What the log has, and what could be read of it.
struct Past<'a> {
    logged: &'a [Logged],
    reaches_to_boot: Option<bool>,
    missed: Missed,
    /// Microseconds by the log's clock.
    now_us: u64,
}

pub(super) fn xids() -> Check {
    let mut log = match KernelLog::open(From::Oldest) {
        Ok(log) => log,
        Err(refused) => {
            let detail = format!("{}: faults of GPUs are not seen with their process", refused.why());
            return Check::limited(NAME, detail, refused.cure());
        }
    };
    let logged = log.read_all();
    let past = Past {
        logged: &logged,
        reaches_to_boot: log.reaches_to_boot(),
        missed: log.missed(),
        now_us: crate::clock::monotonic_ns() / 1000,
    };
    let has_tracepoint = TRACEPOINTS.iter().any(|path| std::path::Path::new(path).exists());
    judge(&past, has_tracepoint)
}

fn judge(past: &Past<'_>, has_tracepoint: bool) -> Check {
    let sources = match has_tracepoint {
        true => "kernel log and tracepoint",
        false => "kernel log",
    };
    let newest: Vec<String> = newest(past).into_iter().take(SHOWN).collect();
    let since = match past.reaches_to_boot {
        Some(false) => "in what the log still has",
        _ => "since the boot",
    };
    let mut detail = match past.logged.len() {
        0 => format!("{sources}; none {since}"),
        count => format!("{sources}; {count} {since}: {}", newest.join("; ")),
    };
    let foreign = past.missed.foreign;
    if foreign > 0 {
        detail += &format!("; lines of the log that look like Xids and are not the driver's: {foreign}");
    }
    let severe = past.logged.iter().rev().find(|logged| is_severe(&logged.xid));
    match severe.and_then(|logged| logged.xid.meaning()) {
        Some(known) => Check::limited(NAME, detail, format!("Xid {}: {}", known.code, known.action_words())),
        None => Check::ok(NAME, detail),
    }
}

fn is_severe(xid: &Xid) -> bool {
    xid.meaning().is_some_and(|known| !HARMLESS.contains(&known.action))
}

/// Each kind with the last of it, newest first.
fn newest(past: &Past<'_>) -> Vec<String> {
    let mut kinds: Vec<(&Logged, usize)> = Vec::new();
    for logged in past.logged.iter().rev() {
        let same = |of: &Logged| title(&of.xid) == title(&logged.xid) && of.xid.pci == logged.xid.pci;
        match kinds.iter_mut().find(|(of, _)| same(of)) {
            Some((_, count)) => *count += 1,
            None => kinds.push((logged, 1)),
        }
    }
    let words = |(logged, count): (&Logged, usize)| {
        let times = if count > 1 {
            format!(" ×{count}")
        } else {
            String::new()
        };
        let who = process(&logged.xid).map_or_else(String::new, |process| format!(" {process},"));
        let ago = ago(past.now_us.saturating_sub(logged.at_us) / 1_000_000);
        let (title, place) = (title(&logged.xid), place(&logged.xid));
        format!("{title}{times} of {place},{who} {ago} ago: {}", meaning(&logged.xid))
    };
    kinds.into_iter().map(words).collect()
}

fn ago(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    fn judged(lines: &[(u64, &str)], reaches_to_boot: bool, foreign: u64) -> Check {
        let logged = |(at_us, line): &(u64, &str)| Logged {
            xid: Xid::of_record(line).expect("an Xid"),
            at_us: *at_us,
        };
        let logged: Vec<Logged> = lines.iter().map(logged).collect();
        let past = Past {
            logged: &logged,
            reaches_to_boot: Some(reaches_to_boot),
            missed: Missed {
                foreign,
                overwritten: 0,
            },
            now_us: 8_000_000_000,
        };
        judge(&past, true)
    }

    #[test]
    fn a_quiet_log_is_well() {
        let check = judged(&[], true, 0);
        assert_eq!(
            (check.state, check.detail.as_str()),
            (State::Ok, "kernel log and tracepoint; none since the boot")
        );
        assert!(judged(&[], false, 0).detail.ends_with("none in what the log still has"));
        assert!(judged(&[], true, 2).detail.ends_with("are not the driver's: 2"));
    }

    #[test]
    fn faults_of_programs_ask_nothing_of_the_machine() {
        let line = "NVRM: Xid (PCI:0000:17:00): 31, pid=7, name=a, x";
        let check = judged(&[(1, line), (7_999_000_000, line)], true, 0);
        assert_eq!(check.state, State::Ok);
        let words = "2 since the boot: Xid 31 ×2 of GPU 0000:17:00, a 7, 1 s ago: GPU MMU page fault";
        assert!(check.detail.contains(words), "{}", check.detail);
    }

    #[test]
    fn a_fault_of_hardware_comes_with_its_cure() {
        let lost = "NVRM: Xid (PCI:0000:17:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";
        let check = judged(&[(800_000_000, lost)], true, 0);
        assert_eq!(check.state, State::Limited);
        assert_eq!(check.cure.as_deref(), Some("Xid 79: restart the machine"));
        assert!(
            check.detail.contains("Xid 79 of GPU 0000:17:00, 2 h ago: "),
            "{}",
            check.detail
        );
    }
}
