//! One process: what it does, holds and waits for.

use super::count::{Count, add, optional_whole, rate};
use crate::catalog::{Family, Holder};
use crate::model::waiting::Waiting;
use crate::owner::Owner;
use crate::serve::display::Rates;
use crate::serve::display::reading::{label, number};
use crate::serve::display::waited;
use crate::serve::metric::{Sample, Value};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How far a bound of idle time can be relied on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Certainty {
    #[default]
    Bound,
    Inferred,
}

/// One process: what it does, holds and waits for. `None`: it is not measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Process {
    /// 0: all those that are not told apart.
    pub pid: u32,
    pub user: Option<String>,
    pub comm: String,
    /// With its arguments.
    pub command: String,
    /// Pod, container, unit or job; empty: none of these.
    pub place: String,
    /// Of a job with several.
    pub(crate) rank: Option<String>,
    /// It is gone; shown for some seconds.
    pub ended: bool,
    /// Its calls are seen; `calls` says whether there were any.
    pub traced: bool,
    /// It is traced, and has not called so far.
    #[serde(skip)]
    pub quiet: bool,
    /// Another gpuscope of ours traces it: what it did until then is what is known.
    #[serde(rename = "stands_still")]
    pub(crate) lent: bool,
    /// The nearest first.
    #[serde(skip)]
    pub(crate) ancestors: Vec<u32>,
    /// Devices that it holds memory of.
    pub gpus: BTreeSet<String>,
    /// Device memory that it was seen to allocate and has not given back.
    #[serde(serialize_with = "optional_whole")]
    pub held_bytes: Option<f64>,
    /// The same of the host's that devices reach.
    #[serde(serialize_with = "optional_whole")]
    pub(crate) host_held_bytes: Option<f64>,
    /// How fast `held_bytes` grows; negative: it shrinks.
    pub(crate) growth_bytes_per_second: Option<f64>,
    /// Device memory that the driver counts for it.
    #[serde(serialize_with = "optional_whole")]
    pub driver_bytes: Option<f64>,
    /// Of that, what no allocation that was seen explains.
    #[serde(serialize_with = "optional_whole")]
    pub(crate) unattributed_bytes: Option<f64>,
    /// MIG devices that it holds memory of, as `GPU/GPU instance`.
    pub parts: BTreeSet<String>,
    /// Share of time with a kernel of it running, as the driver samples it.
    pub(crate) sm_share: Option<f64>,
    /// The same of device memory, the encoder and the decoder being used by it.
    pub(crate) memory_share: Option<f64>,
    pub(crate) encoder_share: Option<f64>,
    pub(crate) decoder_share: Option<f64>,
    /// UUIDs of MIG devices that it holds memory of.
    #[serde(skip)]
    pub(crate) mig_uuids: BTreeSet<String>,
    pub calls: Option<Count>,
    pub launches: Option<Count>,
    pub(crate) graph_launches: Option<Count>,
    pub(crate) to_device_bytes: Option<Count>,
    pub(crate) from_device_bytes: Option<Count>,
    pub(crate) other_copied_bytes: Option<Count>,
    /// In all, and of a second.
    #[serde(skip)]
    pub(crate) waited: (Waiting, Waiting),
    /// Seconds in which threads waited for a device, at least; of several threads together.
    pub(crate) waiting_seconds: Option<Count>,
    /// Seconds in which the GPU surely had nothing to do for it.
    pub(crate) idle_at_least_seconds: Option<Count>,
    pub(crate) busy_at_most_seconds: Option<Count>,
    pub(crate) idle_certainty: Certainty,
    /// Of this idle time, seconds by reason.
    pub(crate) idle_reasons: BTreeMap<String, Count>,
    /// The call that has not returned for longest.
    pub(crate) longest_call: Option<OpenCall>,
    /// Share of time that its calls spend in probes, at what a hit costs on average here.
    pub(crate) probe_share: Option<f64>,
    pub errors: Option<Count>,
    /// Busiest first.
    pub kernels: Vec<Kernel>,
    /// Most time first.
    pub waits: Vec<Wait>,
    /// Most first.
    pub failures: Vec<Failure>,
    /// Bytes of copies by direction and kind of host memory.
    pub copies: BTreeMap<String, Count>,
    /// Calls by layer and class.
    pub(crate) classes: BTreeMap<String, Class>,
}

