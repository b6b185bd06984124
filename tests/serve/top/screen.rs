//! The screen in a real terminal: keys, sizes, the shell's stops, and what is left behind.

use super::terminal::Terminal;
use super::{Machine, WITHOUT_RIGHTS, without_rights};
use crate::support::{Program, eventually};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

struct Scene {
    machine: Machine,
    terminal: Terminal,
    /// Of the terminal before anything was started.
    settings: String,
}

impl Scene {
    fn open(size: (u16, u16)) -> Scene {
        let machine = Machine::new();
        let terminal = Terminal::open(size, &machine.environment());
        let settings = terminal.settings(&machine.folder.path().join("before"));
        Scene {
            machine,
            terminal,
            settings,
        }
    }

    fn start(&self, options: &str) {
        let own = env!("CARGO_BIN_EXE_gpuscope");
        self.terminal.press(&[&format!("clear; {own} top {options}"), "Enter"]);
    }

    fn until_shown(&self) {
        self.terminal.until("the screen", |screen| {
            screen.contains("rates") && screen.contains("command") && screen.contains("F1Help")
        });
    }

    fn program(&self, name: &str) -> Program {
        Program::start(self.machine.command(name, "train 0").stdin(Stdio::null()))
    }

    /// The shell is there again, and the terminal as it was.
    fn is_as_before(&self) {
        self.terminal
            .until("the shell", |screen| screen.trim_end().ends_with("ready>"));
        assert!(!self.terminal.is_on_other_screen());
        let after = self.terminal.settings(&self.machine.folder.path().join("after"));
        assert_eq!(self.settings, after);
    }

    /// The process that the shell has started.
    fn top(&self) -> Option<i32> {
        let shell = self.terminal.pid();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    fn signal(&self, signal: i32) {
        let pid = self.top().expect("gpuscope runs");
        // SAFETY: plain numbers; the shell has not waited for it
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }
}

#[test]
#[ignore = "needs root, BPF and tmux"]
fn devices_are_shown_before_probes_are_attached() {
    let scene = Scene::open((120, 40));
    let log = scene.machine.folder.path().join("drawn");
    scene.terminal.copy_to(&log);
    scene.start("--delay 300ms");
    scene.until_shown();
    let drawn = std::fs::read_to_string(&log).expect("what was drawn");
    let place = |words: &str| drawn.find(words).unwrap_or_else(|| panic!("{words}: {drawn}"));
    // what is the same as before is not drawn again: "Simulated GPU" may come in parts, and so does the head
    assert!(place("attaching") < place("Simulated"));
    assert!(place("Simulated") < place(" at "), "{drawn}");
    scene.terminal.press(&["q"]);
    scene.is_as_before();
}

#[test]
#[ignore = "needs root, BPF and tmux"]
fn a_picture_comes_and_keys_are_answered_while_nvml_hangs() {
    let scene = Scene::open((120, 40));
    let told = "* hang_ms 600000\ndriver hang_ms 600000\n";
    std::fs::write(scene.machine.folder.path().join("state/nvml"), told).expect("a file");
    scene.start("--delay 300ms");
    scene.terminal.until("that NVML is silent", |screen| {
        screen.contains("NVML has not answered yet")
    });
    scene.terminal.press(&["q"]);
    scene.is_as_before();
}

#[test]
#[ignore = "needs root, BPF and tmux"]
fn keys_do_what_the_help_says() {
    let scene = Scene::open((120, 40));
    let _program = scene.program("s-train");
    scene.start("--delay 300ms");
    scene.until_shown();
    let terminal = &scene.terminal;
    terminal.until("the program", |screen| screen.contains("s-train"));
    terminal.press(&["?"]);
    terminal.until("the help", |screen| screen.contains("any key goes back"));
    terminal.press(&["x"]);
    scene.until_shown();
    terminal.press(&["/", "s-trai", "Enter"]);
    terminal.until("the filter", |screen| {
        screen.contains("filter s-trai") && screen.contains("s-train")
    });
    terminal.press(&["Enter"]);
    terminal.until("its functions", |screen| {
        screen.contains("cuLaunchKernel") && screen.contains("kernels")
    });
    terminal.press(&["Enter"]);
    terminal.until("its calls", |screen| {
        screen.contains("calls as they come") && screen.contains("cuLaunchKernel(f=")
    });
    terminal.press(&["Escape"]);
    terminal.until("its functions again", |screen| {
        !screen.contains("calls as they come") && screen.contains("kernels")
    });
    terminal.press(&["f"]);
    terminal.until("that it is looked for what is wrong", |screen| {
        screen.contains("of its calls")
    });
    terminal.press(&["a"]);
    terminal.until("its allocations", |screen| screen.contains("address  "));
    terminal.press(&["F2"]);
    terminal.until("columns", |screen| {
        screen.contains("columns and colours") && screen.contains("[x] user")
    });
    terminal.press(&["Down", "Space"]);
    terminal.until("one column fewer", |screen| screen.contains("[ ] user"));
    terminal.press(&["F2"]);
    scene.until_shown();
    terminal.press(&["Escape"]);
    terminal.until("no pane", |screen| !screen.contains("cuLaunchKernel"));
    terminal.press(&["Space"]);
    terminal.until("that it is frozen", |screen| screen.contains("frozen"));
    terminal.press(&["q"]);
    scene.is_as_before();
}

impl Scene {
    /// A program that carries the agent.
    fn carrier(&self, name: &str) -> Program {
        // the link, whose name the program has
        let program = self.machine.command(name, "train 0").get_program().to_owned();
        // as little as who looks at it: nobody may look at somebody with more rights
        let mut command = without_rights();
        command
            .args([env!("CARGO_BIN_EXE_gpuscope"), "preload", "--"])
            .arg(program)
            .args(["train", "0"])
            .env("XDG_DATA_HOME", self.machine.folder.path())
            .env("GPUSIM_STATE", self.machine.folder.path().join("state"));
        Program::start(command.stdin(Stdio::null()))
    }

