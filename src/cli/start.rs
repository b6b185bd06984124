//! How CMD is started, of every command that starts one.

use clap::Args;

/// As whom CMD runs, and until when it is traced.
#[derive(Clone, Debug, Default, Args)]
pub struct Start {
    /// Run CMD as this user, by name or number, with that user's groups and HOME [default: under sudo its caller, with
    /// the caller's PATH and other variables, too]
    #[arg(long, value_name = "NAME", requires = "command", help_heading = "How CMD runs")]
    pub user: Option<String>,
    /// Under sudo, run CMD as root and with root's environment
    #[arg(long, conflicts_with = "user", requires = "command", help_heading = "How CMD runs")]
    pub as_root: bool,
    /// When CMD has ended, go on until the processes that it left behind have ended, too
    #[arg(long, requires = "command", help_heading = "How CMD runs")]
    pub follow: bool,
}

/// What the GPU executed, of commands that record it.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Gpu {
    /// Record what the GPU executed, by CUPTI: on, off, or auto: where CMD has a CUPTI that no other tool holds
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        value_parser = parse_gpu,
        help_heading = "What is recorded"
    )]
    pub gpu: GpuChoice,
}

/// See [`Gpu`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GpuChoice {
    #[default]
    Auto,
    On,
    Off,
}

fn parse_gpu(text: &str) -> Result<GpuChoice, String> {
    match text {
        "auto" => Ok(GpuChoice::Auto),
        "on" => Ok(GpuChoice::On),
        "off" => Ok(GpuChoice::Off),
        _ if text.starts_with("window=") => {
            Err("windows are not there yet: what the GPU executed is recorded all the time, or not at all".to_owned())
        }
        _ => Err("it is auto, on or off".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_refused_with_a_reason() {
        assert_eq!(parse_gpu("on"), Ok(GpuChoice::On));
        assert!(parse_gpu("window=1s/60s").is_err_and(|why| why.contains("not there yet")));
    }
}
