//! The tables: printed as they come, and written between the markers of their region of a Markdown page.

use anyhow::{Context, Result};
use std::fmt::Write;
use std::path::Path;

/// One table with its heading.
pub struct Table {
    pub title: String,
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
    pub note: String,
}

impl Table {
    fn markdown(&self) -> String {
        let mut text = format!("\n### {}\n\n| {} |\n|", self.title, self.columns.join(" | "));
        for index in 0..self.columns.len() {
            text.push_str(if index == 0 { "---|" } else { "---:|" });
        }
        for row in &self.rows {
            let _ = write!(text, "\n| {} |", row.join(" | "));
        }
        let _ = write!(text, "\n\n{}\n", self.note);
        text
    }
}

/// Everything that one run measured of a region.
pub struct Report(String);

impl Report {
    /// Begins with the machine.
    ///
    /// # Errors
    /// The machine does not say what it is.
    pub fn new() -> Result<Report> {
        let kernel = read("/proc/sys/kernel/osrelease")?;
        let info = read("/proc/cpuinfo")?;
        let cpu = field(&info, "model name");
        let cpus = info.lines().filter(|line| line.starts_with("processor")).count();
        let load = read("/proc/loadavg")?;
        let load = load.split(' ').next().unwrap_or("?");
        let machine = format!(
            "Machine: {cpus} × {cpu}, Linux {kernel}, load average {load} at the start. Command: `make bench`.\n"
        );
        print!("{machine}");
        Ok(Report(machine))
    }

    /// Prints a table and keeps it.
    pub fn add(&mut self, table: Table) {
        let text = table.markdown();
        print!("{text}");
        self.0.push_str(&text);
    }

    /// Replaces what stands between the markers of that region of the page.
    ///
    /// # Errors
    /// The page cannot be read or written, or has no markers.
    pub fn write_into(&self, path: &Path, region: &str) -> Result<()> {
        let page = std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
        let begin = format!("<!-- measured, {region}: written by `make bench`, do not edit -->");
        let end = format!("<!-- end of measured, {region} -->");
        let missing = || format!("{} lacks the line {begin} or {end}", path.display());
        let (before, rest) = page.split_once(&begin).with_context(missing)?;
        let (_, after) = rest.split_once(&end).with_context(missing)?;
        let page = format!("{before}{begin}\n{}\n{end}{after}", self.0);
        std::fs::write(path, page).with_context(|| format!("failed to write {}", path.display()))
    }
}

fn read(path: &str) -> Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("failed to read {path}"))?;
    Ok(text.trim().to_owned())
}

fn field<'a>(text: &'a str, name: &str) -> &'a str {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or("? : ?");
    line.split_once(": ").map_or("?", |(_, value)| value)
}
