//! In place of the page of `--display-interval` in a build without the screen.

use crate::refusal::Usage;
use crate::serve::Scrape;
use anyhow::{Result, bail};
use std::time::Duration;

const MISSING: &str =
    "--display-interval: this build has no pages\nhint: cargo build with the feature top, which is on by default";

/// There is none.
pub(super) enum Display {}

impl Display {
    /// # Errors
    /// Names the missing feature.
    pub(super) fn new(_: Duration) -> Result<Display> {
        bail!(Usage(MISSING.to_owned()))
    }

    pub(super) fn is_due(&mut self) -> bool {
        match *self {}
    }

    pub(super) fn show(&mut self, _: &Scrape) {
        match *self {}
    }
}
