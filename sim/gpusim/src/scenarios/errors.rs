//! Calls that must fail, with the codes CUDA documents for them.

use super::argument;
use crate::{cuda, pace};

const BOGUS: u64 = 0xdead_0000;

/// (what is wrong, the error it must give, the call)
type Case = (&'static str, u32, fn() -> Result<(), u32>);

const CASES: &[Case] = &[
    ("more memory than there is", 2, || cuda::malloc(1 << 50).map(drop)),
    ("freeing what was never allocated", 1, || cuda::free(BOGUS)),
    ("freeing twice", 1, || {
        let address = cuda::malloc(256)?;
        cuda::free(address)?;
        cuda::free(address)
    }),
    ("copying to nowhere", 1, || {
        cuda::wrong_copy(BOGUS, BOGUS, 16, cuda::DEVICE_TO_DEVICE)
    }),
    ("a copy direction that does not exist", 21, || {
        cuda::wrong_copy(BOGUS, BOGUS, 16, 9)
    }),
    ("a stream that does not exist", 400, || cuda::stream_synchronize(BOGUS)),
    ("a device that does not exist", 101, || cuda::set_device(99)),
    ("too many threads in a block", 9, || cuda::launch(0, 1, 4096, 0)),
    ("time between events never recorded", 400, || {
        let (start, end) = (cuda::event()?, cuda::event()?);
        let result = cuda::elapsed_ms(start, end).map(drop);
        cuda::event_destroy(start)?;
        cuda::event_destroy(end)?;
        result
    }),
    ("unpinning what is not pinned", 713, || cuda::host_unregister(BOGUS)),
    ("a kernel that was never registered", 98, || {
        cuda::set_attribute_of(BOGUS)
    }),
    ("something unsupported", 801, || cuda::map_resources()),
];

pub fn errors(args: &[u64]) -> Result<String, u32> {
    let mut rounds = 0;
    let mut wrong = Vec::new();
    cuda::device_count()?;
    for _ in pace::steps(argument(args, 0, 10)) {
        for (what, expected, call) in CASES {
            let got = call().err().unwrap_or(0);
            if got != *expected {
                wrong.push(format!("{what} gave {got} instead of {expected}"));
            }
            if cuda::last_error() != got {
                wrong.push(format!("{what} was not the last error"));
            }
        }
        // Not ready is an answer, not an error.
        cuda::launch(0, 1, 32, 0)?;
        let _ = cuda::stream_query(0);
        cuda::last_error();
        rounds += 1;
    }
    if let Some(first) = wrong.first() {
        eprintln!("errors: {} surprises, such as: {first}", wrong.len());
    }
    Ok(format!(
        "{} calls that failed in {rounds} rounds, {} not as expected",
        rounds * CASES.len(),
        wrong.len()
    ))
}
