//! One thread of the program that does everything at random.

use std::sync::{Mutex, PoisonError};

use super::Account;
use super::freeing;
use super::memory::Plan;
use super::random::Random;
use super::things::{self, Live};
use crate::driver_api::Driver;
use crate::{cuda, pace};

/// More than this, and things are freed before new ones are made.
const MOST: usize = 64;

/// One thread, with what it holds.
pub struct Worker<'a> {
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
    pub fn new(plan: Plan, number: u64, shared: &'a Mutex<Vec<Live>>) -> Result<Self, u32> {
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

    pub fn work(mut self) -> Account {
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
            _ => freeing::free_wrongly(
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
                live.ended(&mut self.account);
                false
            }
        });
        if self.driver.destroy_context(context).is_ok() {
            inside.iter().for_each(|live| live.ended(&mut self.account));
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
        ended.iter().for_each(|live| live.ended(&mut self.account));
        self.shared().extend(left);
    }
}
