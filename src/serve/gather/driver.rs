//! What the kernel driver was asked for, and what it answered.

use super::api::error_name;
use super::{Label, Traced};
use crate::model::fleet::{Asked, Reading};
use crate::serve::metric::{Sample, Value};
use crate::serve::metrics::driver as table;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Calls by name, and their time. Equal names of several numbers are added up.
pub(super) fn calls(traced: &Traced, reading: &Reading, to: &mut Vec<Sample>) {
    let mut by_name: BTreeMap<Cow<'_, str>, Asked> = BTreeMap::new();
    for ((row, variant), asked) in &reading.sums.asked {
        let name = traced.catalog.name_of(*row, *variant);
        by_name.entry(name).or_default().add(*asked);
    }
    for (name, asked) in by_name {
        let labels = || vec![Label::Owned(name.to_string())];
        let count = Value::Integer(asked.calls);
        to.push(Sample::new(&table::DRIVER_CALLS, labels(), count).of(&reading.owner));
        let seconds = Value::Number(asked.ns as f64 / 1e9);
        to.push(Sample::new(&table::DRIVER_CALL_SECONDS, labels(), seconds).of(&reading.owner));
    }
}

/// Refused calls by name and error.
pub(super) fn errors(traced: &Traced, reading: &Reading, to: &mut Vec<Sample>) {
    let Some(driver) = traced.catalog.driver else { return };
    let failures = reading.sums.failures.iter();
    for ((row, code), count) in failures.filter(|((row, _), _)| driver.contains(*row)) {
        let Some(known) = traced.catalog.rows.get(*row as usize) else {
            continue;
        };
        let error = error_name(traced.catalog, known, *code);
        let labels = vec![known.symbol.clone().into(), error];
        to.push(Sample::new(&table::DRIVER_ERRORS, labels, Value::Integer(*count)).of(&reading.owner));
    }
}

