//! Streams and events at random: made, used, waited for, and not all of them destroyed.

use super::random::Random;
use super::{Account, Options, tally};
use crate::driver_api::Driver;
use crate::{cuda, cuda_work, pace};

const MOST: usize = 12;
const NON_BLOCKING: u32 = 1;

struct Streams {
    random: Random,
    streams: Vec<u64>,
    events: Vec<u64>,
    made: [u64; 2],
}

pub fn streams(options: &Options, _: &mut Account) -> Result<String, u32> {
    let driver = Driver::load().ok_or(35u32)?;
    let mut all = Streams {
        random: Random(options.number("seed", 1)),
        streams: Vec::new(),
        events: Vec::new(),
        made: [0; 2],
    };
    cuda::set_device(0)?;
    let most_ns = options.number("kernel-ns", 20_000);
    for _ in pace::steps(options.number("steps", 200)) {
        driver.kernel_ns(all.random.below(2 * most_ns));
        all.step()?;
    }
    let left = [
        options.number("left", 3) as usize,
        options.number("events-left", 2) as usize,
    ];
    all.leave(left)?;
    tally::plant("streams_made", all.made[0]);
    tally::plant("streams_left", left[0] as u64);
    tally::plant("events_made", all.made[1]);
    tally::plant("events_left", left[1] as u64);
    Ok(format!(
        "{} streams and {} events made, {left:?} left",
        all.made[0], all.made[1]
    ))
}

impl Streams {
    fn step(&mut self) -> Result<(), u32> {
        let what = self.random.below(9);
        if self.streams.is_empty() || (what == 0 && self.streams.len() < MOST) {
            return self.make_stream();
        }
        if self.events.is_empty() || (what == 1 && self.events.len() < MOST) {
            return self.make_event();
        }
        let (stream, event) = (self.stream(), self.event());
        match what {
            2 => cuda::stream_wait(stream, event),
            3 => cuda::stream_synchronize(stream),
            4 => cuda::event_synchronize(event),
            5 => self.destroy_one(),
            6 => self.wait_by_asking(stream, event),
            7 => cuda::event_record(event, stream),
            _ => self.launch(stream),
        }
    }

    fn make_stream(&mut self) -> Result<(), u32> {
        let priority = -(self.random.below(6) as i32);
        let flags = self.random.below(2) as u32 * NON_BLOCKING;
        let stream = cuda_work::stream_with_priority(flags, priority)?;
        self.made[0] += 1;
        self.streams.push(stream);
        if cuda_work::stream_priority(stream)? == priority {
            Ok(())
        } else {
            Err(999)
        }
    }

    fn make_event(&mut self) -> Result<(), u32> {
        self.events.push(cuda::event()?);
        self.made[1] += 1;
        Ok(())
    }

    fn stream(&mut self) -> u64 {
        let which = self.random.below(self.streams.len() as u64) as usize;
        if self.random.one_in(8) { 0 } else { self.streams[which] }
    }

    fn event(&mut self) -> u64 {
        let which = self.random.below(self.events.len() as u64) as usize;
        self.events[which]
    }

    fn launch(&mut self, stream: u64) -> Result<(), u32> {
        let kernel = self.random.next() as u32;
        cuda::launch(kernel, 8, 128, stream)?;
        tally::add_kernel(kernel);
        Ok(())
    }

    /// A stream that may be busy.
    fn destroy_one(&mut self) -> Result<(), u32> {
        let which = self.random.below(self.streams.len() as u64) as usize;
        cuda::stream_destroy(self.streams.swap_remove(which))
    }

    /// Leaves so many streams and events.
    fn leave(&mut self, [streams, events]: [usize; 2]) -> Result<(), u32> {
        while self.streams.len() < streams {
            self.make_stream()?;
        }
        while self.events.len() < events {
            self.make_event()?;
        }
        self.streams.drain(streams..).try_for_each(cuda::stream_destroy)?;
        self.events.drain(events..).try_for_each(cuda::event_destroy)
    }

    /// Waits without a call that blocks, and asks how long it took.
    fn wait_by_asking(&mut self, stream: u64, event: u64) -> Result<(), u32> {
        const NOT_READY: u32 = 600;
        let end = cuda::event()?;
        self.made[1] += 1;
        cuda::event_record(event, stream)?;
        cuda::event_record(end, stream)?;
        while cuda_work::event_query(end) == Err(NOT_READY) {
            std::thread::yield_now();
        }
        cuda::elapsed_ms(event, end)?;
        cuda::event_destroy(end)
    }
}
