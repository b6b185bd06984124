//! What devices execute, as processes hand it over: told as records, and added up.
//!
//! Owns whether a program is started so. How it comes is `collect::activity`'s business, what it adds up to that of
//! `model::activity`.

use super::Tracer;
use crate::activity::{Activities, INJECTION};
use crate::model::activity::{Account, Activity, Coverage, Report};
use crate::output::say;
use crate::probe::launch::Runner;
use crate::refusal::message;
use anyhow::{Result, bail};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Demand {
    /// Where it cannot be had, that is an error.
    pub must: bool,
    /// Activities become lines.
    pub lines: bool,
}

/// See the module.
pub(super) struct GpuPlane {
    demand: Demand,
    /// Or why there are none.
    activities: Result<Activities, String>,
    account: Account,
    comms: HashMap<u32, String>,
}

impl GpuPlane {
    fn report(&self) -> Report {
        Report {
            devices: self.account.report(),
            coverage: self
                .activities
                .iter()
                .flat_map(Activities::reports)
                .map(|told| Coverage::of(&told))
                .collect(),
            refused: self.activities.as_ref().err().cloned(),
        }
    }

    /// What a program needs in its environment, in which `given` is there already.
    fn environment(&mut self, given: Option<OsString>, user: Option<u32>) -> Result<Vec<(OsString, OsString)>> {
        let Ok(activities) = &self.activities else {
            return Ok(Vec::new());
        };
        let Some(other) = given.filter(|path| !path.is_empty()) else {
            return activities.environment(user);
        };
        let why = format!(
            "{INJECTION} is set to {} already, and has room for one library",
            other.display()
        );
        if self.demand.must {
            bail!("--gpu on: {why}\nhint: unset it");
        }
        say(format_args!("gpuscope: what the GPU executes is not recorded: {why}"));
        self.activities = Err(format!("{why}; hint: unset it"));
        Ok(Vec::new())
    }
}

impl Tracer {
    /// Has programs that are started from now on tell what devices execute for them.
    ///
    /// # Errors
    /// It must be, and cannot.
    pub fn watch_gpu(&mut self, demand: Demand) -> Result<()> {
        let activities = match Activities::start() {
            Err(error) if demand.must => return Err(error.context("failed to record what the GPU executes")),
            started => started.map_err(|error| message(&error)),
        };
        self.gpu = Some(GpuPlane {
            demand,
            activities,
            account: Account::default(),
            comms: HashMap::new(),
        });
        Ok(())
    }

    /// What a program that is started needs for that.
    pub(super) fn environment_of_gpu(&mut self, runner: Option<&Runner>) -> Result<Vec<(OsString, OsString)>> {
        let Some(gpu) = &mut self.gpu else {
            return Ok(Vec::new());
        };
        let given = match runner {
            Some(runner) => runner.environment.get(OsStr::new(INJECTION)).cloned(),
            None => std::env::var_os(INJECTION),
        };
        gpu.environment(given, runner.map(|runner| runner.user.uid))
    }

    /// Takes in what devices have done.
    pub(super) fn take_activities(&mut self) {
        let Some(gpu) = &mut self.gpu else { return };
        let Ok(activities) = &gpu.activities else { return };
        let shows = gpu.demand.lines && self.encoder.as_ref().is_some_and(|encoder| encoder.shows());
        activities.drain(&mut |source, record| {
            let Some(activity) = Activity::of(source, record, &mut self.launches) else {
                return;
            };
            gpu.account.add(&activity);
            if shows {
                self.window.run(activity);
            }
        });
    }

    pub(super) fn write_activity(&mut self, activity: &Activity) {
        let Some(encoder) = self.encoder.as_mut() else { return };
        let comms = self.gpu.as_mut().map(|gpu| &mut gpu.comms);
        let comm = comms.map(|comms| {
            let known = comms.entry(activity.pid);
            known.or_insert_with(|| crate::discover::comm(activity.pid, activity.pid).unwrap_or_default())
        });
        let comm = comm.map_or("", |comm| comm.as_str());
        let made = self.maker.activity(activity, comm, self.full_names, encoder.keeps());
        encoder.take(&made, &mut self.buffer);
        self.write_if_full();
    }

    /// What there is so far; `None`: nobody asks.
    pub(super) fn report_activities(&self) -> Option<Report> {
        self.gpu.as_ref().map(GpuPlane::report)
    }
}
