//! How much memory a reader takes: what it has most at a time, beside what it had before.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts for each thread.
struct Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // a thread that ends gives back what nobody counts any more
    let _ = NOW.try_with(|now| {
        now.set(now.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(now.get())));
    });
}

// SAFETY: all is handed to the system's
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as it was asked for
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as it was asked for
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as it was given
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Runs `read`; the most bytes that it had at a time.
pub fn measured<T>(read: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    let outside = MOST.replace(before);
    let result = read();
    let took = MOST.get() - before;
    MOST.set(outside.max(MOST.get()));
    (result, took.unsigned_abs())
}

/// Runs `read`, and fails if it has more than `limit` bytes at a time.
pub fn within<T>(limit: usize, read: impl FnOnce() -> T) -> T {
    let (result, took) = measured(read);
    assert!(took <= limit, "{took} bytes, allowed are {limit}");
    result
}
