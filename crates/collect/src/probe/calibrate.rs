//! What one probe hit costs on this machine, measured on functions of our own: one for each kind of place.

use crate::clock::thread_cpu;
use crate::elf::Cost as Place;
use crate::engine::{Engine, Point};
use crate::wire;
use anyhow::{Context, Result};
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const CALLS: u32 = 1000;
const ROUNDS: usize = 7;

/// Of calls that are measured from inside, each by itself.
const COLD_CALLS: usize = 1000;
/// Read between such calls, bytes: what programs that call CUDA do between calls pushes the agent's memory out of the first caches.
const READ_BETWEEN: usize = 1 << 20;
const LINE: usize = 64;

// The functions that are called and probed. Each begins with an instruction that the kernel runs in another way.
#[cfg(not(target_arch = "aarch64"))]
std::arch::global_asm!(
    ".type gpuscope_emulated_target, @function",
    "gpuscope_emulated_target:",
    "push rbp",
    "mov rax, rdi",
    "pop rbp",
    "ret",
    ".size gpuscope_emulated_target, . - gpuscope_emulated_target",
    ".type gpuscope_stepped_target, @function",
    "gpuscope_stepped_target:",
    "mov rax, rdi",
    "ret",
    ".size gpuscope_stepped_target, . - gpuscope_stepped_target",
    ".balign 16",
    ".type gpuscope_nop_target, @function",
    "gpuscope_nop_target:",
    ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00",
    "mov rax, rdi",
    "ret",
    ".size gpuscope_nop_target, . - gpuscope_nop_target",
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".type gpuscope_emulated_target, @function",
    "gpuscope_emulated_target:",
    "adr x1, gpuscope_emulated_target",
    "ret",
    ".size gpuscope_emulated_target, . - gpuscope_emulated_target",
    ".type gpuscope_stepped_target, @function",
    "gpuscope_stepped_target:",
    "mov x1, x0",
    "ret",
    ".size gpuscope_stepped_target, . - gpuscope_stepped_target",
    ".type gpuscope_nop_target, @function",
    "gpuscope_nop_target:",
    "nop",
    "ret",
    ".size gpuscope_nop_target, . - gpuscope_nop_target",
);

#[cfg(not(target_arch = "aarch64"))]
macro_rules! jump {
    () => {
        "jmp 2f"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    () => {
        "b 2f"
    };
}

// As much code as the first cache of code holds twice over: a jump in each line.
std::arch::global_asm!(
    ".balign 64",
    ".globl gpuscope_much_code",
    ".hidden gpuscope_much_code",
    ".type gpuscope_much_code, @function",
    "gpuscope_much_code:",
    ".rept 1023",
    jump!(),
    ".balign 64",
    "2:",
    ".endr",
    "ret",
    ".size gpuscope_much_code, . - gpuscope_much_code",
);

unsafe extern "C" {
    safe fn gpuscope_emulated_target(value: u64) -> u64;
    safe fn gpuscope_stepped_target(value: u64) -> u64;
    safe fn gpuscope_nop_target(value: u64) -> u64;
    safe fn gpuscope_much_code();
}

/// Measures with a row that nothing else uses. Its calls land in the counting plane under our own process.
pub struct Calibration<'a> {
    engine: &'a dyn Engine,
    row: u32,
}

