//! Xids as samples.

use crate::device::telemetry::{Identity, Telemetry};
use crate::driver::xid::{Reporter, Xid};
use crate::owner::Owner;
use crate::serve::metric::{Sample, Value};
use crate::serve::metrics::xid as table;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Series that are kept apart by owner; the reports of others have none.
const MOST_OWNED: usize = 512;

/// Where it was, and which.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fault {
    is_switch: bool,
    pci: String,
    gpu_instance: Option<u32>,
    code: u32,
}

/// Whose, and how many.
type OfOwner = (Option<Arc<Owner>>, u64);

/// All reports since the boot, as far as they are known.
#[derive(Debug, Default)]
pub(crate) struct Xids {
    counts: BTreeMap<Fault, Vec<OfOwner>>,
    /// Seconds since 1970.
    last: BTreeMap<Fault, f64>,
    owned: usize,
    /// Whether the kernel's log is read.
    pub reads_log: bool,
}

impl Xids {
    /// Adds a report of `at`, seconds since 1970, that names a process of `owner`; whether it is the first of its series.
    pub(crate) fn add(&mut self, xid: &Xid, at: f64, owner: Option<Arc<Owner>>) -> bool {
        let fault = Fault {
            is_switch: xid.reporter == Reporter::Switch,
            pci: xid.pci.clone(),
            gpu_instance: xid.instance.map(|part| part.gpu),
            code: xid.code,
        };
        let last = self.last.entry(fault.clone()).or_insert(at);
        *last = last.max(at);
        let counts = self.counts.entry(fault).or_default();
        if let Some(known) = counts.iter_mut().find(|(of, _)| *of == owner) {
            known.1 += 1;
            return false;
        }
        let room = owner.is_none() || self.owned < MOST_OWNED;
        self.owned += usize::from(owner.is_some() && room);
        match counts.iter_mut().find(|(of, _)| of.is_none()).filter(|_| !room) {
            Some(nobody) => nobody.1 += 1,
            None => {
                counts.push((owner.filter(|_| room), 1));
                return true;
            }
        }
        false
    }

    /// Everything as samples; `telemetry` knows the names of GPUs.
    #[must_use]
    pub(crate) fn samples(&self, telemetry: Option<&Telemetry>) -> Vec<Sample> {
        let mut samples = Vec::new();
        for (fault, counts) in self.counts.iter().filter(|(fault, _)| !fault.is_switch) {
            for (owner, count) in counts {
                let instance = fault.gpu_instance.map(|number| number.to_string());
                let more = [instance.unwrap_or_default(), fault.code.to_string()];
                let values = place(fault, telemetry).into_iter().chain(more.map(Cow::Owned));
                let sample = Sample::new(&table::GPU_XID_REPORTS, values.collect(), Value::Integer(*count));
                samples.push(match owner {
                    Some(owner) => sample.of(owner),
                    None => sample,
                });
            }
        }
        samples.extend(self.timestamps(telemetry));
        for (fault, counts) in self.counts.iter().filter(|(fault, _)| fault.is_switch) {
            let values = vec![bus_id(&fault.pci).into(), fault.code.to_string().into()];
            let count = counts.iter().map(|(_, count)| count).sum();
            samples.push(Sample::new(
                &table::NVSWITCH_SXID_REPORTS,
                values,
                Value::Integer(count),
            ));
        }
        let up = Value::Integer(self.reads_log.into());
        samples.push(Sample::new(&table::XID_LOG_UP, Vec::new(), up));
        samples
    }

    /// One for each code of a GPU, whatever its instances.
    fn timestamps(&self, telemetry: Option<&Telemetry>) -> Vec<Sample> {
        let mut last: BTreeMap<Fault, f64> = BTreeMap::new();
        for (fault, at) in self.last.iter().filter(|(fault, _)| !fault.is_switch) {
            let gpu_instance = None;
            let of_gpu = Fault {
                gpu_instance,
                ..fault.clone()
            };
            let known = last.entry(of_gpu).or_insert(*at);
            *known = known.max(*at);
        }
        let sample = |(fault, at): (&Fault, &f64)| {
            let values = place(fault, telemetry).into_iter();
            let values = values.chain([fault.code.to_string().into()]).collect();
            Sample::new(&table::GPU_XID_REPORT_TIMESTAMP_SECONDS, values, Value::Number(*at))
        };
        last.iter().map(sample).collect()
    }
}

