//! Calls of one stream that were not found yet, in their order.
//!
//! Owns whether that order is known for certain. Which stream an activity is of is [`super`]'s business.

use super::super::{Activity, Cause, What};
use super::{MOST_WAITING, UNEVEN_NS};
use crate::model::kernel_name::KernelName;
use std::collections::VecDeque;
use std::sync::Arc;

/// Calls that are looked at for one activity: between two that match, others may have been lost.
const FURTHEST: usize = 256;

/// What a call gives a stream to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// `None`: its name is not known.
    Kernel(Option<Arc<KernelName>>),
    /// `None`: how much, the call does not say.
    Copy(Option<u64>),
    Memset,
}

/// A call that was not found yet.
#[derive(Debug, Clone)]
struct Waiting {
    call: Cause,
    entered: u64,
    given: Given,
}

/// Calls of a stream, in order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    calls: VecDeque<Waiting>,
    /// Something has begun before the call whose turn it was: that one may be done already, or its own was not seen.
    in_doubt: bool,
    /// When the newest call was entered that was taken out.
    newest: u64,
}

/// What is found for an activity.
pub(super) enum Next {
    Is(Cause),
    /// None, or more than one.
    Unsure,
    /// Such a call was entered after it began.
    ComesLater,
}

impl Queue {
    /// Adds a call that is its youngest.
    pub(super) fn add(&mut self, call: Cause, entered: u64, given: Given) {
        if self.calls.len() == MOST_WAITING {
            self.calls.pop_front();
        }
        self.calls.push_back(Waiting { call, entered, given });
    }

    /// Of calls before `at` nothing comes, or only of the last of them.
    pub(super) fn restart(&mut self, at: u64) {
        self.in_doubt = self.newest > 0 || !self.calls.is_empty();
        self.calls.retain(|one| one.entered >= at);
    }

    /// Of copies from `since` on nothing comes.
    pub(super) fn leave_copies(&mut self, since: u64) {
        self.calls
            .retain(|one| one.entered < since || !matches!(one.given, Given::Copy(_)));
    }

    /// When the first call was entered that may still be found; those before one that was found will not.
    pub(super) fn outstanding(&self) -> Option<u64> {
        let mut entered = self.calls.iter().map(|one| one.entered);
        entered.find(|entered| *entered > self.newest)
    }

    /// Whether the call whose turn it is can have caused `activity`.
    pub(super) fn begins_with(&self, activity: &Activity) -> bool {
        self.calls.front().is_some_and(|one| one.fits(activity))
    }

    /// Takes the call out that has caused `activity`. `in_order`: what is before it has been done, and was not told of.
    pub(super) fn next(&mut self, activity: &Activity, in_order: bool) -> Next {
        // of a copy within the host CUPTI has the begin of when it was given: what is before it may still run
        let in_order = in_order && activity.is_of_device();
        let looked_at = self.calls.iter().take(FURTHEST).enumerate();
        let mut fitting = looked_at.filter(|(_, one)| one.fits(activity)).map(|(at, _)| at);
        let Some(at) = fitting.next() else {
            let Some(later) = self.later(activity) else {
                return Next::Unsure;
            };
            self.in_doubt = true;
            if !in_order {
                // nothing that passes it over would take it out
                self.calls.remove(later);
            }
            return Next::ComesLater;
        };
        // where calls were passed over, or no other can be meant, the order is known again
        self.in_doubt = self.in_doubt && !(in_order && at > 0) && fitting.next().is_some();
        if in_order {
            self.calls.drain(..at);
        }
        let taken = self.calls.remove(if in_order { 0 } else { at });
        if activity.is_of_device() {
            self.newest = self.newest.max(taken.as_ref().map_or(0, |taken| taken.entered));
        }
        match taken.filter(|_| !self.in_doubt) {
            Some(taken) => Next::Is(taken.call),
            None => Next::Unsure,
        }
    }

    /// The first such call that was entered after `activity` began.
    fn later(&self, activity: &Activity) -> Option<usize> {
        let mut calls = self.calls.iter().take(FURTHEST);
        calls.position(|one| one.gives(activity) && !one.fits(activity))
    }
}

impl Waiting {
    /// Whether it asks for such a thing, whenever.
    fn gives(&self, activity: &Activity) -> bool {
        match (&self.given, &activity.what) {
            (Given::Kernel(Some(given)), What::Kernel { name: Some(name), .. }) => given.symbol == name.symbol,
            (Given::Kernel(_), What::Kernel { .. }) => true,
            (Given::Copy(Some(given)), What::Copy { bytes, .. }) => given == bytes,
            (Given::Copy(None), What::Copy { .. }) | (Given::Memset, What::Memset { .. }) => true,
            _ => false,
        }
    }

    fn fits(&self, activity: &Activity) -> bool {
        self.gives(activity) && self.entered <= activity.begin + UNEVEN_NS
    }
}
