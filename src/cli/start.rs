//! How CMD is started, of every command that starts one.

use crate::activity::{Windows, Wish};
use crate::text::parse::parse_period;
use clap::Args;
use std::time::Duration;

/// As whom CMD runs, and until when it is traced.
#[derive(Clone, Debug, Default, Args)]
pub struct Start {
    /// Run CMD as this user, by name or number, with that user's groups and HOME [default: under sudo its caller, with
    /// the caller's PATH and other variables, too]
    #[arg(long, value_name = "NAME", requires = "command", help_heading = "How CMD runs")]
    pub user: Option<String>,
    /// Under sudo, run CMD as root and with root's environment
    #[arg(long, conflicts_with = "user", requires = "command", help_heading = "How CMD runs")]
    pub(crate) as_root: bool,
    /// When CMD has ended, go on until the processes that it left behind have ended, too
    #[arg(long, requires = "command", help_heading = "How CMD runs")]
    pub(crate) follow: bool,
}

/// What the GPU executed, of commands that record it.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Gpu {
    /// Record what the GPU executed, by CUPTI: on, off, or auto: where the program has a CUPTI that no other tool holds (one
    /// that runs already: where gpuscope preload has started it, and its device is idle now and then); or
    /// window=LENGTH/PERIOD, such as window=1s/60s: on for so long of each period; or
    /// graphs: on, with graphs as a whole instead of their nodes, which costs less
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
    On(Wish),
    Off,
}

/// Shorter windows, and shorter times between them, are lost in how long it takes to open and to close one.
const SHORTEST: Duration = Duration::from_millis(100);

fn parse_gpu(text: &str) -> Result<GpuChoice, String> {
    match text {
        "auto" => Ok(GpuChoice::Auto),
        "off" => Ok(GpuChoice::Off),
        _ => parse_wish(text).map(GpuChoice::On),
    }
}

/// Not both: CUPTI has no record of a graph that was made while it was not asked for graphs, as between windows.
fn parse_wish(text: &str) -> Result<Wish, String> {
    match (text, text.strip_prefix("window=")) {
        ("on", _) => Ok(Wish::default()),
        ("graphs", _) => Ok(Wish {
            graphs: true,
            ..Wish::default()
        }),
        (_, Some(windows)) => Ok(Wish {
            windows: Some(parse_windows(windows)?),
            ..Wish::default()
        }),
        _ => Err("it is auto, on, off, graphs or window=LENGTH/PERIOD".to_owned()),
    }
}

fn parse_windows(text: &str) -> Result<Windows, String> {
    let Some((length, period)) = text.split_once('/') else {
        return Err("it needs a length and a period: window=1s/60s".to_owned());
    };
    let (length, period) = (parse_period(length)?, parse_period(period)?);
    if length < SHORTEST || period < length + SHORTEST {
        return Err("a window lasts 100ms or more, and so does the time to the next one: window=1s/60s".to_owned());
    }
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Ok(Windows {
        length_ns: ns(length),
        period_ns: ns(period),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_a_length_and_a_period() {
        assert_eq!(parse_gpu("on"), Ok(GpuChoice::On(Wish::default())));
        let windows = Windows {
            length_ns: 1_000_000_000,
            period_ns: 60_000_000_000,
        };
        let in_windows = Wish {
            windows: Some(windows),
            graphs: false,
        };
        assert_eq!(parse_gpu("window=1s/60s"), Ok(GpuChoice::On(in_windows)));
        for wrong in [
            "window=1s",
            "window=1/60",
            "window=60s/60s",
            "window=1ms/60s",
            "window=",
            "windows",
            "graphs,window=1s/60s",
        ] {
            assert!(parse_gpu(wrong).is_err(), "{wrong}");
        }
    }
}
