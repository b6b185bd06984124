//! `gpuscope top`: its numbers against the simulated CUDA's own, and its screen in a real terminal.

mod devices;
mod screen;
mod terminal;
mod waits;

use crate::exporter::LINKS;
use crate::support::{Ended, Ledger, Program, eventually, number, sim, sim_folder};
use gpuscope::catalog::Catalog;
use gpuscope::filter::Filter;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The user without any right.
const NOBODY: &str = "65534";

/// Who has no capability may not trace from outside, not even as root.
const WITHOUT_RIGHTS: &str = "setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all";

/// A command to which the program and its words are still to be given.
fn without_rights() -> Command {
    let mut words = WITHOUT_RIGHTS.split(' ');
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words);
    command
}

/// A machine with two simulated devices, and programs on it.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Machine {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("state")).expect("a folder");
        std::fs::write(folder.path().join("state/nvml"), LINKS).expect("a file");
        std::fs::write(folder.path().join("kmsg"), "6,0,1,-;boot\n").expect("a file");
        Machine { folder }
    }

    fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("LD_LIBRARY_PATH", sim_folder()),
            ("GPUSCOPE_NVML", sim("libnvidia-ml.so.1")),
            ("GPUSCOPE_KMSG", self.folder.path().join("kmsg")),
            ("GPUSIM_STATE", self.folder.path().join("state")),
            ("GPUSIM_DEVICES", PathBuf::from("2")),
        ]
    }

    /// `gpuscope top OPTIONS…`, or another program that ends so.
    fn top(&self, command: &mut Command, options: &[&str]) -> Top {
        let output = |name: &str| File::create(self.folder.path().join(name)).expect("a file");
        let child = command
            .arg("top")
            .args(options)
            .envs(self.environment())
            .stdin(Stdio::null())
            .stdout(output("stdout"))
            .stderr(output("stderr"))
            .spawn()
            .expect("gpuscope starts");
        Top {
            child,
            folder: self.folder.path().to_owned(),
        }
    }

    /// `gpusim ARGUMENTS…`, called `name`.
    fn command(&self, name: &str, arguments: &str) -> Command {
        let path = self.folder.path().join(name);
        if !path.exists() {
            std::os::unix::fs::symlink(sim("gpusim"), &path).expect("a link");
        }
        let mut command = Command::new(path);
        command
            .args(arguments.split(' '))
            .env("GPUSIM_STATE", self.folder.path().join("state"));
        command
    }

    fn run(&self, name: &str, arguments: &str) -> Ended {
        Program::start(self.command(name, arguments).stdin(Stdio::null())).finish()
    }
}

/// A running `gpuscope top --json`; ended when dropped.
struct Top {
    child: Child,
    folder: PathBuf,
}

impl Top {
    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn said(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }

    /// Every look so far.
    fn looks(&self) -> Vec<Value> {
        let text = self.said("stdout");
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        whole.lines().map(line).collect()
    }

    /// What the last look that has it says of a process.
    fn last(&self, comm: &str) -> Option<Value> {
        let of = |look: &Value| {
            let processes = look["processes"].as_array().expect("processes");
            processes.iter().find(|process| process["comm"] == comm).cloned()
        };
        self.looks().iter().rev().find_map(of)
    }

    /// The last of a process, once it is known to have ended.
    fn after_its_end(&self, comm: &str) -> Value {
        let mut found = None;
        eventually(&format!("{comm} has ended"), || {
            found = self.last(comm).filter(|process| process["ended"] == true);
            found.is_some()
        });
        found.expect("waited for")
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("gpuscope said:\n{}", self.said("stderr"));
        }
        // SAFETY: plain numbers; the child has not been waited for, so its id is its own
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        let _ = self.child.wait();
    }
}

fn gpuscope() -> Command {
    Command::new(env!("CARGO_BIN_EXE_gpuscope"))
}

fn total(process: &Value, what: &str) -> u64 {
    process[what]["total"].as_u64().unwrap_or_default()
}

/// Launches of kernels of a program that ran from beginning to end.
fn launches(ended: &Ended) -> u64 {
    ended.ledger.kernels.values().sum()
}

