//! A real terminal: tmux, with a shell in it.

use crate::support::eventually;
use std::path::Path;
use std::process::{Command, Output};

/// A server of its own; ended when dropped.
pub struct Terminal {
    name: String,
}

impl Terminal {
    /// With a shell that has this environment.
    pub fn open((width, height): (u16, u16), environment: &[(&str, impl AsRef<Path>)]) -> Terminal {
        let unique = tempfile::tempdir().expect("a folder");
        let unique = unique
            .path()
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let terminal = Terminal {
            name: format!("gpuscope-{unique}"),
        };
        let (width, height) = (width.to_string(), height.to_string());
        let mut arguments = vec![
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &width,
            "-y",
            &height,
            "env",
            "PS1=ready> ",
        ];
        let variables: Vec<String> = environment
            .iter()
            .map(|(name, value)| format!("{name}={}", value.as_ref().display()))
            .collect();
        arguments.extend(variables.iter().map(String::as_str));
        arguments.extend(["bash", "--norc", "--noprofile", "-i"]);
        let opened = terminal.tmux(&arguments);
        assert!(
            opened.status.success(),
            "tmux: scripts/setup.sh test installs it: {opened:?}"
        );
        terminal.until("a shell", |screen| screen.contains("ready>"));
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.name]).args(arguments).env_remove("TMUX");
        command.output().expect("tmux: scripts/setup.sh test installs it")
    }

    /// As tmux calls them: `Enter`, `C-c`, `Left`, or the text itself.
    pub fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    pub fn resize(&self, width: u16, height: u16) {
        self.tmux(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }

    pub fn screen(&self) -> String {
        let output = self.tmux(&["capture-pane", "-p"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Whatever is written to the terminal from now on goes into that file, too.
    pub fn copy_to(&self, file: &Path) {
        self.tmux(&["pipe-pane", &format!("cat > {}", file.display())]);
    }

    /// Whether programs have the other screen, the one without a past.
    pub fn is_on_other_screen(&self) -> bool {
        let output = self.tmux(&["display-message", "-p", "#{alternate_on}"]);
        output.stdout.starts_with(b"1")
    }

    /// Of the shell.
    pub fn pid(&self) -> u32 {
        let output = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        String::from_utf8_lossy(&output.stdout)
            .trim()
            .parse()
            .expect("a process")
    }

    pub fn until(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let mut last = String::new();
        let came = crate::support::comes_true(|| {
            last = self.screen();
            holds(&last)
        });
        assert!(came, "{what}:\n{last}");
    }

    /// How the shell sees its terminal.
    pub fn settings(&self, file: &Path) -> String {
        let _ = std::fs::remove_file(file);
        self.press(&[&format!("stty -g > {}", file.display()), "Enter"]);
        let mut said = String::new();
        eventually("stty", || {
            said = std::fs::read_to_string(file).unwrap_or_default();
            said.ends_with('\n')
        });
        said
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