/// Labels `gpu`, `uuid` and `pci_bus_id`; the first two are empty where NVML does not know the device.
fn place(fault: &Fault, telemetry: Option<&Telemetry>) -> [Cow<'static, str>; 3] {
    let wanted = bus_id(&fault.pci);
    let answering = |telemetry: &Telemetry| -> Vec<Identity> {
        let gpus = telemetry.gpus.iter().map(|gpu| gpu.identity.clone());
        gpus.chain(telemetry.lost.clone()).collect()
    };
    let known = telemetry.map(answering).unwrap_or_default();
    let known = known
        .into_iter()
        .find(|gpu| gpu.pci_bus_id.eq_ignore_ascii_case(&wanted));
    match known {
        Some(gpu) => [gpu.index.to_string().into(), gpu.uuid.into(), gpu.pci_bus_id.into()],
        None => ["".into(), "".into(), wanted.into()],
    }
}

/// NVML's form, `00000000:17:00.0`, of `0000:17:00`; what has another form stays as it is.
fn bus_id(pci: &str) -> String {
    match pci.split_once(':') {
        Some((domain, rest)) if rest.contains(':') => format!("{domain:0>8}:{rest}.0").to_ascii_uppercase(),
        _ => pci.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::fixture::owner;

    fn xid(line: &str) -> Xid {
        Xid::of_record(line).expect("an Xid")
    }

    fn said(xids: &Xids) -> Vec<String> {
        let one = |sample: &Sample| {
            let labels: Vec<String> = sample.labels().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{}{{{}}} {:?}", sample.metric.name, labels.join(","), sample.value)
        };
        xids.samples(None).iter().map(one).collect()
    }

    #[test]
    fn reports_are_counted_by_gpu_code_and_owner() {
        let (mut xids, train) = (Xids::default(), owner(&[("comm", "train")]));
        let report = xid("NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 31, pid=7, name=train, x");
        xids.add(&report, 10.0, Some(Arc::clone(&train)));
        xids.add(&report, 9.0, Some(train));
        xids.add(&report, 8.0, None);
        xids.add(&xid("NVRM: Xid (PCI:0000:3b:00): 31, x"), 11.5, None);
        xids.add(
            &xid("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Fatal"),
            12.0,
            None,
        );
        let gpu = "pci_bus_id=00000000:3B:00.0";
        let expected = [
            format!("gpuscope_gpu_xid_reports_total{{{gpu},xid=31}} Integer(1)"),
            format!("gpuscope_gpu_xid_reports_total{{{gpu},gpu_instance=5,xid=31,comm=train}} Integer(2)"),
            format!("gpuscope_gpu_xid_reports_total{{{gpu},gpu_instance=5,xid=31}} Integer(1)"),
            format!("gpuscope_gpu_xid_report_timestamp_seconds{{{gpu},xid=31}} Number(11.5)"),
            "gpuscope_nvswitch_sxid_reports_total{pci_bus_id=00000000:C1:00.0,sxid=12028} Integer(1)".to_owned(),
            "gpuscope_xid_log_up{} Integer(0)".to_owned(),
        ];
        assert_eq!(said(&xids), expected);
    }

    #[test]
    fn many_owners_are_counted_together_and_no_report_is_lost() {
        let mut xids = Xids::default();
        let report = xid("NVRM: Xid (PCI:0000:3b:00): 31, x");
        for number in 0..2000 {
            xids.add(&report, 1.0, Some(owner(&[("pod", &number.to_string())])));
        }
        let counts = xids.samples(None);
        let counts = counts.iter().filter(|sample| sample.metric.by_owner);
        let counts: Vec<u64> = counts
            .map(|sample| match sample.value {
                Value::Integer(count) => count,
                _ => 0,
            })
            .collect();
        assert_eq!((counts.len(), counts.iter().sum::<u64>()), (MOST_OWNED + 1, 2000));
    }
}
