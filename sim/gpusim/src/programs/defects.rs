//! A training loop as it should be, and the same with exactly one thing wrong with it.
//!
//! As it should be: batches come from pinned memory in a stream of their own, a step ahead, and the host waits for
//! nothing but the end of the step before. So the device always has something to do.

use std::time::{Duration, Instant};

use super::{Account, Options};
use crate::driver_api::Driver;
use crate::{cuda, cuda_work, pace};

const KERNELS: u32 = 8;
const KERNEL_NS: u64 = 1_000_000;
const BATCH: usize = 4 << 20;
const BOGUS: u64 = 0xdead_0000;
const OUT_OF_MEMORY: u32 = 2;

/// One step: its number comes in.
type Step = fn(&mut Loop, u64) -> Result<(), u32>;

/// (what is wrong, the step)
const KINDS: &[(&str, Step)] = &[
    ("none", Loop::healthy),
    ("full-queue", Loop::full_queue),
    ("late-rank", Loop::late_rank),
    ("alloc-churn", Loop::alloc_churn),
    ("alloc-between", Loop::alloc_between),
    ("alloc-retry", Loop::alloc_retry),
    ("chatty-getters", Loop::chatty_getters),
    ("fragmentation", Loop::fragmentation),
    ("hidden-sync", Loop::hidden_sync),
    ("host-bound", Loop::host_bound),
    ("host-contention", Loop::host_contention),
    ("host-function", Loop::host_function),
    ("idle-gaps", Loop::idle_gaps),
    ("killed", Loop::killed),
    ("late-jit", Loop::late_jit),
    ("launch-bound", Loop::launch_bound),
    ("launch-storm", Loop::launch_storm),
    ("leak-growth", Loop::leak_growth),
    ("no-overlap", Loop::no_overlap),
    ("out-of-memory", Loop::out_of_memory),
    ("pageable-copy", Loop::pageable_copy),
    ("small-grids", Loop::small_grids),
    ("starved", Loop::starved),
    ("sticky-error", Loop::sticky_error),
    ("sync-copy", Loop::sync_copy),
    ("sync-stall", Loop::sync_stall),
    ("unchecked-errors", Loop::unchecked_errors),
];

struct Loop {
    driver: Driver,
    compute: u64,
    copies: u64,
    /// What comes in the batch of a step, and the end of the step; every other step has the same.
    batches: [u64; 2],
    copied: [u64; 2],
    done: [u64; 2],
    /// 32 MiB, of which a batch is the first part.
    pinned: u64,
    pageable: Vec<u8>,
    device: u64,
    function: u64,
    kept: Vec<u64>,
    broken: bool,
}

pub fn defect(options: &Options, _: &mut Account) -> Result<String, u32> {
    let kind = options.text("kind", "none");
    let Some((_, step)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        return Ok(format!("--kind is one of {}", names.join(", ")));
    };
    let mut this = Loop::new()?;
    let mut steps = 0;
    for number in pace::steps(options.number("steps", 150)) {
        step(&mut this, number)?;
        steps += 1;
        if this.broken {
            break;
        }
    }
    this.end()?;
    Ok(format!("{steps} steps, wrong with them: {kind}"))
}

/// Works without calling anything.
fn spin(us: u64) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(us) {
        std::hint::spin_loop();
    }
}

/// Works for so long on a processor, however long that takes.
fn work(us: i64) {
    let used_us = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call only fills the structure that it is given
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
    };
    let until = used_us() + us;
    while used_us() < until {
        std::hint::spin_loop();
    }
}

/// Puts all threads of this process, and new ones, on one processor, beside some that take it.
fn crowd(others: usize) {
    // SAFETY: fills a set that is given to it, and reads it.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        libc::CPU_SET(0, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
    for _ in 0..others {
        std::thread::spawn(|| {
            loop {
                spin(1_000_000);
            }
        });
    }
}

