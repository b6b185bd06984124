//! Series of calls that are left unseen for now: a count that stands still would say that there were none.
//!
//! Owns which these are. They are left out only of what is shown: what goes on after a restart, and what is counted again later,
//! goes on from where it was.

use crate::catalog::{Catalog, Class, Row, Traffic};
use crate::serve::metric::{Collector, Sample};
use crate::serve::metrics::work::{
    GPU_BUSY_AT_MOST_SECONDS, GPU_IDLE_AT_LEAST_SECONDS, GPU_IDLE_INFERRED_PROCESSES, GRAPH_LAUNCHES, WASTE_GPU_SECONDS,
};
use crate::tracer::Census;

/// Bounds, which hold whatever is seen, and launches of graphs, which may take memory and are always seen.
const HELD: [&str; 5] = [
    GRAPH_LAUNCHES.name,
    GPU_BUSY_AT_MOST_SECONDS.name,
    GPU_IDLE_AT_LEAST_SECONDS.name,
    GPU_IDLE_INFERRED_PROCESSES.name,
    WASTE_GPU_SECONDS.name,
];

/// Leaves them out.
pub(crate) fn leave_out_unseen(samples: &mut Vec<Sample>, census: &Census, catalog: &Catalog) {
    if Traffic::ALL.into_iter().any(|traffic| census.is_shed(traffic)) {
        samples.retain(|sample| !traffic_of(sample, catalog).is_some_and(|traffic| census.is_shed(traffic)));
    }
}

/// Of what calls it is.
fn traffic_of(sample: &Sample, catalog: &Catalog) -> Option<Traffic> {
    let label = |wanted| {
        let labels = sample.metric.labels.iter().zip(&sample.values);
        labels
            .into_iter()
            .find(|(name, _)| **name == wanted)
            .map(|(_, value)| value.as_ref())
    };
    match sample.metric.collector {
        Collector::Launches | Collector::Copies | Collector::Sites => Some(Traffic::Work),
        Collector::Sync => (!HELD.contains(&sample.metric.name)).then_some(Traffic::Work),
        Collector::Api | Collector::Buckets | Collector::Driver => label("class").and_then(Class::from_name)?.traffic(),
        Collector::Errors => {
            let row = catalog.find(catalog.library(label("layer")?)?, label("function")?, None)?;
            catalog.row(row).and_then(Row::traffic)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::metric::{Metric, Value};
    use crate::serve::metrics::{api, driver, memory, work};
    use crate::tracer::Spending;

    fn sample(metric: &'static Metric, values: &[&'static str]) -> Sample {
        let values = values.iter().map(|value| (*value).into()).collect();
        Sample::new(metric, values, Value::Integer(1))
    }

    /// What is left of one series of each kind, by its values.
    fn shown(work: bool, queries: bool) -> Vec<String> {
        let mut samples = vec![
            sample(&work::KERNEL_LAUNCHES, &["gemm"]),
            sample(&work::COPIES, &["HtoD", "pinned"]),
            sample(&work::SYNC_WAITS, &["cuStreamSynchronize"]),
            sample(&work::GPU_IDLE_AT_LEAST_SECONDS, &[]),
            sample(&memory::MEMORY_ALLOCATIONS, &["device", "", "", ""]),
            sample(&api::API_CALLS, &["driver", "launch"]),
            sample(&api::API_CALLS, &["driver", "query"]),
            sample(&driver::API_DRIVER_SECONDS, &["driver", "launch"]),
            sample(&work::GRAPH_LAUNCHES, &[]),
            sample(&api::API_CALLS, &["driver", "alloc"]),
            sample(&api::API_ERRORS, &["driver", "cuLaunchKernel", "CUDA_ERROR_UNKNOWN"]),
            sample(
                &api::API_ERRORS,
                &["driver", "cuMemAlloc_v2", "CUDA_ERROR_OUT_OF_MEMORY"],
            ),
        ];
        let census = Census {
            spending: Some(Spending {
                most: 0.0,
                shed: vec![(Traffic::Work, work, 1.0), (Traffic::Queries, queries, 0.0)],
            }),
            ..Census::default()
        };
        leave_out_unseen(&mut samples, &census, &Catalog::builtin().unwrap());
        let words = |sample: &Sample| format!("{} {}", sample.metric.name, sample.values.join(" "));
        samples.iter().map(words).collect()
    }

    #[test]
    fn series_of_what_is_not_seen_are_left_out_and_memory_and_bounds_are_not() {
        assert_eq!(shown(false, false).len(), 12);
        assert_eq!(
            shown(true, false),
            [
                "gpuscope_gpu_idle_at_least_seconds_total ",
                "gpuscope_memory_allocations device   ",
                "gpuscope_api_calls_total driver query",
                "gpuscope_graph_launches_total ",
                "gpuscope_api_calls_total driver alloc",
                "gpuscope_api_errors_total driver cuMemAlloc_v2 CUDA_ERROR_OUT_OF_MEMORY",
            ]
        );
        let without_queries = shown(false, true);
        assert_eq!(without_queries.len(), 11);
        assert!(!without_queries.contains(&"gpuscope_api_calls_total driver query".to_owned()));
    }
}
