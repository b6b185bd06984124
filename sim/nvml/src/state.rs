//! What a test sets while programs run: lines `DEVICE KEY VALUE…` of the file `GPUSIM_STATE/nvml`, read at each call.
//! DEVICE is a number, `*` for all, or `driver` for calls that concern no device. The last line of a key counts.

use std::time::Duration;

use gpusim_common::shared::folder;

use crate::{NOT_SUPPORTED, SUCCESS};

const GPU_IS_LOST: u32 = 15;

/// The values of all lines of a key, each the rest of its line.
pub fn lines(device: &str, key: &str) -> Vec<String> {
    let text = folder().and_then(|folder| std::fs::read_to_string(folder.join("nvml")).ok());
    let value = |line: &str| {
        let (place, rest) = line.trim().split_once(' ')?;
        let (name, value) = rest.trim_start().split_once(' ')?;
        let wanted = (place == device || place == "*" && device != "driver") && name == key;
        wanted.then(|| value.trim().to_owned())
    };
    text.unwrap_or_default().lines().filter_map(value).collect()
}

fn last(device: &str, key: &str) -> Option<String> {
    lines(device, key).pop()
}

/// The value of a key; `-` is "not supported".
pub fn number(device: usize, key: &str, default: u64) -> Result<u64, u32> {
    match last(&device.to_string(), key) {
        Some(value) if value == "-" => Err(NOT_SUPPORTED),
        Some(value) => Ok(value.parse().unwrap_or(default)),
        None => Ok(default),
    }
}

pub fn fraction(device: usize, key: &str, default: f64) -> Result<f64, u32> {
    match last(&device.to_string(), key) {
        Some(value) if value == "-" => Err(NOT_SUPPORTED),
        Some(value) => Ok(value.parse().unwrap_or(default)),
        None => Ok(default),
    }
}

/// What every call about a device (or the `driver`) begins with: it hangs, it fails, the GPU is lost.
pub fn trouble(device: &str) -> u32 {
    let number = |key: &str| last(device, key).and_then(|value| value.parse::<u32>().ok());
    if let Some(ms) = number("hang_ms") {
        std::thread::sleep(Duration::from_millis(ms.into()));
    }
    match (number("lost"), number("fail")) {
        (Some(1..), _) => GPU_IS_LOST,
        (_, Some(code)) => code,
        _ => SUCCESS,
    }
}