/// A call that has not returned.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct OpenCall {
    /// The outermost of its thread.
    pub function: String,
    pub seconds: f64,
}

/// Launches of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Kernel {
    pub name: String,
    pub launches: Count,
}

/// Waits in one function, or of one hidden kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Wait {
    pub what: String,
    /// Nobody asked for it by name.
    pub hidden: bool,
    pub count: Count,
    pub seconds: Count,
    /// What of it is known to be at which line of the program; most first.
    pub places: Vec<WaitPlace>,
}

/// Waits in calls from one line.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct WaitPlace {
    #[serde(rename = "where")]
    pub(crate) place: String,
    pub seconds: Count,
}

/// Calls that failed in one way.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Failure {
    pub function: String,
    pub error: String,
    pub count: Count,
    /// How long ago one was seen last, as far as looks are apart; `None`: before the first look.
    #[serde(rename = "last_seconds_ago")]
    pub(crate) last_seconds: Option<f64>,
}

/// Calls of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Class {
    pub calls: Count,
    /// Of those with a duration.
    pub mean_seconds: Option<f64>,
}

impl Process {
    /// It is gone and did nothing that is shown here, as a program that only looked which libraries there are.
    pub(crate) fn is_past_and_empty(&self) -> bool {
        let has_called = self.calls.is_some_and(|calls| calls.total > 0.0);
        self.ended && !has_called && self.held_bytes.is_none() && self.gpus.is_empty()
    }

    /// Takes in one sample of its owner.
    pub(super) fn take(&mut self, sample: &Sample, rates: &Rates) {
        let count = Count {
            total: number(sample),
            per_second: rates.per_second(sample),
        };
        let place = match sample.metric.name {
            "gpuscope_api_calls_total" => return self.call(sample, count),
            "gpuscope_api_errors_total" => return self.fail(sample, count),
            "gpuscope_kernel_launches_total" => {
                let name = label(sample, "kernel").to_owned();
                return self.kernels.push(Kernel { name, launches: count });
            }
            "gpuscope_copy_bytes_total" => return self.copy(sample, count),
            "gpuscope_sync_blocked_seconds_total" | "gpuscope_hidden_wait_seconds_total" => {
                self.wait(sample).seconds = count;
                waited::add(&mut self.waited.0, sample, Some(count.total));
                waited::add(&mut self.waited.1, sample, count.per_second);
                return;
            }
            "gpuscope_sync_waits_total" | "gpuscope_hidden_waits_total" => {
                self.wait(sample).count = count;
                return;
            }
            "gpuscope_wait_site_seconds_total" => return self.wait_at(sample, count),
            "gpuscope_waste_gpu_seconds_total" => {
                let reason = label(sample, "reason").to_owned();
                return self.idle_reasons.entry(reason).or_default().add(count);
            }
            "gpuscope_launches_total" => &mut self.launches,
            "gpuscope_graph_launches_total" => &mut self.graph_launches,
            "gpuscope_gpu_idle_at_least_seconds_total" => &mut self.idle_at_least_seconds,
            "gpuscope_gpu_busy_at_most_seconds_total" => &mut self.busy_at_most_seconds,
            _ => return self.measure(sample),
        };
        add(place, count);
    }

    fn call(&mut self, sample: &Sample, count: Count) {
        self.traced = true;
        self.class(sample).calls.add(count);
        add(&mut self.calls, count);
        // a program that called without a failure has none, which is known
        self.errors.get_or_insert(Count {
            total: 0.0,
            per_second: count.per_second.map(|_| 0.0),
        });
    }

    fn class(&mut self, sample: &Sample) -> &mut Class {
        let name = format!("{} {}", label(sample, "layer"), label(sample, "class"));
        self.classes.entry(name).or_default()
    }

    fn fail(&mut self, sample: &Sample, count: Count) {
        add(&mut self.errors, count);
        self.failures.push(Failure {
            function: label(sample, "function").to_owned(),
            error: label(sample, "error").to_owned(),
            count,
            last_seconds: None,
        });
    }

