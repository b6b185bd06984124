//! Which functions must not get a return probe. Pure but for the file's headers.
//!
//! A return probe puts its own address in the place of the caller's on the stack. Code that reads that place, leaves by
//! another way or unwinds through it crashes, is aborted or goes on with a stack that is not its own.

use crate::catalog::glob_matches;
use crate::elf::ElfFile;

/// Names, and why.
const REFUSED: [(&str, &[&str]); 5] = [
    (
        "it leaves by another way than its return, or returns twice",
        &[
            "setjmp",
            "_setjmp",
            "__setjmp",
            "sigsetjmp",
            "__sigsetjmp",
            "longjmp",
            "_longjmp",
            "siglongjmp",
            "__longjmp*",
            "____longjmp_chk",
        ],
    ),
    (
        "it changes to another stack",
        &[
            "getcontext",
            "setcontext",
            "swapcontext",
            "makecontext",
            "__start_context",
            "*jump_fcontext",
            "*ontop_fcontext",
            "*make_fcontext",
            "co_switch",
            "coro_transfer",
            "*_swap_context",
            "__morestack*",
            "_dl_runtime_resolve*",
            "_dl_tlsdesc_*",
            "__tls_get_addr_slow",
        ],
    ),
    (
        "it reads its own return address to unwind the stack",
        &[
            "_Unwind_*",
            "__cxa_throw*",
            "__cxa_rethrow*",
            "__cxa_end_catch",
            "__cxa_call_unexpected",
            "__gxx_personality_*",
            "__gcc_personality_*",
            "rust_begin_unwind",
            "rust_panic*",
            "__rust_start_panic",
        ],
    ),
    (
        "its child would return on the same stack",
        &[
            "vfork",
            "__vfork",
            "__libc_vfork",
            "clone",
            "__clone",
            "__clone2",
            "clone3",
            "__clone3",
            "__clone_internal*",
        ],
    ),
    (
        "it never returns",
        &[
            "_start",
            "_exit",
            "_Exit",
            "exit",
            "quick_exit",
            "abort",
            "pthread_exit",
            "__pthread_exit",
            "thrd_exit",
            "__stack_chk_fail",
            "__assert_fail",
            "__restore_rt",
            "execve",
            "execv*",
            "fexecve",
        ],
    ),
];

/// Why a function must not get a return probe; `None`: it may.
pub fn refused(elf: &ElfFile, symbol: &str) -> Option<&'static str> {
    if elf.is_go() {
        return Some(
            "Go moves its stacks, and a return probe would crash it; a call whose stack grows is counted twice",
        );
    }
    by_name(symbol)
}

fn by_name(symbol: &str) -> Option<&'static str> {
    if symbol.starts_with("_Z") {
        return Some("C++ exceptions cannot pass a return probe");
    }
    if symbol
        .strip_prefix("_R")
        .is_some_and(|rest| rest.starts_with(['N', 'I', 'C', 'X', 'Y', 'M']))
    {
        return Some("Rust panics cannot pass a return probe");
    }
    let refused = |names: &[&str]| names.iter().any(|name| glob_matches(name, symbol));
    REFUSED.iter().find(|(_, names)| refused(names)).map(|(why, _)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_break_under_a_return_probe_are_known() {
        for name in [
            "longjmp",
            "__longjmp_chk",
            "_setjmp",
            "swapcontext",
            "jump_fcontext",
            "_Unwind_RaiseException",
            "__cxa_throw",
            "vfork",
            "clone3",
            "_ZN3fooEv",
            "_RNvC4main3run",
        ] {
            assert!(by_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn all_others_may_have_one() {
        for name in [
            "malloc",
            "fork",
            "ncclAllReduce",
            "cloned",
            "my_longjmp_count",
            "Zone",
            "_Real",
            "setjmpx",
        ] {
            let refused = by_name(name);
            assert_eq!(refused, None, "{name}");
        }
    }
}
