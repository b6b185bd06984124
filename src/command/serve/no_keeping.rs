//! In place of `keeping` in a build without recordings, whose configuration refuses `keep`.

use crate::device::telemetry::Telemetry;
use crate::serve::config::Config;
use crate::serve::keep::Ask;
use crate::serve::metric::Sample;
use crate::tracer::Tracer;
use anyhow::Result;

/// Nothing is ever kept.
pub(super) struct Keeping;

impl Keeping {
    pub(super) fn start(_: &Config, _: &mut Tracer) -> Result<Option<Keeping>> {
        Ok(None)
    }

    pub(super) fn step(&mut self, _: &mut Tracer, _: Vec<Option<u32>>, _: Vec<Ask>, _: Option<&Telemetry>) {}

    pub(super) fn samples(&self) -> Vec<Sample> {
        Vec::new()
    }
}
