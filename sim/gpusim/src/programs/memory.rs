//! Everything at random, with threads that free what others allocated, contexts that come and
//! go, calls that fail, a forked child, and each way to end.

use std::os::unix::process::CommandExt;
use std::sync::{Mutex, PoisonError};

use super::random::Random;
use super::things::{self, Live, Thing};
use super::{Account, Options};
use crate::driver_api::Driver;
use crate::{counts, cuda, cuda_memory, pace};

const NO_PROGRAM: u32 = 999;
/// More than this, and things are freed before new ones are made.
const MOST: usize = 64;

#[derive(Clone)]
struct Plan {
    seed: u64,
    steps: u64,
    threads: u64,
    devices: u64,
    /// Whether threads work in contexts of their own, which end with them.
    own_contexts: bool,
}

pub fn memory(options: &Options, account: &mut Account) -> Result<String, u32> {
    let end = options.text("end", "exit");
    let plan = Plan {
        seed: options.number("seed", 1),
        steps: options.number("steps", 1000),
        threads: options.number("threads", 4),
        devices: options.number("devices", 1),
        own_contexts: end == "destroy",
    };
    let forks = options.number("fork", 1) != 0;
    // A child that starts CUDA itself, and one that may not use its parent's.
    let child = if forks { working_child(&plan) } else { 0 };
    cuda::set_device(0)?;
    if forks {
        wait_for(forbidden_child());
    }
    let left = run_threads(&plan, account)?;
    wait_for(child);
    let done = plan.steps * plan.threads;
    finish(&end, plan.devices, left, account)?;
    let (count, bytes) = account.outstanding();
    Ok(format!("{done} steps; {count} things of {bytes} bytes in all are left"))
}

/// Works until the steps are done; what is left.
fn run_threads(plan: &Plan, account: &mut Account) -> Result<Vec<Live>, u32> {
    let shared = Mutex::new(Vec::new());
    let accounts: Vec<Account> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads)
            .map(|number| {
                let (plan, shared) = (plan.clone(), &shared);
                scope.spawn(move || Worker::new(plan, number, shared).map(Worker::work))
            })
            .collect();
        let results = threads.into_iter().map(|t| t.join().unwrap_or(Err(NO_PROGRAM)));
        results.collect::<Result<_, u32>>()
    })?;
    accounts.iter().for_each(|one| account.merge(one));
    Ok(shared.into_inner().unwrap_or_else(PoisonError::into_inner))
}

struct Worker<'a> {
    plan: Plan,
    number: u64,
    random: Random,
    driver: Driver,
    device: i32,
    /// A context by device, if it has its own.
    contexts: Vec<u64>,
    own: Vec<Live>,
    shared: &'a Mutex<Vec<Live>>,
    account: Account,
}

impl<'a> Worker<'a> {
    fn new(plan: Plan, number: u64, shared: &'a Mutex<Vec<Live>>) -> Result<Self, u32> {
        let driver = Driver::load().ok_or(35u32)?;
        cuda::set_device(0)?;
        let mut contexts = Vec::new();
        for device in 0..if plan.own_contexts { plan.devices } else { 0 } {
            contexts.push(driver.create_context(device as i32)?);
            driver.pop_context()?;
        }
        if let Some(first) = contexts.first() {
            driver.set_context(*first)?;
        }
        Ok(Worker {
            random: Random(plan.seed * 1000 + number),
            plan,
            number,
            driver,
            device: 0,
            contexts,
            own: Vec::new(),
            shared,
            account: Account::default(),
        })
    }

    fn work(mut self) -> Account {
        for _ in pace::steps(self.plan.steps.max(1)) {
            self.step();
        }
        if self.contexts.is_empty() {
            self.shared().append(&mut self.own);
        } else {
            self.end_contexts();
        }
        self.account
    }

