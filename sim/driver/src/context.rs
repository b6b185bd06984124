//! Contexts, and which one each thread uses.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

use crate::activity;
use crate::error::{CONTEXT_IS_DESTROYED, INVALID_CONTEXT, INVALID_VALUE};
use crate::machine;
use crate::stream::Stream;
use crate::timeline::Joint;

/// One context; its address is its handle, and is never given to another one.
pub struct Context {
    pub device: i32,
    pub id: u64,
    primary: bool,
    alive: AtomicBool,
    /// How often a primary context is retained.
    retained: AtomicU32,
    /// What its streams wait for in each other.
    pub joint: Mutex<Joint>,
    /// Its default stream, once that was used.
    pub legacy: OnceLock<&'static Stream>,
}

type Registry = RwLock<HashMap<usize, &'static Context>>;

fn registry() -> &'static Registry {
    static CONTEXTS: OnceLock<Registry> = OnceLock::new();
    CONTEXTS.get_or_init(Registry::default)
}

thread_local! {
    static CURRENT: Cell<Option<&'static Context>> = const { Cell::new(None) };
    static BELOW: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

impl Context {
    pub fn handle(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }
}

fn make(device: i32, primary: bool) -> &'static Context {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let context: &'static Context = Box::leak(Box::new(Context {
        device,
        id: NEXT.fetch_add(1, Relaxed),
        primary,
        alive: AtomicBool::new(!primary),
        retained: AtomicU32::new(0),
        joint: Mutex::default(),
        legacy: OnceLock::new(),
    }));
    registry()
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(context.handle(), context);
    if !primary {
        activity::began(context);
    }
    context
}

/// A new context of `device`.
pub fn create(device: i32) -> usize {
    make(device, false).handle()
}

/// The primary context of `device`, in use or not.
pub fn primary(device: i32) -> Result<&'static Context, u32> {
    static PRIMARY: OnceLock<Vec<OnceLock<&'static Context>>> = OnceLock::new();
    machine::ready()?;
    machine::device(device)?;
    let all = PRIMARY.get_or_init(|| machine::machine().devices.iter().map(|_| OnceLock::new()).collect());
    Ok(all[device as usize].get_or_init(|| make(device, true)))
}

pub fn retain(device: i32) -> Result<usize, u32> {
    let context = primary(device)?;
    context.retained.fetch_add(1, Relaxed);
    if !context.alive.swap(true, Relaxed) {
        activity::began(context);
    }
    Ok(context.handle())
}

/// Takes back one retain; the context, if that was the last one.
pub fn release(device: i32) -> Result<Option<usize>, u32> {
    let context = primary(device)?;
    let before = context
        .retained
        .fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1))
        .map_err(|_| INVALID_CONTEXT)?;
    if before > 1 {
        return Ok(None);
    }
    context.alive.store(false, Relaxed);
    Ok(Some(context.handle()))
}

/// Whether somebody retains the primary context of `device`.
pub fn is_active(device: i32) -> Result<bool, u32> {
    machine::device(device)?;
    Ok(machine::ready().is_ok() && primary(device)?.alive.load(Relaxed))
}

pub fn find(handle: usize) -> Result<&'static Context, u32> {
    let contexts = registry().read().unwrap_or_else(PoisonError::into_inner);
    contexts.get(&handle).copied().ok_or(INVALID_CONTEXT)
}

pub fn device_of(context: usize) -> Result<i32, u32> {
    find(context).map(|c| c.device)
}

/// Ends a context that was created; a primary one ends otherwise. If it is the calling thread's,
/// the one below takes its place.
pub fn destroy(handle: usize) -> Result<(), u32> {
    let context = find(handle)?;
    if context.primary || !context.alive.swap(false, Relaxed) {
        return Err(INVALID_CONTEXT);
    }
    registry()
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(&handle);
    if current_handle() == handle {
        uncover();
    }
    Ok(())
}

pub fn current_handle() -> usize {
    CURRENT.get().map_or(0, Context::handle)
}

/// This thread's context; every call that needs one starts here.
pub fn current() -> Result<&'static Context, u32> {
    machine::ready()?;
    let context = CURRENT.get().ok_or(INVALID_CONTEXT)?;
    if context.alive.load(Relaxed) {
        Ok(context)
    } else {
        Err(CONTEXT_IS_DESTROYED)
    }
}

/// The device of this thread's context.
pub fn current_device() -> Result<i32, u32> {
    current().map(|c| c.device)
}

/// The same for those who only want to say it: −1 without a context.
pub fn current_ordinal() -> i32 {
    CURRENT.get().map_or(-1, |c| c.device)
}

pub fn set_current(context: usize) -> Result<(), u32> {
    machine::ready()?;
    CURRENT.set(if context == 0 { None } else { Some(find(context)?) });
    Ok(())
}

pub fn push(context: usize) -> Result<(), u32> {
    let previous = current_handle();
    set_current(context)?;
    BELOW.with_borrow_mut(|below| below.push(previous));
    Ok(())
}

pub fn pop() -> Result<usize, u32> {
    let popped = current_handle();
    if popped == 0 {
        return Err(INVALID_VALUE);
    }
    uncover();
    Ok(popped)
}

/// Makes the context below the current one current; one that has been destroyed since is none.
fn uncover() {
    let below = BELOW.with_borrow_mut(Vec::pop).unwrap_or(0);
    CURRENT.set(find(below).ok());
}