#[test]
#[ignore = "needs root and BPF: the whole machine is looked at"]
fn its_numbers_are_those_of_the_programs_own_ledgers() {
    let machine = Machine::new();
    let top = machine.top(&mut gpuscope(), &["--json", "--delay", "300ms"]);
    eventually("it looks", || !top.looks().is_empty());
    let mut tries = 0;
    eventually("a program is seen from its first call to its last", || {
        tries += 1;
        let name = format!("first-{tries}");
        let ended = machine.run(&name, "train 1");
        std::thread::sleep(Duration::from_secs(1));
        let seen = top.last(&name);
        seen.is_some_and(|seen| total(&seen, "launches") == launches(&ended))
    });
    let train = machine.run("t-train", "train 20");
    let seen = top.after_its_end("t-train");
    assert_eq!(total(&seen, "launches"), launches(&train));
    assert_eq!(total(&seen, "to_device_bytes"), train.ledger.bytes["htod"]);
    assert_eq!(total(&seen, "from_device_bytes"), train.ledger.bytes["dtoh"]);
    assert_eq!(total(&seen, "errors"), 0);
    let kernels: u64 = seen["kernels"]
        .as_array()
        .expect("kernels")
        .iter()
        .map(|kernel| total(kernel, "launches"))
        .sum();
    assert_eq!(kernels, launches(&train));
    let failing = machine.run("t-errors", "errors 5");
    let seen = top.after_its_end("t-errors");
    assert_eq!(total(&seen, "errors"), failures_that_are_hooked(&failing));
    memory_that_is_held(&machine, &top);
}

#[cfg(feature = "record")]
#[test]
#[ignore = "needs the simulated CUDA"]
fn a_recording_is_played_with_the_numbers_of_the_programs_ledger() {
    let machine = Machine::new();
    let file = machine.folder.path().join("t.arrows");
    let file = file.to_str().expect("a path");
    let ledgers = machine.folder.path().join("ledger");
    std::fs::create_dir(&ledgers).expect("a folder");
    let mut record = gpuscope();
    record
        .args(["record", "-o", file, "--"])
        .arg(sim("gpusim"))
        .args(["train", "200"]);
    record
        .env("LD_LIBRARY_PATH", sim_folder())
        .env("GPUSIM_LEDGER", ledgers.join("%p"));
    let recorded = record.stdin(Stdio::null()).output().expect("gpuscope starts");
    assert!(recorded.status.success(), "{recorded:?}");
    let played = gpuscope()
        .args(["top", "--json", "--replay", file])
        .output()
        .expect("gpuscope starts");
    let said = String::from_utf8_lossy(&played.stdout).into_owned();
    let last: Value = serde_json::from_str(said.lines().last().expect("totals")).expect("a look");
    let processes = last["processes"].as_array().expect("processes");
    let together = processes
        .iter()
        .find(|process| process["pid"] == 0)
        .expect("all together");
    let ledger = Ledger::read(&ledgers);
    assert_eq!(total(together, "launches"), ledger.kernels.values().sum::<u64>());
    let copied: u64 = processes.iter().map(|process| total(process, "to_device_bytes")).sum();
    assert_eq!(copied, ledger.bytes["htod"]);
}

/// Calls of getters are not hooked.
fn failures_that_are_hooked(ended: &Ended) -> u64 {
    let catalog = Catalog::builtin().expect("the catalogue");
    let filter = Filter::parse(&[], &["all".to_owned()])
        .expect("a filter")
        .without_getters();
    let is_hooked = |name: &str| {
        let mut rows = catalog.rows.iter().filter(|row| row.symbol == name);
        rows.any(|row| filter.selects(&catalog, row))
    };
    let failures = ended.ledger.errors.iter();
    failures
        .filter(|((function, _), _)| is_hooked(function))
        .map(|(_, count)| count)
        .sum()
}

fn memory_that_is_held(machine: &Machine, top: &Top) {
    let book = machine.folder.path().join("book");
    let mut command = machine.command("t-hold", "hold --count 100 --size 4096");
    command.env("GPUSIM_BOOK", &book).env("LD_LIBRARY_PATH", sim_folder());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("gpusim starts");
    eventually("the program holds its memory", || held(&book) == Some(100 * 4096));
    eventually("what it holds is seen", || {
        top.last("t-hold")
            .is_some_and(|process| process["held_bytes"] == 100 * 4096)
    });
    eventually("the device has it among what is tracked", || {
        let look = top.looks().pop();
        look.is_some_and(|look| look["devices"][0]["tracked_bytes"].as_u64() >= Some(100 * 4096))
    });
    drop(child.stdin.take());
    assert!(child.wait().expect("a child").success());
}

