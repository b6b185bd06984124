//! Functions that are executed as they are and then patched.

use super::{INT3, put_to};
use crate::inside::patch::{JUMP, Patch, plan};

const PAGE: usize = 4096;
const FUNCTION: usize = 0x100;
const THUNK: usize = PAGE;
const COPY: usize = PAGE + 0x200;
/// A number that functions read, and behind it the thunk's count of calls.
const DATA: usize = 2 * PAGE;
const COUNT: usize = DATA + 8;
const SIZE: usize = 3 * PAGE;

const INPUTS: [(u64, u64); 5] = [(0, 0), (1, 2), (7, 300), (u64::MAX, 1), (1 << 63, 5)];
const NUMBERS: [u64; 2] = [1000, 5];

type Expected = fn(u64, u64, u64) -> u64;

/// How the wrapper goes on to the copy.
#[derive(Debug, Clone, Copy)]
enum Onward {
    Jump,
    Call,
}

/// Memory with one function in it, which can be written to or executed.
struct Memory(*mut u8);

impl Memory {
    fn new(function: &[u8]) -> Memory {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, where the kernel chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), SIZE, protection, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        let memory = Memory(start.cast());
        memory.write(0, &[INT3; PAGE]);
        memory.write(FUNCTION, function);
        memory
    }

    fn address(&self, at: usize) -> u64 {
        self.0 as u64 + at as u64
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= SIZE);
        // SAFETY: within the mapping, which is writable when this is called.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.add(at), bytes.len()) };
    }

    fn protect(&self, protection: i32) {
        // SAFETY: the first two pages of the mapping; nothing but this test uses them.
        let result = unsafe { libc::mprotect(self.0.cast(), DATA, protection) };
        assert_eq!(result, 0);
    }

    fn count(&self) -> u64 {
        // SAFETY: within the mapping, aligned; the functions that write there have returned.
        unsafe { self.0.add(COUNT).cast::<u64>().read_volatile() }
    }

    /// Calls the function with all inputs.
    fn results(&self) -> Vec<u64> {
        self.protect(libc::PROT_READ | libc::PROT_EXEC);
        // SAFETY: code of this signature lies there, and may be executed now.
        let function: extern "C" fn(u64, u64) -> u64 = unsafe { std::mem::transmute(self.0.add(FUNCTION)) };
        let mut results = Vec::new();
        for number in NUMBERS {
            self.write(DATA, &number.to_le_bytes());
            results.extend(INPUTS.map(|(a, b)| function(a, b)));
        }
        self.protect(libc::PROT_READ | libc::PROT_WRITE);
        results
    }

    fn patch(&self, patch: &Patch, onward: Onward) {
        let at = FUNCTION + usize::from(patch.kept);
        self.write(at, &near(0xe9, at, THUNK));
        self.write(THUNK, &thunk(patch, onward));
        self.write(COPY, &put_to(patch, self.address(COPY)));
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, of which nothing is used any more.
        unsafe { libc::munmap(self.0.cast(), SIZE) };
    }
}

/// A jump or a call from one place to another.
fn near(opcode: u8, from: usize, to: usize) -> [u8; JUMP] {
    let [a, b, c, d] = distance(from + JUMP, to);
    [opcode, a, b, c, d]
}

fn distance(from: usize, to: usize) -> [u8; 4] {
    (to as i32 - from as i32).to_le_bytes()
}

/// The displacement of the number for an instruction of the function that ends at `end`.
fn number(end: usize) -> [u8; 4] {
    distance(FUNCTION + end, DATA)
}

