//! How far kernels can fill multiprocessors, in a line, and of a kernel on several devices.
//!
//! Owns no occupancy: totals have that of each kernel.

use crate::model::snapshot::executed::{Executed, Kernel};
use crate::section::words::percent;

/// Below that a kernel counts as one of low occupancy.
const LOW_PERCENT: f64 = 50.0;

/// Of all kernels, by their time; `None`: there are none.
pub(super) fn line(executed: &Executed) -> Option<String> {
    let kernels = || executed.devices.iter().flat_map(|device| &device.by_kernel);
    kernels().next()?;
    let known = kernels().filter_map(|kernel| Some((kernel.total_ns as f64, kernel.occupancy_percent?)));
    let (mut ns, mut weighted, mut low_ns) = (0.0, 0.0, 0.0);
    for (time, percent) in known {
        ns += time;
        weighted += time * percent;
        low_ns += if percent < LOW_PERCENT { time } else { 0.0 };
    }
    if ns <= 0.0 {
        return Some("theoretical occupancy of kernels: not known, as limits of the device are not".to_owned());
    }
    let all: f64 = kernels().map(|kernel| kernel.total_ns as f64).sum();
    Some(format!(
        "theoretical occupancy: at most {} of the warps that there is room for, by the time of kernels; below 50 % for {} of it; known of {}",
        percent(weighted / ns / 1e2),
        percent(low_ns / ns),
        percent(ns / all)
    ))
}

/// `sum`, which counts the runs of `more` already, with its occupancy, by their time. What limits most of it limits it.
pub(super) fn join(sum: &mut Kernel, more: &Kernel) {
    let Some(percent) = more.occupancy_percent else { return };
    let new = more.total_ns as f64;
    let old = sum.total_ns.saturating_sub(more.total_ns) as f64;
    let (before, old) = sum.occupancy_percent.map_or((0.0, 0.0), |percent| (percent, old));
    let all = old + new;
    let mean = if all > 0.0 {
        (before * old + percent * new) / all
    } else {
        percent
    };
    sum.occupancy_percent = Some(mean);
    if new >= old {
        sum.limited_by.clone_from(&more.limited_by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::snapshot::executed::Device;

    fn kernel(total_ns: u64, occupancy_percent: Option<f64>, limit: Option<&str>) -> Kernel {
        Kernel {
            total_ns,
            occupancy_percent,
            limited_by: limit.map(str::to_owned),
            ..Kernel::default()
        }
    }

    fn executed(by_kernel: Vec<Kernel>) -> Executed {
        let devices = vec![Device {
            by_kernel,
            ..Device::default()
        }];
        Executed {
            devices,
            ..Executed::default()
        }
    }

    #[test]
    fn all_kernels_count_by_their_time() {
        let kernels = vec![
            kernel(600, Some(25.0), Some("registers")),
            kernel(200, Some(100.0), None),
            kernel(200, None, None),
        ];
        let line = line(&executed(kernels)).expect("kernels");
        assert!(
            line.contains("at most 43.8 %") && line.contains("for 75.0 % of it"),
            "{line}"
        );
        assert!(line.ends_with("known of 80.0 %"), "{line}");
    }

    #[test]
    fn where_no_limits_are_known_no_number_is_said() {
        let line = line(&executed(vec![kernel(600, None, None)])).expect("a kernel");
        assert!(line.contains("not known") && !line.contains('%'), "{line}");
        assert_eq!(super::line(&executed(Vec::new())), None);
    }

    #[test]
    fn a_kernel_on_two_devices_has_their_mean_by_time_and_the_limit_of_most() {
        let mut sum = Kernel::default();
        for one in [
            kernel(300, Some(50.0), Some("registers")),
            kernel(100, Some(100.0), None),
        ] {
            sum.total_ns += one.total_ns;
            join(&mut sum, &one);
        }
        assert_eq!(sum.occupancy_percent, Some(62.5));
        assert_eq!(sum.limited_by.as_deref(), Some("registers"));
    }
}
