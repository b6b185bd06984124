//! What the agent does with a program's memory, where some of that is there and some is not.
//!
//! Owns the memory and the way to the agent's functions (`agent.c`, which `build.rs` compiles). It is written for one processor:
//! on others there is nothing to call.

use std::ffi::c_char;
use std::sync::LazyLock;

/// Of this processor.
pub const PAGE: usize = 4096;
/// Pages that are there. What lies before and behind them is not.
const PAGES: usize = 4;

/// What is said of a text that was copied.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    pub bytes: u32,
    pub flags: u8,
}

/// What a function does to the stack, as far as it is understood.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Rule {
    pub pc: u64,
    pub frame: i32,
    pub saved: i16,
    pub base: u8,
    pub saved_in: u8,
}

/// A file whose patches are kept, which lie behind it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KeptFile {
    pub file: [u64; 3],
    pub bytes: u64,
    pub written: u64,
    /// A digest.
    pub name: u64,
    pub patches: u64,
}

/// Where patches lie, and how many they are of each kind.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Planned {
    pub at: u64,
    pub patches: u64,
    pub calls: u64,
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    pub fn fuzz_copy_text(to: *mut u8, most: u32, from: u64, wide: bool, knows: bool) -> Copied;
    pub fn fuzz_find_rule(index: u64, pc: u64, rule: *mut Rule);
    pub fn fuzz_words_above(sp: u64, words: u32, pages: u32) -> u32;
    pub fn fuzz_find_plan(
        plans: u64,
        bytes: u64,
        like: *const KeptFile,
        name: *const c_char,
        plan: *mut Planned,
    ) -> bool;
    pub fn fuzz_digest_of_name(name: *const c_char) -> u64;
}

/// Memory whose ends can be told: a byte too far ends the process.
pub struct Island {
    from: usize,
}

impl Island {
    /// The one that all inputs lie in, one after the other.
    pub fn shared() -> &'static Island {
        static SHARED: LazyLock<Island> = LazyLock::new(Island::new);
        &SHARED
    }

    fn new() -> Island {
        let (none, both) = (libc::PROT_NONE, libc::PROT_READ | libc::PROT_WRITE);
        let (kind, bytes) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, (PAGES + 2) * PAGE);
        // SAFETY: fresh memory, of which the middle is made accessible
        let from = unsafe {
            let all = libc::mmap(std::ptr::null_mut(), bytes, none, kind, -1, 0);
            assert_ne!(all, libc::MAP_FAILED, "no memory");
            let from = all.cast::<u8>().add(PAGE);
            assert_eq!(libc::mprotect(from.cast(), PAGES * PAGE, both), 0, "no memory");
            from as usize
        };
        Island { from }
    }

    /// Behind its last byte.
    pub fn end(&self) -> u64 {
        (self.from + PAGES * PAGE) as u64
    }

    /// Where its first byte lies.
    pub fn begin(&self) -> u64 {
        self.from as u64
    }

    /// Places `bytes`, of which as many fit as there is room, so that `beside` bytes are between them and the end. Gives their address.
    pub fn place<'a>(&self, bytes: &'a [u8], beside: usize) -> (u64, &'a [u8]) {
        let beside = beside.min(PAGES * PAGE);
        let bytes = &bytes[..bytes.len().min(PAGES * PAGE - beside)];
        let at = self.from + PAGES * PAGE - beside - bytes.len();
        // SAFETY: within what was mapped, which nobody else uses: inputs come one at a time
        unsafe {
            std::ptr::write_bytes(self.from as *mut u8, 0xa5, PAGES * PAGE);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len());
        }
        (at as u64, bytes)
    }
}