/// Undoes the first instruction, counts, and spoils all that a wrapper may spoil: what lies below the stack, scratch
/// registers, flags.
fn thunk(patch: &Patch, onward: Onward) -> Vec<u8> {
    let mut code = patch.undo.clone();
    code.extend([0x48, 0xff, 0x05]); // incq count(%rip)
    code.extend(distance(THUNK + code.len() + 4, COUNT));
    code.extend([0x6a, 0xff].repeat(16)); // push $-1
    code.extend([0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0]); // lea 0x80(%rsp),%rsp
    code.extend([0x48, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff]); // mov $-1,%rax
    code.extend([0x49, 0x89, 0xc2, 0x49, 0x89, 0xc3]); // mov %rax,%r10; mov %rax,%r11
    code.extend([0x48, 0x85, 0xc0]); // test %rax,%rax
    match onward {
        Onward::Jump => code.extend(near(0xe9, THUNK + code.len(), COPY)),
        Onward::Call => {
            code.extend([0x48, 0x83, 0xec, 0x08]); // sub $8,%rsp
            code.extend(near(0xe8, THUNK + code.len(), COPY));
            code.extend([0x48, 0x83, 0xc4, 0x08, 0xc3]); // add $8,%rsp; ret
        }
    }
    code
}

/// Executes a function before and after it is patched.
fn check(function: &[u8], kept: u8, expected: Expected) {
    let wanted: Vec<u64> = NUMBERS
        .iter()
        .flat_map(|number| INPUTS.map(|(a, b)| expected(a, b, *number)))
        .collect();
    for onward in [Onward::Jump, Onward::Call] {
        let memory = Memory::new(function);
        assert_eq!(memory.results(), wanted, "unpatched: {function:x?}");
        assert_eq!(memory.count(), 0);
        let padded = [function, &[INT3; 32]].concat();
        let patch = plan(&padded, function.len(), memory.address(FUNCTION)).expect("a patch");
        assert_eq!(patch.kept, kept, "{function:x?}");
        memory.patch(&patch, onward);
        assert_eq!(memory.results(), wanted, "{onward:?}: {function:x?} {patch:x?}");
        assert_eq!(memory.count(), wanted.len() as u64, "{onward:?}: {function:x?}");
    }
}

#[test]
fn a_function_that_lowers_the_stack_does_the_same() {
    // push %rbx; mov %rdi,%rbx; lea (%rbx,%rsi),%rax; pop %rbx; ret
    let pushes = [0x53, 0x48, 0x89, 0xfb, 0x48, 0x8d, 0x04, 0x33, 0x5b, 0xc3];
    check(&pushes, 1, |a, b, _| a.wrapping_add(b));
    // push $5; pop %rax; add %rdi,%rax; ret
    check(&[0x6a, 0x05, 0x58, 0x48, 0x01, 0xf8, 0xc3], 2, |a, _, _| {
        a.wrapping_add(5)
    });
    // sub $0x18,%rsp; mov %rdi,8(%rsp); mov 8(%rsp),%rax; sub %rsi,%rax; add $0x18,%rsp; ret
    let subtracts = [
        0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x7c, 0x24, 0x08, 0x48, 0x8b, 0x44, 0x24, 0x08, 0x48, 0x29, 0xf0, 0x48,
        0x83, 0xc4, 0x18, 0xc3,
    ];
    check(&subtracts, 4, |a, b, _| a.wrapping_sub(b));
    // lea -0x18(%rsp),%rsp; mov %rdi,(%rsp); mov (%rsp),%rax; add $0x18,%rsp; ret
    let leads = [
        0x48, 0x8d, 0x64, 0x24, 0xe8, 0x48, 0x89, 0x3c, 0x24, 0x48, 0x8b, 0x04, 0x24, 0x48, 0x83, 0xc4, 0x18, 0xc3,
    ];
    check(&leads, 5, |a, _, _| a);
}

