//! `gpuscope serve`: everything put together, and kept running until a signal.

#[cfg_attr(not(feature = "top"), path = "serve/no_display.rs")]
mod display;
mod exporter;
mod faults;
pub(in crate::command) mod gatherer;
mod hardware;
#[cfg_attr(not(feature = "record"), path = "serve/no_keeping.rs")]
mod keeping;
mod reserving;
mod signals;
mod sources;
mod standstill;
mod status;

use super::prepare;
use crate::cli::ServeArgs;
use crate::output::{Output, say};
use crate::serve::{Exchange, config, http};
use anyhow::Result;
use exporter::Exporter;
use signals::Signals;
use std::process::ExitCode;
use std::sync::Arc;

/// Serves until SIGINT or SIGTERM; SIGHUP has the configuration read again.
///
/// # Errors
/// A wrong configuration, an address in use, or what the kernel refuses.
pub(crate) fn run(args: &ServeArgs) -> Result<ExitCode> {
    let config = config::check(args)?;
    if args.check_config {
        http::check_web_config(config.web_config.as_deref())?;
        prepare::catalog(&config.hooks)?;
        if config.keep.time.is_some() {
            sources::keep_folder(&config)?;
        }
        say("gpuscope: the configuration is right");
        let mut output = Output::stdout();
        output.write(config.show().as_bytes());
        output.check()?;
        return Ok(ExitCode::SUCCESS);
    }
    let exchange = Arc::new(Exchange::new()?);
    let signals = Signals::catch(Arc::clone(&exchange))?;
    let mut exporter = Exporter::start(config, exchange, args.verbose)?;
    exporter.greet();
    exporter.confine();
    while !signals.end() {
        if signals.take_hangup() {
            exporter.reload(args);
        }
        exporter.step()?;
    }
    signals.ending();
    exporter.stop();
    Ok(ExitCode::SUCCESS)
}