fn names_of_threads(pid: u32) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"))
        .expect("threads")
        .flatten();
    threads
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok())
        .collect()
}

/// Bytes of device memory in the driver's own book.
fn held(book: &Path) -> Option<u64> {
    let output = Command::new(sim("gpusim")).arg("book").arg(book).output().ok()?;
    let book: Value = serde_json::from_slice(&output.stdout).ok()?;
    let mut families = book["families"].as_array()?.iter();
    let device = families.find(|family| family["family"] == "device")?;
    Some(number(device, "held_bytes"))
}

#[test]
#[ignore = "needs root and BPF: a process is looked at while it runs"]
fn of_one_process_it_tells_functions_and_calls_that_have_not_returned() {
    let machine = Machine::new();
    let program = Program::start(
        machine
            .command(
                "t-stall",
                "stall --steps 100000 --kernels 1 --kernel-ns 50000000 --host-ns 1000 --sync device",
            )
            .stdin(Stdio::null()),
    );
    let pid = program.pid().to_string();
    let top = machine.top(&mut gpuscope(), &["--json", "--delay", "300ms", "-p", &pid]);
    let closeups = || top.looks().into_iter().map(|look| look["closeup"].clone());
    let has = |closeup: &Value, list: &str, text: &str| {
        let list = closeup[list].as_array().cloned().unwrap_or_default();
        list.iter().any(|one| one.to_string().contains(text))
    };
    eventually("a wait in progress", || {
        closeups().any(|closeup| has(&closeup, "in_progress", "Synchronize"))
    });
    eventually("calls by function", || {
        closeups().any(|closeup| has(&closeup, "functions", "cuLaunchKernel"))
    });
    let only = top.looks().iter().all(|look| {
        let processes = look["processes"].as_array().expect("processes");
        processes
            .iter()
            .all(|process| process["pid"].as_u64() == Some(program.pid().into()))
    });
    assert!(only, "other processes are none of its business");
}

#[test]
#[ignore = "needs root and BPF: a process is looked at while it runs"]
fn a_call_that_does_not_return_is_in_the_row_of_its_process() {
    let machine = Machine::new();
    let hang = "stall --steps 1000 --kernels 1 --kernel-ns 4000000000 --host-ns 1000 --sync device";
    let slow = "stall --steps 100000 --kernels 1 --kernel-ns 1000000 --host-ns 30000000 --sync device";
    let start = |name, arguments| Program::start(machine.command(name, arguments).stdin(Stdio::null()));
    let _programs = [start("t-hang", hang), start("t-slow", slow)];
    let top = machine.top(&mut gpuscope(), &["--json", "--delay", "300ms"]);
    eventually("the call that hangs", || {
        let call = top.last("t-hang").map(|process| process["longest_call"].clone());
        call.is_some_and(|call| {
            let is_long = call["seconds"].as_f64() >= Some(1.0);
            is_long
                && call["function"]
                    .as_str()
                    .is_some_and(|name| name.contains("Synchronize"))
        })
    });
    eventually("what probes take from the other one", || {
        let share = top.last("t-slow").map(|process| process["probe_share"].clone());
        share.is_some_and(|share| share.as_f64() > Some(0.0))
    });
    let slow = top.last("t-slow").expect("a row");
    assert_eq!(slow["longest_call"], Value::Null, "its calls are short");
}

#[test]
#[ignore = "needs root and BPF: a process is looked at while it runs"]
fn what_is_wrong_with_a_process_is_said_while_it_runs() {
    let machine = Machine::new();
    let stall = "stall --steps 100000 --kernels 1 --kernel-ns 2000000 --host-ns 20000000 --sync device";
    let program = Program::start(machine.command("t-idle", stall).stdin(Stdio::null()));
    let pid = program.pid().to_string();
    let options = ["--json", "--findings", "--delay", "300ms", "-p", &pid];
    let top = machine.top(&mut gpuscope(), &options);
    let findings = || top.looks().into_iter().map(|look| look["findings"].clone());
    eventually("that the host leaves its device without work", || {
        findings().any(|found| {
            let all = found["findings"].as_array().cloned().unwrap_or_default();
            all.iter().any(|one| one["rule"] == "idle-gaps")
        })
    });
    eventually("the line that waits", || {
        findings().any(|found| {
            let waits = found["waits"].as_array().cloned().unwrap_or_default();
            waits
                .iter()
                .any(|one| one["where"].as_str().is_some_and(|place| place.contains("stall")))
        })
    });
    let asks = |name: &String| name == "nvml\n";
    let threads = names_of_threads(top.pid());
    assert_eq!(
        threads.iter().filter(|name| asks(name)).count(),
        1,
        "NVML is asked once: {threads:?}"
    );
    let last = findings().next_back().expect("a look");
    let idle = last["idle"].as_array().expect("idle times");
    assert!(
        idle.iter()
            .all(|idle| idle["pid"].as_u64() == Some(program.pid().into())),
        "{last}"
    );
    assert_ne!(
        idle[0]["certainty"], "measured",
        "nobody has told what the GPU executed"
    );
}