#[test]
fn a_function_that_reads_data_beside_it_does_the_same() {
    // endbr64; push %rbp; mov %rsp,%rbp; mov number(%rip),%rax; add %rdi,%rax; pop %rbp; ret
    let framed = [0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x05].as_slice();
    let framed = [framed, &number(15), &[0x48, 0x01, 0xf8, 0x5d, 0xc3]].concat();
    check(&framed, 4, |a, _, number| a.wrapping_add(number));
    // mov number(%rip),%rax; add %rdi,%rax; add %rsi,%rax; ret
    let first = [
        &[0x48, 0x8b, 0x05],
        number(7).as_slice(),
        &[0x48, 0x01, 0xf8, 0x48, 0x01, 0xf0, 0xc3],
    ]
    .concat();
    check(&first, 7, |a, b, number| a.wrapping_add(b).wrapping_add(number));
}

/// `cmpq $1000,number(%rip)`.
fn compares() -> Vec<u8> {
    [&[0x48, 0x81, 0x3d], number(11).as_slice(), &1000_u32.to_le_bytes()].concat()
}

#[test]
fn a_function_that_branches_at_once_does_the_same() {
    // cmpq; jne 1f; lea (%rdi,%rsi),%rax; ret; 1: mov %rdi,%rax; ret
    let behind = [0x75, 0x05, 0x48, 0x8d, 0x04, 0x37, 0xc3, 0x48, 0x89, 0xf8, 0xc3];
    check(&[compares(), behind.to_vec()].concat(), 11, |a, b, number| {
        if number == 1000 { a.wrapping_add(b) } else { a }
    });
    // xor %eax,%eax; test %rdi,%rdi; je 1f; lea (%rdi,%rsi),%rax; 1: ret
    let tests = [0x31, 0xc0, 0x48, 0x85, 0xff, 0x74, 0x04, 0x48, 0x8d, 0x04, 0x37, 0xc3];
    check(&tests, 2, |a, b, _| if a == 0 { 0 } else { a.wrapping_add(b) });
    // push %rbp; mov %rdi,%rax; jmp 1f; nop; nop; nop; 1: add %rsi,%rax; pop %rbp; ret
    let jumps = [
        0x55, 0x48, 0x89, 0xf8, 0xeb, 0x03, 0x90, 0x90, 0x90, 0x48, 0x01, 0xf0, 0x5d, 0xc3,
    ];
    check(&jumps, 1, |a, b, _| a.wrapping_add(b));
}

#[test]
fn a_function_that_stores_below_the_stack_does_the_same() {
    // mov %rdi,-8(%rsp); mov %rsi,-0x10(%rsp); mov -8(%rsp),%rax; add -0x10(%rsp),%rax; ret
    let stores = [
        0x48, 0x89, 0x7c, 0x24, 0xf8, 0x48, 0x89, 0x74, 0x24, 0xf0, 0x48, 0x8b, 0x44, 0x24, 0xf8, 0x48, 0x03, 0x44,
        0x24, 0xf0, 0xc3,
    ];
    check(&stores, 5, |a, b, _| a.wrapping_add(b));
}

#[test]
fn a_function_that_is_hardly_one_does_the_same() {
    // xor %eax,%eax; ret
    check(&[0x31, 0xc0, 0xc3], 2, |_, _, _| 0);
    // lea (%rdi,%rsi),%rax; ret
    check(&[0x48, 0x8d, 0x04, 0x37, 0xc3], 4, |a, b, _| a.wrapping_add(b));
}

#[test]
fn a_function_whose_first_instruction_is_overwritten_does_the_same() {
    // mov $7,%edx; lea (%rdi,%rdx),%rax; ret
    check(&[0xba, 7, 0, 0, 0, 0x48, 0x8d, 0x04, 0x17, 0xc3], 0, |a, _, _| {
        a.wrapping_add(7)
    });
    // cmpq; 1: add $1,%rdi; cmp %rsi,%rdi; jb 1b; mov %rdi,%rax; ret
    let loops = [
        0x48, 0x83, 0xc7, 0x01, 0x48, 0x39, 0xf7, 0x72, 0xf7, 0x48, 0x89, 0xf8, 0xc3,
    ];
    check(&[compares(), loops.to_vec()].concat(), 0, |a, b, _| {
        a.wrapping_add(1).max(b)
    });
}