    fn shared(&self) -> std::sync::MutexGuard<'a, Vec<Live>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&mut self) {
        match self.random.below(100) {
            _ if self.own.len() > MOST => self.free_own(),
            0..45 => self.make(),
            45..70 => self.free_own(),
            70..80 => self.hand_over(),
            80..88 => self.free_anothers(),
            88..92 => self.short_context(),
            92..94 => self.change_device(),
            _ => things::free_wrongly(
                &mut self.random,
                &self.driver,
                self.number,
                self.device,
                &mut self.account,
            ),
        }
    }

    fn make(&mut self) {
        let made = if self.random.one_in(3) {
            things::make_shared(&mut self.random, &self.driver, self.device, &mut self.account)
        } else {
            things::make_owned(&mut self.random, &self.driver, self.device, &mut self.account)
        };
        self.own.extend(made);
    }

    fn free_own(&mut self) {
        if !self.own.is_empty() {
            let index = self.random.below(self.own.len() as u64) as usize;
            let live = self.own.swap_remove(index);
            self.own.extend(live.free(&self.driver, &mut self.account));
        }
    }

    /// Gives something to the other threads; what a context of this thread has stays.
    fn hand_over(&mut self) {
        if let Some(live) = self.own.pop() {
            if self.contexts.is_empty() || !things::ends_with_context(&live.thing, false) {
                self.shared().push(live);
            } else {
                self.own.push(live);
            }
        }
    }

    fn free_anothers(&mut self) {
        let live = self.shared().pop();
        let left = live.and_then(|live| live.free(&self.driver, &mut self.account));
        self.own.extend(left);
    }

    fn change_device(&mut self) {
        let device = self.random.below(self.plan.devices) as i32;
        let changed = match self.contexts.get(device as usize) {
            Some(context) => self.driver.set_context(*context),
            None => cuda::set_device(device),
        };
        if changed.is_ok() {
            self.device = device;
        }
    }

    /// A context that ends with memory in it.
    fn short_context(&mut self) {
        let Ok(context) = self.driver.create_context(self.device) else {
            return;
        };
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        for _ in 0..self.random.below(6) {
            inside.extend(things::make_owned(
                &mut self.random,
                &self.driver,
                self.device,
                &mut self.account,
            ));
        }
        if self.random.one_in(2) {
            let last = inside.pop();
            inside.extend(last.and_then(|live| live.free(&self.driver, &mut self.account)));
        }
        outside.extend(things::make_shared(
            &mut self.random,
            &self.driver,
            self.device,
            &mut self.account,
        ));
        outside.retain(|live: &Live| {
            !things::ends_with_context(&live.thing, false) || {
                inside_ends(live, &mut self.account);
                false
            }
        });
        if self.driver.destroy_context(context).is_ok() {
            inside.iter().for_each(|live| inside_ends(live, &mut self.account));
        }
        self.own.append(&mut outside);
    }

    fn end_contexts(&mut self) {
        for context in std::mem::take(&mut self.contexts) {
            let _ = self.driver.destroy_context(context);
        }
        let own = std::mem::take(&mut self.own);
        let (ended, left): (Vec<Live>, Vec<Live>) = own
            .into_iter()
            .partition(|l| things::ends_with_context(&l.thing, false));
        ended.iter().for_each(|live| inside_ends(live, &mut self.account));
        self.shared().extend(left);
    }
}

/// Takes off what a context takes along.
fn inside_ends(live: &Live, account: &mut Account) {
    let family = match &live.thing {
        Thing::Device(_) => "device",
        Thing::Managed(_) => "managed",
        Thing::Async(_) => "async",
        Thing::Pinned(_) => "pinned",
        Thing::Registered(_) => "registered",
        Thing::Array(_) => "array",
        Thing::Mipmapped(_) => "mipmapped",
        Thing::Orphan(_) => "graph",
        Thing::Graph(graph) if graph.live => "graph",
        Thing::External { view, view_bytes, .. } => {
            if view.is_some() {
                account.end("mapped", live.device, *view_bytes);
            }
            "external"
        }
        Thing::Graph(_) | Thing::Space(_) | Thing::Imported(_) => return,
    };
    account.end(family, live.device, live.bytes);
}

fn finish(end: &str, devices: u64, left: Vec<Live>, account: &mut Account) -> Result<(), u32> {
    match end {
        "exit" => free_all(left, account),
        "reset" => {
            for device in 0..devices {
                cuda::set_device(device as i32)?;
                cuda_memory::device_reset()?;
            }
            let gone = left.iter().filter(|l| things::ends_with_context(&l.thing, true));
            gone.for_each(|live| inside_ends(live, account));
            Ok(())
        }
        "kill" => {
            println!("memory: SIGKILL with memory allocated");
            account.print();
            counts::print("memory");
            // SAFETY: sends a signal to this process.
            unsafe { libc::raise(libc::SIGKILL) };
            Ok(())
        }
        "exec" => {
            account.print();
            counts::print("memory");
            cuda::flush_ledgers();
            let _error = std::process::Command::new("/proc/self/exe").args(["train", "5"]).exec();
            Err(NO_PROGRAM)
        }
        _ => Ok(()),
    }
}

/// Frees until nothing is left, as failures on demand may need more than one try.
fn free_all(mut left: Vec<Live>, account: &mut Account) -> Result<(), u32> {
    let driver = Driver::load().ok_or(35u32)?;
    for _ in 0..100 {
        left = left
            .into_iter()
            .filter_map(|live| live.free(&driver, account))
            .collect();
        if left.is_empty() {
            break;
        }
    }
    Ok(())
}

fn wait_for(child: i32) {
    if child > 0 {
        // SAFETY: no status is asked for.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
}

/// A child that works like its parent, and keeps what it has left.
fn working_child(plan: &Plan) -> i32 {
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child != 0 {
        return child;
    }
    counts::reset();
    let plan = Plan {
        seed: plan.seed + 1,
        steps: plan.steps / 4 + 1,
        threads: 1,
        own_contexts: false,
        ..plan.clone()
    };
    let mut account = Account::default();
    let failed = cuda::set_device(0)
        .and_then(|()| run_threads(&plan, &mut account))
        .is_err();
    account.print();
    cuda::count_exit();
    counts::print("memory-child");
    std::process::exit(i32::from(failed))
}

/// A child that has no right to its parent's CUDA.
fn forbidden_child() -> i32 {
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child != 0 {
        return child;
    }
    counts::reset();
    let mut account = Account::default();
    for _ in 0..3 {
        account.failed_as("device", 0, cuda::malloc(4096));
    }
    account.print();
    counts::print("memory-forbidden");
    cuda::flush_ledgers();
    // SAFETY: ends this process.
    unsafe { libc::_exit(0) }
}
