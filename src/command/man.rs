//! `gpuscope man`: one manual page with every command and its options, made from the same words as `--help`.

use super::stdout::closed_is_fine;
use crate::cli::Cli;
use anyhow::Result;
use clap::CommandFactory;
use clap_mangen::Man;
use std::io::Write;
use std::process::ExitCode;

/// Writes the page to stdout.
///
/// # Errors
/// It cannot be written; a closed pipe is no error.
pub(crate) fn run() -> Result<ExitCode> {
    closed_is_fine(std::io::stdout().write_all(&page()?))?;
    Ok(ExitCode::SUCCESS)
}

fn page() -> Result<Vec<u8>> {
    let mut cli = Cli::command();
    cli.build();
    let mut out = Vec::new();
    let top = Man::new(cli.clone());
    top.render_title(&mut out)?;
    top.render_name_section(&mut out)?;
    top.render_synopsis_section(&mut out)?;
    top.render_description_section(&mut out)?;
    for command in cli.get_subcommands().filter(|command| command.get_name() != "help") {
        out.extend(section(command)?);
    }
    let mut extra = Vec::new();
    top.render_extra_section(&mut extra)?;
    out.extend(
        String::from_utf8_lossy(&extra)
            .replace(".SH EXTRA\n", ".SH EXAMPLES\n")
            .bytes(),
    );
    Ok(out)
}

/// A command's own page as one section of this one.
fn section(command: &clap::Command) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    let man = Man::new(command.clone());
    man.render_synopsis_section(&mut body)?;
    man.render_description_section(&mut body)?;
    man.render_options_section(&mut body)?;
    man.render_extra_section(&mut body)?;
    let name = command
        .get_bin_name()
        .unwrap_or_else(|| command.get_name())
        .to_uppercase();
    let body = String::from_utf8_lossy(&body)
        .replace("\n.SH ", "\n.SS ")
        .replace("\n.SS EXTRA\n", "\n.SS EXAMPLES\n");
    let body = body
        .strip_prefix(".SH ")
        .map_or(body.clone(), |rest| format!(".SS {rest}"));
    Ok(format!(".SH \"{name}\"\n{body}").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_option_is_on_the_page() {
        let page = String::from_utf8(page().unwrap()).unwrap().replace('\\', "");
        let mut cli = Cli::command();
        cli.build();
        for command in cli.get_subcommands().filter(|command| command.get_name() != "help") {
            let heading = format!("\n.SH \"GPUSCOPE {}\"\n", command.get_name().to_uppercase());
            assert!(page.contains(&heading), "{heading}");
            let shown = command.get_arguments().filter(|option| !option.is_hide_set());
            for option in shown.filter_map(|option| option.get_long()) {
                assert!(page.contains(&format!("--{option}")), "--{option}");
            }
        }
    }
}
