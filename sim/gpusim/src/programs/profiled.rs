//! A program that profiles itself half of the time, as those with torch.profiler do: by CUPTI.

use std::ffi::{CString, c_void};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Account, Options, tally};
use crate::cuda;
use crate::driver_api::Driver;

const CONCURRENT_KERNEL: u32 = 10;
const FORCED: usize = 1;
/// Of a kernel's record.
const BEGIN: usize = 16;
const BUFFER_WORDS: usize = 1 << 16;

/// When kernels began, of those that CUPTI has told us of.
static BEGUN: Mutex<Vec<u64>> = Mutex::new(Vec::new());

type Function = unsafe extern "C" fn(usize, usize, usize) -> u32;

#[derive(Clone, Copy)]
struct Cupti(usize);

/// The one that tells us.
static CUPTI: Mutex<Option<Cupti>> = Mutex::new(None);

impl Cupti {
    fn load(path: &str) -> Option<Cupti> {
        let path = CString::new(path).ok()?;
        // SAFETY: a path.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        (!library.is_null()).then_some(Cupti(library as usize))
    }

    fn function(&self, name: &str) -> Option<Function> {
        let name = CString::new(name).ok()?;
        // SAFETY: a library that is loaded.
        let found = unsafe { libc::dlsym(self.0 as *mut c_void, name.as_ptr()) };
        // SAFETY: those of CUPTI that are asked for here take three words at most.
        (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Function>(found) })
    }

    fn call(&self, name: &str, args: [usize; 3]) -> Result<(), u32> {
        let function = self.function(name).ok_or(999u32)?;
        // SAFETY: as CUPTI documents it.
        match unsafe { function(args[0], args[1], args[2]) } {
            0 => Ok(()),
            error => Err(error),
        }
    }
}

extern "C" fn hear(_own: usize, _domain: u32, _id: u32, _data: usize) {}

extern "C" fn give_buffer(buffer: *mut *mut u64, bytes: *mut usize, most: *mut usize) {
    let given = vec![0u64; BUFFER_WORDS].leak();
    // SAFETY: places of CUPTI's.
    unsafe {
        *buffer = given.as_mut_ptr();
        *bytes = size_of_val(given);
        *most = 0;
    }
}

extern "C" fn take_buffer(_context: usize, _stream: u32, buffer: *mut u64, _bytes: usize, valid: usize) {
    let Some(cupti) = *CUPTI.lock().unwrap() else { return };
    let mut record: usize = 0;
    let mut begun = BEGUN.lock().unwrap();
    while cupti
        .call(
            "cuptiActivityGetNextRecord",
            [buffer as usize, valid, &raw mut record as usize],
        )
        .is_ok()
    {
        // SAFETY: a record of a kernel, as no others were asked for.
        begun.push(unsafe { ((record + BEGIN) as *const u64).read_unaligned() });
    }
}

fn time_of_day() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

pub(super) fn work(steps: u64, kernels: u64) -> Result<(), u32> {
    for _ in 0..steps {
        for kernel in 0..kernels as u32 {
            cuda::launch(kernel, 128, 256, 0)?;
            tally::add_kernel(kernel);
        }
        cuda::synchronize()?;
    }
    Ok(())
}

/// What of `steps` CUPTI tells, in words.
fn profile(cupti: &Cupti, steps: u64, kernels: u64) -> Result<String, u32> {
    let mut subscriber: usize = 0;
    *CUPTI.lock().unwrap() = Some(*cupti);
    let since = time_of_day();
    cupti.call(
        "cuptiSubscribe",
        [&raw mut subscriber as usize, hear as *const () as usize, 0],
    )?;
    cupti.call(
        "cuptiActivityRegisterCallbacks",
        [give_buffer as *const () as usize, take_buffer as *const () as usize, 0],
    )?;
    cupti.call("cuptiActivityEnable", [CONCURRENT_KERNEL as usize, 0, 0])?;
    work(steps, kernels)?;
    cupti.call("cuptiActivityFlushAll", [FORCED, 0, 0])?;
    cupti.call("cuptiActivityDisable", [CONCURRENT_KERNEL as usize, 0, 0])?;
    cupti.call("cuptiUnsubscribe", [subscriber, 0, 0])?;
    let until = time_of_day();
    let begun = BEGUN.lock().unwrap();
    let within = begun.iter().filter(|at| (since..until).contains(*at)).count();
    Ok(format!(
        "{} kernels profiled, {within} of them at their time of day",
        begun.len()
    ))
}

pub fn profiled(options: &Options, _: &mut Account) -> Result<String, u32> {
    let driver = Driver::load().ok_or(35u32)?;
    let (steps, kernels) = (options.number("steps", 20), options.number("kernels", 4));
    driver.kernel_ns(options.number("kernel-ns", 500_000));
    work(steps, kernels)?;
    let cupti = Cupti::load(&options.text("cupti", "libcupti.so.13")).ok_or(999u32)?;
    for kernel in 0..options.number("running", 0) as u32 {
        cuda::launch(kernel, 128, 256, 0)?;
        tally::add_kernel(kernel);
    }
    profile(&cupti, steps, kernels)
}
