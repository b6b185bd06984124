//! Contexts, and which one each thread uses.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};

use crate::error::{INVALID_CONTEXT, INVALID_VALUE};
use crate::machine;

type Registry = RwLock<HashMap<usize, i32>>;

fn registry() -> &'static Registry {
    static CONTEXTS: OnceLock<Registry> = OnceLock::new();
    CONTEXTS.get_or_init(Registry::default)
}

thread_local! {
    static CURRENT: Cell<(usize, i32)> = const { Cell::new((0, -1)) };
    static BELOW: Cell<[usize; 8]> = const { Cell::new([0; 8]) };
}

/// A new context of `device`.
pub fn create(device: i32) -> usize {
    let handle = Box::leak(Box::new([device as u64; 8])) as *const _ as usize;
    registry()
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(handle, device);
    handle
}

/// The primary context of `device`, made when first asked for.
pub fn primary(device: i32) -> Result<usize, u32> {
    static PRIMARY: OnceLock<Vec<OnceLock<usize>>> = OnceLock::new();
    machine::ready()?;
    machine::device(device)?;
    let all = PRIMARY.get_or_init(|| machine::machine().devices.iter().map(|_| OnceLock::new()).collect());
    Ok(*all[device as usize].get_or_init(|| create(device)))
}

pub fn device_of(context: usize) -> Result<i32, u32> {
    let contexts = registry().read().unwrap_or_else(PoisonError::into_inner);
    contexts.get(&context).copied().ok_or(INVALID_CONTEXT)
}

pub fn destroy(context: usize) -> Result<(), u32> {
    let removed = registry()
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(&context);
    removed.ok_or(INVALID_CONTEXT)?;
    if current_handle() == context {
        CURRENT.set((0, -1));
    }
    Ok(())
}

pub fn current_handle() -> usize {
    CURRENT.get().0
}

/// The device of this thread's context; every call that needs one starts here.
pub fn current_device() -> Result<i32, u32> {
    machine::ready()?;
    match CURRENT.get() {
        (0, _) => Err(INVALID_CONTEXT),
        (_, device) => Ok(device),
    }
}

pub fn set_current(context: usize) -> Result<(), u32> {
    machine::ready()?;
    CURRENT.set(if context == 0 {
        (0, -1)
    } else {
        (context, device_of(context)?)
    });
    Ok(())
}

pub fn push(context: usize) -> Result<(), u32> {
    let previous = current_handle();
    set_current(context)?;
    let mut below = BELOW.get();
    below.rotate_right(1);
    below[0] = previous;
    BELOW.set(below);
    Ok(())
}

pub fn pop() -> Result<usize, u32> {
    let popped = current_handle();
    if popped == 0 {
        return Err(INVALID_VALUE);
    }
    let mut below = BELOW.get();
    let previous = std::mem::take(&mut below[0]);
    below.rotate_left(1);
    BELOW.set(below);
    set_current(previous)?;
    Ok(popped)
}