/// What of the time of functions was spent in it.
pub(super) fn shares(traced: &Traced, reading: &Reading, to: &mut Vec<Sample>) {
    for ((library, class), share) in &reading.sums.driver_shares {
        let Some(library) = traced.catalog.library_with(*library) else {
            continue;
        };
        let labels = vec![library.name.clone().into(), class.name().into()];
        let seconds = Value::Number(share.ns as f64 / 1e9);
        to.push(Sample::new(&table::API_DRIVER_SECONDS, labels, seconds).of(&reading.owner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::driver::Dialect;
    use crate::model::fleet::{OTHER_CODE, Sums};
    use crate::serve::metric::Collector;
    use crate::tracer::Census;
    use crate::wire::{DRIVER_SUBJECT, DriverShare, FailureKey, ShareKey, Total, TotalKey};

    const UNKNOWN_CLASS: u64 = DRIVER_SUBJECT | 0xdead_beef;
    const MEMORY_CLASS: u64 = DRIVER_SUBJECT | 0x40;
    /// NV_ERR_INVALID_CLASS of nvstatuscodes.h.
    const INVALID_CLASS: i32 = 0x22;

    struct Scene {
        catalog: Catalog,
        sums: Sums,
    }

    impl Scene {
        fn new() -> Scene {
            let mut catalog = Catalog::builtin().unwrap();
            catalog.add_driver(Dialect::unknown()).unwrap();
            let sums = Sums::default();
            Scene { catalog, sums }
        }

        fn row(&self, symbol: &str) -> u32 {
            let rows = &self.catalog.rows;
            rows.iter().position(|row| row.symbol == symbol).unwrap() as u32
        }

        fn count(&mut self, symbol: &str, variant: u64, calls: u64) {
            let (tgid, row) = (1, self.row(symbol));
            let mut total = Total::NONE;
            total.bucket[3] = calls;
            total.total_ns = calls * 250_000_000;
            let key = TotalKey { tgid, row, variant };
            self.sums.count(&self.catalog, &key, &total, None);
        }

        fn fail(&mut self, symbol: &str, code: i32) {
            let key = FailureKey {
                tgid: 1,
                row: self.row(symbol),
                code,
                pad: 0,
            };
            self.sums.fail(&key, 1);
        }

        /// Each sample as `metric label,label value`.
        fn samples(self, collectors: &[Collector]) -> Vec<String> {
            let sums = self.sums;
            let readings = vec![Reading {
                sums,
                ..Reading::default()
            }];
            let traced = Traced {
                census: &Census {
                    readings,
                    ..Census::default()
                },
                catalog: &self.catalog,
                gpus: &std::collections::HashMap::new(),
            };
            let samples = traced.samples(&collectors.iter().copied().collect());
            let said = |sample: &Sample| {
                let value = match &sample.value {
                    Value::Integer(number) => number.to_string(),
                    Value::Number(number) => number.to_string(),
                    Value::Histogram(histogram) => histogram.count.to_string(),
                };
                format!("{} {} {value}", sample.metric.name, sample.values.join(","))
            };
            samples.iter().map(said).collect()
        }
    }

    #[test]
    fn calls_are_told_apart_by_class_with_their_time() {
        let mut scene = Scene::new();
        scene.count("RM_ALLOC", MEMORY_CLASS, 4);
        scene.count("RM_ALLOC", UNKNOWN_CLASS, 1);
        scene.count("RM_FREE", 0, 2);
        assert_eq!(
            scene.samples(&[Collector::Driver]),
            [
                "gpuscope_driver_calls_total RM_ALLOC 0xdeadbeef 1",
                "gpuscope_driver_call_seconds_total RM_ALLOC 0xdeadbeef 0.25",
                "gpuscope_driver_calls_total RM_ALLOC NV01_MEMORY_LOCAL_USER 4",
                "gpuscope_driver_call_seconds_total RM_ALLOC NV01_MEMORY_LOCAL_USER 1",
                "gpuscope_driver_calls_total RM_FREE 2",
                "gpuscope_driver_call_seconds_total RM_FREE 0.5",
            ]
        );
    }

    #[test]
    fn errors_have_the_names_of_the_driver_or_of_the_kernel() {
        let mut scene = Scene::new();
        for code in [INVALID_CLASS, -libc::ENOTTY, 0x7777_7777, OTHER_CODE] {
            scene.fail("RM_ALLOC", code);
        }
        let mut said = scene.samples(&[Collector::Driver]);
        said.sort();
        assert_eq!(
            said,
            [
                "gpuscope_driver_errors_total RM_ALLOC,2004318071 1",
                "gpuscope_driver_errors_total RM_ALLOC,ENOTTY 1",
                "gpuscope_driver_errors_total RM_ALLOC,NV_ERR_INVALID_CLASS 1",
                "gpuscope_driver_errors_total RM_ALLOC,other 1",
            ]
        );
    }

    #[test]
    fn calls_of_cuda_do_not_count_those_of_the_kernel_driver() {
        let mut scene = Scene::new();
        scene.count("RM_ALLOC", MEMORY_CLASS, 4);
        scene.fail("RM_ALLOC", INVALID_CLASS);
        scene.count("cuCtxSynchronize", 0, 3);
        scene.fail("cuCtxSynchronize", 2);
        assert_eq!(
            scene.samples(&[Collector::Api, Collector::Errors]),
            [
                "gpuscope_api_calls_total driver,sync 3",
                "gpuscope_api_seconds_total driver,sync 0.75",
                "gpuscope_api_errors_total driver,cuCtxSynchronize,CUDA_ERROR_OUT_OF_MEMORY 1",
            ]
        );
    }

    #[test]
    fn time_in_the_driver_is_told_by_the_class_of_the_function_around_it() {
        let mut scene = Scene::new();
        for (symbol, ns) in [("cuMemAlloc_v2", 250_000_000), ("cuMemAllocManaged", 500_000_000)] {
            let key = ShareKey {
                tgid: 1,
                row: scene.row(symbol),
            };
            scene.sums.share(&scene.catalog, &key, DriverShare { calls: 4, ns });
        }
        assert_eq!(
            scene.samples(&[Collector::Driver]),
            ["gpuscope_api_driver_seconds_total driver,alloc 0.75"]
        );
    }
}