/// A shell that starts it and waits.
fn launcher(program: &Command) -> Command {
    let mut shell = Command::new("bash");
    shell.args(["-c", "setpriv --pdeathsig KILL \"$@\"; true", "launcher"]);
    shell.arg(program.get_program()).args(program.get_args());
    shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(Stdio::null());
    shell
}

#[test]
#[ignore = "needs root and BPF: a process is looked at while it runs"]
fn of_a_launcher_its_worker_is_looked_at() {
    let machine = Machine::new();
    let stall = "stall --steps 1500 --kernels 1 --kernel-ns 2000000 --host-ns 20000000 --sync device";
    let program = Program::start(&mut launcher(&machine.command("t-launched", stall)));
    let pid = program.pid().to_string();
    let child = || {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        children.split_whitespace().next()?.parse::<u32>().ok()
    };
    eventually("a worker that has started CUDA", || {
        let maps = child().map(|pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default());
        maps.is_some_and(|maps| maps.contains("libcuda.so"))
    });
    let worker = child().expect("a worker");
    let top = machine.top(
        &mut gpuscope(),
        &["--json", "--findings", "--delay", "300ms", "-p", &pid],
    );
    eventually("what is wrong with the worker", || {
        top.looks().iter().any(|look| {
            let found = &look["findings"];
            let all = found["findings"].as_array().cloned().unwrap_or_default();
            found["pid"].as_u64() == Some(worker.into()) && all.iter().any(|one| one["rule"] == "idle-gaps")
        })
    });
}

#[test]
#[ignore = "needs root and BPF: to be somebody without rights"]
fn without_rights_it_says_what_it_cannot_see_and_shows_devices_all_the_same() {
    let machine = Machine::new();
    let folder = machine.folder.path();
    let own = folder.join("gpuscope");
    std::fs::copy(env!("CARGO_BIN_EXE_gpuscope"), &own).expect("a copy");
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("open to all");
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid",
        NOBODY,
        "--regid",
        NOBODY,
        "--clear-groups",
        "--inh-caps=-all",
    ]);
    command.args(["--ambient-caps=-all", "--bounding-set=-all"]).arg(&own);
    let top = machine.top(&mut command, &["--json", "--delay", "300ms"]);
    eventually("devices are there", || {
        top.looks()
            .last()
            .is_some_and(|look| look["devices"].as_array().is_some_and(|all| all.len() == 2))
    });
    let notes = top.looks().last().expect("a look")["notes"].to_string();
    assert!(
        notes.contains("only what NVML says is seen") && notes.contains("gpuscope preload"),
        "{notes}"
    );
}

#[test]
#[ignore = "needs root and BPF: the whole machine is looked at"]
fn nvml_that_hangs_holds_nothing_up() {
    let machine = Machine::new();
    std::fs::write(
        machine.folder.path().join("state/nvml"),
        "* hang_ms 600000\ndriver hang_ms 600000\n",
    )
    .expect("a file");
    let top = machine.top(&mut gpuscope(), &["--json", "--delay", "200ms"]);
    eventually("it looks on", || top.looks().len() > 5);
}

#[test]
#[ignore = "needs root and BPF: the whole machine is looked at"]
fn one_page_of_text_ends_by_itself() {
    let machine = Machine::new();
    let mut top = machine.top(&mut gpuscope(), &["--once", "--delay", "300ms"]);
    let status = top.child.wait().expect("a child");
    let said = top.said("stdout");
    assert!(status.success() && said.starts_with("gpuscope top at "), "{said}");
    assert!(said.contains("Simulated GPU") && !said.contains('\u{1b}'), "{said}");
}
