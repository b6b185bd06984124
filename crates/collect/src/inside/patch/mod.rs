//! How the entry of a function is patched in a process that carries the agent: a plan of bytes, made from the file alone.
//!
//! The first instruction stays where it is, because somebody's uprobe may sit on it: the kernel then executes the first
//! instruction of the file and resumes behind it. A jump of five bytes is written right behind it (`e9` and the
//! distance). It leads to a thunk, which undoes the first instruction, so that the stack is as at the entry. Where
//! nobody is recorded, or nothing is wanted but the number of calls, it goes on with a copy of the beginning, else with
//! the wrapper, which calls that copy. The copy executes the first instruction once more, then those that the jump has
//! overwritten, and jumps to the first one that it has not.
//!
//! Owns: which entries can be patched, and the bytes of the copy. It knows nothing of processes and writes to no memory.
//!
//! What the bytes of the function cannot show is the caller's to know: a probe behind the first instruction, and a
//! branch from another function to behind it, as in hand-written assembly, would meet the middle of the jump.

mod code;
mod first;
mod moved;
mod refusal;
mod sweep;

#[cfg(test)]
mod tests;

use code::{Code, Step};
use iced_x86::{FlowControl, Mnemonic};
use moved::Moved;
pub(crate) use refusal::Refusal;

/// Of the jump that is written, in bytes.
const JUMP: usize = 5;

/// How one entry is patched. All addresses are virtual addresses of the file, not of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Patch {
    /// Size of what stays at the entry, in bytes; the jump follows. 0: the jump overwrites the first instruction, and
    /// probes of the kernel at the entry see no call any more.
    pub kept: u8,
    /// How many bytes, from the entry on, are moved: at least `kept` and the jump, at most 32.
    pub covered: u8,
    /// Instructions that take back what the first one did, to be executed anywhere. Flags are left as they are.
    pub undo: Vec<u8>,
    /// The beginning, to be put elsewhere. It ends with a jump to `covered` bytes behind the entry, unless the last
    /// instruction never goes on.
    pub copy: Vec<u8>,
    /// Where `copy` depends on the place that it is put to, in ascending order.
    pub fixups: Vec<Fixup>,
}

/// Four bytes of a copy that are relative to where it is put: `target - (address of the copy + next)`, signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fixup {
    /// Offset of the four bytes in the copy.
    pub at: u16,
    /// Offset of the end of their instruction in the copy.
    pub next: u16,
    pub target: u64,
}

/// Plans the patch of the function at the address `entry`.
///
/// `function`: its bytes and those that follow up to the next function. `size`: how many of them the file says are the
/// function's; 0 where it does not say.
///
/// # Errors
/// The entry cannot be patched without changing what the function does.
pub(crate) fn plan(function: &[u8], size: usize, entry: u64) -> Result<Patch, Refusal> {
    let code = Code::new(function, size, entry)?;
    let first = code.step(0)?;
    match first.instruction.flow_control() {
        FlowControl::Return => return Err(Refusal::Returns),
        FlowControl::UnconditionalBranch => return Err(Refusal::JumpsAway),
        _ => {}
    }
    match first::undo(&first.instruction) {
        Some(undo) => patch(&code, first.encoded.len(), undo).or_else(|why| at_entry(&code, &first, why)),
        None => at_entry(&code, &first, Refusal::First),
    }
}

/// Overwrites the first instruction, where it is long enough: `why` it cannot stay.
fn at_entry(code: &Code<'_>, first: &Step<'_>, why: Refusal) -> Result<Patch, Refusal> {
    if first.encoded.len() < JUMP {
        return Err(why);
    }
    patch(code, 0, Vec::new())
}

/// Plans a patch within a function: at the instruction `at` bytes behind its first one, of a function whose size is known.
/// What arrives there is told of with all its registers, and goes on. `semaphore`: the address of the place's, 0: it has none.
///
/// # Errors
/// The place cannot be patched without changing what the function does.
pub(crate) fn plan_place(
    function: &[u8],
    size: usize,
    entry: u64,
    at: usize,
    semaphore: u64,
) -> Result<Patch, Refusal> {
    let whole = Code::new(function, size, entry)?;
    let inner = |from: usize| {
        let (bytes, size) = (function.get(from..), size.checked_sub(from).filter(|size| *size > 0));
        let (bytes, size) = bytes.zip(size).ok_or(Refusal::CutOff)?;
        Code::new(bytes, size, entry.wrapping_add(from as u64))
    };
    let first = inner(at)?.step(0)?;
    let kept = match first.instruction.mnemonic() {
        // somebody's uprobe may sit on it; it does nothing, so that it may be executed before we are told
        Mnemonic::Nop => first.encoded.len(),
        _ if first.encoded.len() >= JUMP => 0,
        _ => return Err(Refusal::ShortPlace),
    };
    let moved = Moved::from(&inner(at + kept)?, JUMP)?;
    let covered = kept + moved.covered;
    let place = sweep::Place {
        at,
        moves: at + kept,
        end: at + covered,
        semaphore,
    };
    sweep::find_way_into(&whole, &place)?;
    let byte = |size: usize| u8::try_from(size).map_err(|_| Refusal::TooLong);
    Ok(Patch {
        kept: byte(kept)?,
        covered: byte(covered)?,
        undo: Vec::new(),
        copy: moved.copy,
        fixups: moved.fixups,
    })
}

fn patch(code: &Code<'_>, kept: usize, undo: Vec<u8>) -> Result<Patch, Refusal> {
    let moved = Moved::from(code, kept + JUMP)?;
    sweep::find_branch_into(code, moved.covered)?;
    let byte = |size: usize| u8::try_from(size).map_err(|_| Refusal::TooLong);
    Ok(Patch {
        kept: byte(kept)?,
        covered: byte(moved.covered)?,
        undo,
        copy: moved.copy,
        fixups: moved.fixups,
    })
}