impl Loop {
    fn new() -> Result<Loop, u32> {
        let driver = Driver::load().ok_or(35u32)?;
        driver.kernel_ns(KERNEL_NS);
        let this = Loop {
            compute: cuda::stream()?,
            copies: cuda::stream()?,
            batches: [cuda::malloc(BATCH)?, cuda::malloc(BATCH)?],
            copied: [cuda::event()?, cuda::event()?],
            done: [cuda::event()?, cuda::event()?],
            pinned: cuda::malloc_host(32 << 20)?,
            pageable: vec![1; 8 << 20],
            device: cuda::malloc(32 << 20)?,
            function: 0,
            kept: Vec::new(),
            broken: false,
            driver,
        };
        let function = this.driver.function(c"triton_per_fused_add_0")?;
        Ok(Loop { function, ..this })
    }

    fn end(self) -> Result<(), u32> {
        if self.broken {
            return Ok(());
        }
        cuda::synchronize()?;
        for address in self.batches.into_iter().chain([self.device]) {
            cuda::free(address)?;
        }
        cuda::free_host(self.pinned)?;
        for event in self.copied.into_iter().chain(self.done) {
            cuda::event_destroy(event)?;
        }
        cuda::stream_destroy(self.copies)?;
        cuda::stream_destroy(self.compute)
    }

    /// The batch of a step, beside the step before.
    fn fetch(&self, number: u64) -> Result<(), u32> {
        let turn = number as usize % 2;
        cuda::copy_async(
            self.batches[turn],
            self.pinned,
            BATCH,
            cuda::HOST_TO_DEVICE,
            self.copies,
        )?;
        self.join(turn)
    }

    /// What is computed comes after what has been copied so far.
    fn join(&self, turn: usize) -> Result<(), u32> {
        cuda::event_record(self.copied[turn], self.copies)?;
        cuda::stream_wait(self.compute, self.copied[turn])
    }

    fn compute(&self, number: u64) -> Result<(), u32> {
        for kernel in 0..KERNELS {
            cuda::launch(kernel, 128, 256, self.compute)?;
        }
        cuda::event_record(self.done[number as usize % 2], self.compute)
    }

    /// Waits for the step before.
    fn wait(&self, number: u64) -> Result<(), u32> {
        match number {
            0 => Ok(()),
            _ => cuda::event_synchronize(self.done[(number as usize - 1) % 2]),
        }
    }

    fn healthy(&mut self, number: u64) -> Result<(), u32> {
        self.fetch(number)?;
        self.compute(number)?;
        self.wait(number)
    }

    /// Nothing is wrong with it either: kernels of 20 µs, launched as fast as it goes, until launches wait for room.
    fn full_queue(&mut self, _: u64) -> Result<(), u32> {
        self.driver.kernel_ns(20_000);
        (0..100).try_for_each(|_| self.driver.launch(self.function))
    }

    /// A gigabyte for each batch. `GPUSIM_ALLOC_US` has it take time, as it does.
    fn alloc_churn(&mut self, number: u64) -> Result<(), u32> {
        let scratch = cuda::malloc(1 << 30)?;
        self.healthy(number)?;
        cuda::free(scratch)
    }

    /// Memory is taken and given back while the device has nothing to do. `GPUSIM_ALLOC_US`, as above.
    fn alloc_between(&mut self, number: u64) -> Result<(), u32> {
        self.compute(number)?;
        cuda::stream_synchronize(self.compute)?;
        cuda::free(cuda::malloc(64 << 20)?)
    }

    /// Nothing is wrong with it but that kernels have 16 blocks, where the device has 132 multiprocessors.
    fn small_grids(&mut self, number: u64) -> Result<(), u32> {
        self.fetch(number)?;
        for kernel in 0..KERNELS {
            cuda::launch(kernel, 16, 256, self.compute)?;
        }
        cuda::event_record(self.done[number as usize % 2], self.compute)?;
        self.wait(number)
    }