    fn copy(&mut self, sample: &Sample, count: Count) {
        self.copied(label(sample, "direction"), label(sample, "host_memory"), count);
    }

    /// Bytes were copied.
    pub(crate) fn copied(&mut self, direction: &str, host: &str, bytes: Count) {
        let place = match direction {
            "HtoD" => &mut self.to_device_bytes,
            "DtoH" => &mut self.from_device_bytes,
            _ => &mut self.other_copied_bytes,
        };
        add(place, bytes);
        let name = format!("{direction} {host}").trim_end().to_owned();
        self.copies.entry(name).or_default().add(bytes);
    }

    fn wait_at(&mut self, sample: &Sample, seconds: Count) {
        let (what, place) = (label(sample, "wait"), label(sample, "site").to_owned());
        let wait = self.waits.iter_mut().find(|wait| wait.what == what);
        if let Some(wait) = wait.filter(|_| !place.is_empty()) {
            wait.places.push(WaitPlace { place, seconds });
        }
    }

    fn wait(&mut self, sample: &Sample) -> &mut Wait {
        let hidden = !sample.metric.labels.contains(&"function");
        self.wait_named(label(sample, if hidden { "kind" } else { "function" }), hidden)
    }

    /// That one, which is made where it is new.
    pub(crate) fn wait_named(&mut self, what: &str, hidden: bool) -> &mut Wait {
        let is_it = |wait: &Wait| wait.what == what && wait.hidden == hidden;
        let place = self.waits.iter().position(is_it);
        let place = place.unwrap_or_else(|| {
            self.waits.push(Wait {
                what: what.to_owned(),
                hidden,
                ..Wait::default()
            });
            self.waits.len() - 1
        });
        &mut self.waits[place]
    }

    /// As it was, with what the driver says `now`: from here on another gpuscope of ours traces it.
    pub(crate) fn lent(mut self, now: Option<Process>) -> Process {
        self.lent = true;
        self.longest_call = None;
        self.probe_share = None;
        let one = [
            &mut self.calls,
            &mut self.launches,
            &mut self.graph_launches,
            &mut self.to_device_bytes,
            &mut self.from_device_bytes,
            &mut self.other_copied_bytes,
            &mut self.waiting_seconds,
            &mut self.idle_at_least_seconds,
            &mut self.busy_at_most_seconds,
            &mut self.errors,
        ];
        let many = self.kernels.iter_mut().map(|kernel| &mut kernel.launches);
        let failures = self.failures.iter_mut().map(|failure| &mut failure.count);
        let waits = self.waits.iter_mut().flat_map(|wait| {
            let places = wait.places.iter_mut().map(|place| &mut place.seconds);
            [&mut wait.count, &mut wait.seconds].into_iter().chain(places)
        });
        let by_name = self.copies.values_mut().chain(self.idle_reasons.values_mut());
        let classes = self.classes.values_mut().map(|class| &mut class.calls);
        let all = one.into_iter().flatten().chain(many).chain(failures).chain(waits);
        all.chain(by_name)
            .chain(classes)
            .for_each(|count| count.per_second = None);
        let now = now.unwrap_or_default();
        Process {
            driver_bytes: now.driver_bytes,
            sm_share: now.sm_share,
            memory_share: now.memory_share,
            encoder_share: now.encoder_share,
            decoder_share: now.decoder_share,
            ..self
        }
    }