impl<'a> Calibration<'a> {
    /// With row `row`.
    ///
    /// # Errors
    /// Our process cannot be selected.
    pub fn begin(engine: &'a dyn Engine, row: u32) -> Result<Calibration<'a>> {
        engine.add_target(std::process::id())?;
        Ok(Calibration { engine, row })
    }

    /// What a counted call costs at such a place, seen at entry and return or at entry only, ns.
    ///
    /// # Errors
    /// The probe could not be attached.
    pub fn hit_ns(&self, place: Place, returns: bool) -> Result<f64> {
        self.added_ns(place, returns, wire::Spec::counting(returns))
    }

    /// What it costs beyond that to send a record of a call, ns.
    ///
    /// # Errors
    /// As [`Self::hit_ns`].
    pub fn record_ns(&self) -> Result<f64> {
        let counted = wire::Spec::counting(true);
        let sent = wire::Spec {
            flags: counted.flags | wire::SPEC_STREAM,
            ..counted
        };
        let without = self.added_ns(Place::Emulated, true, counted)?;
        Ok((self.added_ns(Place::Emulated, true, sent)? - without).max(0.0))
    }

    /// The medians of some short rounds, with a probe and without.
    fn added_ns(&self, place: Place, returns: bool, spec: wire::Spec) -> Result<f64> {
        if self.engine.is_inside().is_some() {
            return self.added_inside_ns(returns, spec);
        }
        let target = target_of(place);
        let offset = offset_of(target).context("failed to find the calibration function in our own file")?;
        let bare = median_ns(target);
        self.engine.set_spec(self.row, &spec)?;
        let point = Point::entry(offset, self.row, returns).at(place);
        let hooks = self.engine.attach(Path::new("/proc/self/exe"), &[point])?;
        let probed = median_ns(target);
        drop(hooks);
        Ok((probed - bare).max(0.0))
    }
}

impl Calibration<'_> {
    /// The same in a process that carries the agent, which is this program once more. All places cost the same there.
    fn added_inside_ns(&self, returns: bool, spec: wire::Spec) -> Result<f64> {
        let target = target_of(Place::Emulated);
        let offset = offset_of(target).context("failed to find the calibration function in our own file")?;
        self.engine.set_spec(self.row, &spec)?;
        let point = Point::entry(offset, self.row, returns);
        let _hooks = self.engine.attach(Path::new("/proc/self/exe"), &[point])?;
        let preloaded = std::env::var_os("LD_PRELOAD");
        let child = Command::new("/proc/self/exe")
            .envs(self.engine.environment(preloaded, None)?)
            .env(ASKED, "1")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .context("failed to start what measures")?;
        let measured = String::from_utf8_lossy(&child.stdout);
        let hooked: f64 = measured.trim().parse().context("it has measured nothing")?;
        Ok((hooked - cold_ns(target)).max(0.0))
    }
}

/// Asks this program to measure, and to do nothing else.
const ASKED: &str = "GPUSCOPE_CALIBRATE";

/// Measures where that was asked for; whether it was.
#[must_use]
pub fn answer() -> bool {
    let is_asked = std::env::var_os(ASKED).is_some();
    if is_asked {
        println!("{}", cold_ns(target_of(Place::Emulated)));
    }
    is_asked
}

type Target = extern "C" fn(u64) -> u64;

fn target_of(place: Place) -> Target {
    match place {
        Place::Emulated => gpuscope_emulated_target,
        Place::SingleStepped => gpuscope_stepped_target,
        Place::Nop5 => gpuscope_nop_target,
    }
}

fn median_ns(target: Target) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS).map(|_| round_ns(target)).collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

/// The mean of the middle half of calls that come one by one, after other code and other memory. The agent takes so little that
/// in a loop of its own it would cost a fraction of what it costs a program.
fn cold_ns(target: Target) -> f64 {
    let memory = vec![1u8; READ_BETWEEN];
    let mut calls: Vec<u128> = (0..COLD_CALLS)
        .map(|_| {
            black_box(memory.iter().step_by(LINE).map(|byte| u64::from(*byte)).sum::<u64>());
            gpuscope_much_code();
            let started = Instant::now();
            black_box(target(black_box(1)));
            started.elapsed().as_nanos()
        })
        .collect();
    calls.sort_unstable();
    let middle = &calls[COLD_CALLS / 4..COLD_CALLS * 3 / 4];
    middle.iter().sum::<u128>() as f64 / middle.len() as f64
}

fn round_ns(target: Target) -> f64 {
    let started = thread_cpu();
    for call in 0..CALLS {
        black_box(target(black_box(u64::from(call))));
    }
    thread_cpu().saturating_sub(started).as_nanos() as f64 / f64::from(CALLS)
}

/// The file offset of a function of ours, from our own mappings.
fn offset_of(target: Target) -> Option<u64> {
    let address = target as usize as u64;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let inside = (start..u64::from_str_radix(end, 16).ok()?).contains(&address);
        let offset = u64::from_str_radix(fields.nth(1)?, 16).ok()?;
        inside.then_some(address - start + offset)
    })
}