    /// The device waits for its host, which works on a processor that others take.
    fn starved(&mut self, number: u64) -> Result<(), u32> {
        if number == 0 {
            crowd(3);
        }
        self.compute(number)?;
        cuda::stream_synchronize(self.compute)?;
        work(4000);
        Ok(())
    }

    /// A cache that is emptied when memory is short. Needs `GPUSIM_MEMORY=2GiB`.
    fn alloc_retry(&mut self, number: u64) -> Result<(), u32> {
        let block = match cuda::malloc(256 << 20) {
            Err(OUT_OF_MEMORY) => {
                std::mem::take(&mut self.kept).into_iter().try_for_each(cuda::free)?;
                cuda::malloc(256 << 20)?
            }
            other => other?,
        };
        self.kept.push(block);
        self.healthy(number)
    }

    /// Asks again and again whether the step before is done.
    fn chatty_getters(&mut self, number: u64) -> Result<(), u32> {
        self.fetch(number)?;
        self.compute(number)?;
        while number > 0 && cuda_work::event_query(self.done[(number as usize - 1) % 2]).is_err() {
            spin(20);
        }
        Ok(())
    }

    /// What was there before is not there again: `GPUSIM_FAIL=cuMemAlloc_v2:5` has the fifth allocation fail.
    fn fragmentation(&mut self, number: u64) -> Result<(), u32> {
        if number == 0 {
            cuda::free(cuda::malloc(512 << 20)?)?;
        } else if number == 50 {
            self.kept.extend(cuda::malloc(256 << 20));
        }
        self.healthy(number)
    }

    /// The loss is read in each step, and the host works before it goes on.
    fn hidden_sync(&mut self, number: u64) -> Result<(), u32> {
        self.fetch(number)?;
        self.compute(number)?;
        cuda::copy_async(self.pinned, self.device, 4, cuda::DEVICE_TO_HOST, self.compute)?;
        cuda::stream_synchronize(self.compute)?;
        spin(500);
        Ok(())
    }

    /// Two launches, what the host makes of them, and only then a wait. Before the first step comes what `import torch`
    /// does: work for the device, and then long nothing.
    fn host_bound(&mut self, number: u64) -> Result<(), u32> {
        if number == 0 {
            cuda::launch(0, 128, 256, self.compute)?;
            cuda::stream_synchronize(self.compute)?;
            std::thread::sleep(Duration::from_secs(2));
        }
        self.driver.kernel_ns(150_000);
        for kernel in 0..2 {
            cuda::launch(kernel, 128, 256, self.compute)?;
        }
        spin(5000);
        cuda::stream_synchronize(self.compute)
    }

    /// Launches that nobody ever waits for, and a rank that comes late to each step: what NVML calls a third of the time.
    fn late_rank(&mut self, _: u64) -> Result<(), u32> {
        self.driver.kernel_ns(20_000);
        for kernel in 0..100 {
            cuda::launch(kernel, 128, 256, self.compute)?;
        }
        std::thread::sleep(Duration::from_millis(5));
        Ok(())
    }

    /// Steps are long enough for the device not to notice.
    fn host_contention(&mut self, number: u64) -> Result<(), u32> {
        if number == 0 {
            crowd(3);
            self.driver.kernel_ns(8 * KERNEL_NS);
        }
        spin(3000);
        self.healthy(number)
    }

    /// Between two steps the stream has a function of the host called, which takes its time.
    fn host_function(&mut self, number: u64) -> Result<(), u32> {
        extern "C" fn sleep(_: *mut std::ffi::c_void) {
            std::thread::sleep(Duration::from_millis(3));
        }
        self.fetch(number)?;
        // SAFETY: the function takes nothing
        unsafe { cuda::host_function(self.compute, sleep, std::ptr::null_mut()) }?;
        self.compute(number)?;
        self.wait(number)
    }

    /// The next batch is made only when this one is done.
    fn idle_gaps(&mut self, number: u64) -> Result<(), u32> {
        self.fetch(number)?;
        self.compute(number)?;
        self.wait(number + 1)?;
        std::thread::sleep(Duration::from_millis(5));
        Ok(())
    }