    fn start_without_rights(&self) {
        let (own, folder) = (env!("CARGO_BIN_EXE_gpuscope"), self.machine.folder.path().display());
        let line = format!("cd {folder}; clear; {WITHOUT_RIGHTS} {own} top --delay 300ms");
        self.terminal.press(&[&line, "Enter"]);
    }
}

/// Whether a row of that name has a pace of launches.
fn launches(screen: &str, name: &str) -> bool {
    let heading = screen
        .lines()
        .find(|line| line.contains("launch/s"))
        .unwrap_or_default();
    let column = heading.split_whitespace().position(|title| title == "launch/s");
    let row = screen
        .lines()
        .find(|line| line.contains(name) && line.contains("train"));
    let cell = column.and_then(|place| row?.split_whitespace().nth(place));
    cell.is_some_and(|cell| cell.starts_with(|first: char| first.is_ascii_digit() && first != '0'))
}

#[test]
#[ignore = "needs root, BPF and tmux"]
fn without_rights_own_programs_are_looked_at_as_closely_and_counted_again_afterwards() {
    let scene = Scene::open((150, 40));
    let _early = scene.carrier("s-early");
    scene.start_without_rights();
    scene.until_shown();
    let terminal = &scene.terminal;
    terminal.until("who was there", |screen| launches(screen, "s-early"));
    let late = scene.carrier("s-late");
    terminal.until("who came later", |screen| launches(screen, "s-late"));
    let stands_still = |screen: &str| screen.contains("(stands still) s-late");
    terminal.press(&["/", "s-late", "Enter", "s"]);
    terminal.until("its calls, and a row without paces", |screen| {
        screen.contains("cuLaunchKernel(f=") && stands_still(screen) && !launches(screen, "s-late")
    });
    terminal.press(&["r"]);
    terminal.until("that one excludes the other", |screen| {
        screen.contains("Esc ends that first")
    });
    // at once again: who looked before has to let go of it first
    terminal.press(&["Escape"]);
    // together they are Alt and s
    std::thread::sleep(Duration::from_millis(100));
    terminal.press(&["s"]);
    std::thread::sleep(Duration::from_secs(2));
    terminal.until("its calls again", |screen| {
        screen.contains("cuLaunchKernel(f=") && stands_still(screen) && !screen.contains("not traced")
    });
    terminal.press(&["Escape", "Escape"]);
    terminal.until("paces again", |screen| {
        !stands_still(screen) && launches(screen, "s-late")
    });
    terminal.press(&["f"]);
    terminal.until("what is wrong with it", |screen| {
        screen.contains("of its calls") && stands_still(screen)
    });
    terminal.press(&["Escape"]);
    terminal.until("paces again", |screen| launches(screen, "s-late"));
    terminal.press(&["r"]);
    terminal.until("a recording", |screen| {
        screen.contains("recording") && stands_still(screen)
    });
    let recordings = || {
        let files = std::fs::read_dir(scene.machine.folder.path().join("traces"));
        files.into_iter().flatten().flatten().map(|file| file.path())
    };
    eventually("its file", || recordings().count() == 1);
    // its header is written before the first call
    std::thread::sleep(Duration::from_secs(1));
    terminal.press(&["r"]);
    terminal.until("its end", |screen| {
        screen.contains(".arrows") && launches(screen, "s-late")
    });
    terminal.press(&["l"]);
    terminal.until("a report", |screen| {
        screen.contains("a report of") && stands_still(screen)
    });
    eventually("its file", || {
        scene
            .machine
            .folder
            .path()
            .join(format!("leaks_{}.txt", late.pid()))
            .exists()
    });
    terminal.press(&["q"]);
    scene.is_as_before();
}

#[test]
#[ignore = "needs root, BPF and tmux"]
fn allocations_are_shown_one_by_one_with_the_line_that_asked_for_them() {
    let scene = Scene::open((200, 40));
    scene.start("--delay 300ms");
    scene.until_shown();
    let mut command = scene.machine.command("s-hold", "hold --count 3 --size 4096");
    let program = Program::start(command.stdin(Stdio::piped()));
    let terminal = &scene.terminal;
    terminal.until("the program", |screen| screen.contains("s-hold"));
    terminal.press(&["/", "s-hold", "Enter", "a"]);
    let is_one = |line: &str| line.contains("0x") && line.contains("4.00Ki") && line.contains("hold");
    terminal.until("three of them", |screen| {
        screen.lines().filter(|line| is_one(line)).count() == 3
    });
    terminal.press(&["q"]);
    scene.is_as_before();
    program.signal(libc::SIGTERM);
}

#[test]
#[ignore = "needs root, BPF and tmux"]
fn killing_is_asked_twice_and_done() {
    let scene = Scene::open((120, 40));
    let mut program = scene.program("s-victim");
    scene.start("--delay 300ms");
    let terminal = &scene.terminal;
    terminal.until("the program", |screen| screen.contains("s-victim"));
    terminal.press(&["/", "s-victim", "Enter", "k"]);
    let asked = format!("SIGTERM to {}?", program.pid());
    terminal.until("a question about that process", |screen| screen.contains(&asked));
    terminal.press(&["y"]);
    terminal.until("a second question", |screen| screen.contains("really end "));
    assert!(program.is_running());
    terminal.press(&["y"]);
    eventually("its end", || !program.is_running());
    terminal.press(&["q"]);
    scene.is_as_before();
}

#[test]
#[ignore = "needs root, BPF and tmux"]
fn a_terminal_may_change_its_size_as_often_as_it_likes() {
    let scene = Scene::open((120, 40));
    scene.start("--delay 300ms");
    scene.until_shown();
    for step in 0..30u16 {
        scene.terminal.resize(60 + 7 * step, 10 + step);
    }
    scene.terminal.resize(30, 6);
    scene
        .terminal
        .until("that it is too small", |screen| screen.contains("too small"));
    scene.terminal.resize(80, 24);
    scene.until_shown();
    let widest = scene.terminal.screen().lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80));
    scene.terminal.press(&["q"]);
    scene.is_as_before();
}

