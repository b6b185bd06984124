//! What programs that do things at random begin with.

use std::time::{SystemTime, UNIX_EPOCH};

/// Says which seed to use, so that what failed can be had again.
const SETTING: &str = "GPUSCOPE_TEST_SEED";

/// Another one each time, unless the environment says which; what fails names it.
pub fn seed() -> u64 {
    if let Ok(text) = std::env::var(SETTING) {
        return text.parse().expect("a number");
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    now.as_nanos() as u64 % 1_000_000
}