    /// An error of the program's own, in the middle of its work.
    fn killed(&mut self, number: u64) -> Result<(), u32> {
        if number == 20 {
            // SAFETY: nothing is ever mapped there, and the process ends of it, as is wanted.
            unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) };
        }
        self.healthy(number)
    }

    /// Keeps more in each step until there is no more. Needs `GPUSIM_MEMORY=2GiB`.
    fn out_of_memory(&mut self, number: u64) -> Result<(), u32> {
        self.kept.push(cuda::malloc(256 << 20)?);
        self.healthy(number)
    }

    /// Needs `GPUSIM_LOAD_US=20000`.
    fn late_jit(&mut self, number: u64) -> Result<(), u32> {
        if number >= 150 && number.is_multiple_of(10) {
            self.driver.function(c"triton_per_fused_add_0")?;
        }
        self.healthy(number)
    }

    /// The host needs 200 µs for each launch, the device 5.
    fn launch_bound(&mut self, number: u64) -> Result<(), u32> {
        self.driver.kernel_ns(5_000);
        for kernel in 0..20 {
            cuda::launch(kernel + number as u32, 128, 256, self.compute)?;
            spin(200);
        }
        cuda::stream_synchronize(self.compute)
    }

    /// A hundred kernels of a microsecond in each step.
    /// To launch takes a real host some microseconds.
    fn launch_storm(&mut self, _: u64) -> Result<(), u32> {
        self.driver.kernel_ns(1_000);
        (0..100).try_for_each(|_| {
            spin(3);
            self.driver.launch(self.function)
        })
    }

    fn leak_growth(&mut self, number: u64) -> Result<(), u32> {
        self.kept.push(cuda::malloc(1 << 20)?);
        self.healthy(number)
    }

    /// A large batch in the stream of the kernels.
    fn no_overlap(&mut self, number: u64) -> Result<(), u32> {
        cuda::copy_async(self.device, self.pinned, 32 << 20, cuda::HOST_TO_DEVICE, self.compute)?;
        self.compute(number)?;
        self.wait(number)
    }

    /// `GPUSIM_PAGEABLE_GBPS=4` has it take longer, as it does.
    fn pageable_copy(&mut self, number: u64) -> Result<(), u32> {
        let (from, bytes) = (self.pageable.as_ptr() as u64, self.pageable.len());
        cuda::copy_async(self.device, from, bytes, cuda::HOST_TO_DEVICE, self.copies)?;
        self.join(number as usize % 2)?;
        self.compute(number)?;
        self.wait(number)
    }

    /// `GPUSIM_FAIL=cuLaunchKernel:400+=719` has a kernel go wrong.
    fn sticky_error(&mut self, number: u64) -> Result<(), u32> {
        self.broken = self.healthy(number).is_err();
        Ok(())
    }

    /// Results come back without a stream. `GPUSIM_PAGEABLE_GBPS=4`.
    fn sync_copy(&mut self, number: u64) -> Result<(), u32> {
        self.healthy(number)?;
        let mut results = std::mem::take(&mut self.pageable);
        let copied = cuda::to_host(&mut results[..BATCH], self.device);
        self.pageable = results;
        copied
    }

    /// The host waits for each step, works, and goes on.
    fn sync_stall(&mut self, number: u64) -> Result<(), u32> {
        self.fetch(number)?;
        for kernel in 0..2 {
            cuda::launch(kernel, 128, 256, self.compute)?;
        }
        cuda::stream_synchronize(self.compute)?;
        spin(500);
        Ok(())
    }

    /// A copy to nowhere, of which nobody hears.
    fn unchecked_errors(&mut self, number: u64) -> Result<(), u32> {
        let _ = cuda::wrong_copy(BOGUS, BOGUS, 16, cuda::DEVICE_TO_DEVICE);
        self.healthy(number)
    }
}