#[test]
#[ignore = "needs root, BPF and tmux"]
fn the_shell_may_stop_it_and_let_it_go_on() {
    let scene = Scene::open((100, 30));
    scene.start("--delay 300ms");
    scene.until_shown();
    for stop in ["the key", "the signal"] {
        match stop {
            "the key" => scene.terminal.press(&["C-z"]),
            _ => scene.signal(libc::SIGTSTP),
        }
        scene.terminal.until(stop, |screen| {
            screen.contains("Stopped") && screen.trim_end().ends_with("ready>")
        });
        assert!(!scene.terminal.is_on_other_screen());
        scene.terminal.press(&["clear; fg", "Enter"]);
        scene.until_shown();
    }
    scene.terminal.press(&["q"]);
    scene.is_as_before();
}

#[test]
#[ignore = "needs root, BPF and tmux"]
fn a_signal_ends_it_and_leaves_the_terminal_as_it_was() {
    let scene = Scene::open((100, 30));
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        scene.start("--delay 300ms");
        scene.until_shown();
        assert!(scene.terminal.is_on_other_screen());
        scene.signal(signal);
        scene.is_as_before();
    }
}

/// Who reads a recording may open nothing by the time at which there is something to be shown.
#[cfg(feature = "record")]
#[test]
#[ignore = "needs root, BPF and tmux"]
fn a_recording_is_played_on_the_screen() {
    let scene = Scene::open((120, 30));
    let own = env!("CARGO_BIN_EXE_gpuscope");
    let file = scene.machine.folder.path().join("t.arrows");
    let program = scene.machine.command("p-train", "train 200");
    let mut record = Command::new(own);
    record.args(["record", "-o"]).arg(&file).arg("--");
    record.arg(program.get_program()).args(program.get_args());
    let variables = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let recorded = record.envs(variables).stdin(Stdio::null()).output();
    let recorded = recorded.expect("gpuscope starts");
    assert!(recorded.status.success(), "{recorded:?}");
    scene.start(&format!("--replay {}", file.display()));
    scene.terminal.until("its totals", |screen| {
        screen.contains("playing") && screen.contains("p-train")
    });
    scene.terminal.press(&["Space", "Home"]);
    scene
        .terminal
        .until("its first second", |screen| screen.contains("paused, 1 of"));
    scene.terminal.press(&["C-z"]);
    scene
        .terminal
        .until("that it is stopped", |screen| screen.contains("Stopped"));
    scene.terminal.press(&["fg", "Enter"]);
    scene
        .terminal
        .until("the screen again", |screen| screen.contains("paused, 1 of"));
    scene.terminal.press(&["q"]);
    scene.is_as_before();
}

#[test]
#[ignore = "needs root, BPF and tmux"]
fn it_ends_with_its_terminal() {
    let scene = Scene::open((100, 30));
    scene.start("--delay 300ms");
    scene.until_shown();
    let pid = scene.top().expect("gpuscope runs");
    drop(scene.terminal);
    eventually("its end", || !PathBuf::from(format!("/proc/{pid}")).exists());
}

#[test]
#[ignore = "needs root, BPF and tmux"]
fn where_there_is_no_screen_it_says_what_there_is_instead() {
    let scene = Scene::open((100, 30));
    let own = env!("CARGO_BIN_EXE_gpuscope");
    scene
        .terminal
        .press(&[&format!("TERM=dumb {own} top; echo status $?"), "Enter"]);
    scene.terminal.until("a hint", |screen| {
        screen.contains("TERM=dumb") && screen.contains("--once")
    });
    scene
        .terminal
        .until("the status of wrong usage", |screen| screen.contains("status 2"));
    scene.terminal.press(&[&format!("clear; {own} top | cat"), "Enter"]);
    scene.terminal.until("a hint", |screen| {
        screen.contains("no terminal") && screen.contains("--once")
    });
}