    /// Calls `each` with every number that grows, and what it was in `old`.
    #[cfg(feature = "record")]
    pub(crate) fn each_count(&mut self, old: &Process, mut each: impl FnMut(&mut Count, f64)) {
        let before = |count: Option<Count>| count.map_or(0.0, |count| count.total);
        let pairs = [
            (&mut self.calls, old.calls),
            (&mut self.launches, old.launches),
            (&mut self.to_device_bytes, old.to_device_bytes),
            (&mut self.from_device_bytes, old.from_device_bytes),
            (&mut self.other_copied_bytes, old.other_copied_bytes),
            (&mut self.waiting_seconds, old.waiting_seconds),
            (&mut self.idle_at_least_seconds, old.idle_at_least_seconds),
            (&mut self.errors, old.errors),
        ];
        for (own, old) in pairs {
            own.iter_mut().for_each(|count| each(count, before(old)));
        }
        for kernel in &mut self.kernels {
            let known = old.kernels.iter().find(|known| known.name == kernel.name);
            each(&mut kernel.launches, known.map_or(0.0, |known| known.launches.total));
        }
        for wait in &mut self.waits {
            let known = old
                .waits
                .iter()
                .find(|known| known.what == wait.what && known.hidden == wait.hidden);
            let known = known.cloned().unwrap_or_default();
            each(&mut wait.count, known.count.total);
            each(&mut wait.seconds, known.seconds.total);
        }
        for failure in &mut self.failures {
            let is_it = |known: &&Failure| known.function == failure.function && known.error == failure.error;
            let known = old.failures.iter().find(is_it).map_or(0.0, |known| known.count.total);
            each(&mut failure.count, known);
        }
        for (name, copied) in &mut self.copies {
            each(copied, before(old.copies.get(name).copied()));
        }
    }

    /// What is as it is now.
    fn measure(&mut self, sample: &Sample) {
        let value = number(sample);
        if let ("gpuscope_api_duration_seconds", Value::Histogram(durations)) = (sample.metric.name, &sample.value) {
            let mean = durations.sum / durations.count.max(1) as f64;
            self.class(sample).mean_seconds = Some(mean);
            return;
        }
        let gpu = label(sample, "gpu");
        let place = match sample.metric.name {
            "gpuscope_memory_held_bytes" if is_of_host(sample) => &mut self.host_held_bytes,
            "gpuscope_memory_held_bytes" => &mut self.held_bytes,
            "gpuscope_memory_unattributed_bytes" | "gpuscope_memory_earlier_bytes" => &mut self.unattributed_bytes,
            "gpuscope_gpu_process_memory_bytes" => &mut self.driver_bytes,
            "gpuscope_gpu_process_sm_utilization_ratio" => &mut self.sm_share,
            "gpuscope_gpu_process_engine_utilization_ratio" => match label(sample, "engine") {
                "memory" => &mut self.memory_share,
                "encoder" => &mut self.encoder_share,
                _ => &mut self.decoder_share,
            },
            "gpuscope_gpu_idle_inferred_processes" if value > 0.0 => {
                self.idle_certainty = Certainty::Inferred;
                return;
            }
            _ => return,
        };
        *place.get_or_insert_default() += value;
        let part = label(sample, "mig_uuid");
        if !part.is_empty() && value > 0.0 {
            self.mig_uuids.insert(part.to_owned());
        }
        if !gpu.is_empty() && value > 0.0 {
            self.gpus.insert(gpu.to_owned());
        }
    }

    /// What is most first.
    pub(super) fn settle(&mut self, owner: &Owner) {
        let most = |left: &Count, right: &Count| right.total.total_cmp(&left.total);
        let kernels = |left: &Kernel, right: &Kernel| {
            let by_rate = |kernel: &Kernel| rate(Some(kernel.launches)).unwrap_or(0.0);
            let first = by_rate(right).total_cmp(&by_rate(left));
            first.then(most(&left.launches, &right.launches))
        };
        self.waiting_seconds = self.waited.0.at_least().map(|total| Count {
            total,
            per_second: self.waited.1.at_least(),
        });
        self.kernels.sort_by(kernels);
        self.waits.sort_by(|left, right| most(&left.seconds, &right.seconds));
        for wait in &mut self.waits {
            wait.places.sort_by(|left, right| most(&left.seconds, &right.seconds));
        }
        self.failures.sort_by(|left, right| most(&left.count, &right.count));
        self.rank = owner.get("env_rank").filter(|rank| !rank.is_empty()).map(str::to_owned);
    }
}

fn is_of_host(sample: &Sample) -> bool {
    let name = label(sample, "family");
    let family = Family::ALL.iter().find(|family| family.name() == name);
    family.is_some_and(|family| family.holder() == Holder::Host)
}
