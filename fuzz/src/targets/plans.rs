//! A file of plans of earlier loads, behind its head: as we read it, and as the agent finds a file in it, within the program that loads it.
//!
//! The first byte says at which of its words the file begins that is looked for.

use gpuscope::inside::hostile::{PLANS_HEAD as HEAD, rewritten_plans};

const WORD: usize = 8;

pub fn run(input: &[u8]) {
    let Some((&word, plans)) = input.split_first() else {
        return;
    };
    let again = rewritten_plans(plans);
    let is_believed = again.is_some();
    assert!(again.is_none_or(|again| again == plans), "it is written as it was read");
    look_for(HEAD + usize::from(word) * WORD, plans, is_believed);
}

/// Looks for the file that begins at `at`: as if that were the name of it.
#[cfg(target_arch = "x86_64")]
fn look_for(at: usize, plans: &[u8], is_believed: bool) {
    use crate::inside::{Island, KeptFile, Planned, fuzz_digest_of_name, fuzz_find_plan};
    use gpuscope::inside::hostile::PLANS_PATCH;

    const NAME: &std::ffi::CStr = c"/lib/libcuda.so.1";
    let mut file = [&[0; HEAD], plans].concat();
    let name = at + std::mem::offset_of!(KeptFile, name);
    let Some(named) = file.get_mut(name..name + WORD) else {
        return;
    };
    // SAFETY: a text that ends
    named.copy_from_slice(&unsafe { fuzz_digest_of_name(NAME.as_ptr()) }.to_ne_bytes());
    let (from, file) = Island::shared().place(&file, 0);
    let Some(like) = file.get(at..at + size_of::<KeptFile>()) else {
        return;
    };
    let mut plan = Planned::default();
    // SAFETY: as many bytes as such a file has, of which any will do; `plan` is one, and what lies at the address is what is tried
    let found = unsafe {
        let like = like.as_ptr().cast::<KeptFile>().read_unaligned();
        fuzz_find_plan(from, file.len() as u64, &raw const like, NAME.as_ptr(), &raw mut plan)
    };
    if found {
        let end = plan
            .patches
            .checked_mul(PLANS_PATCH as u64)
            .and_then(|bytes| plan.at.checked_add(bytes));
        assert!(
            end.is_some_and(|end| end <= file.len() as u64),
            "{plan:?} of {}",
            file.len()
        );
    }
    assert!(
        found || !is_believed || at != HEAD,
        "the first of those that are read is found"
    );
}

#[cfg(not(target_arch = "x86_64"))]
fn look_for(_at: usize, _plans: &[u8], _is_believed: bool) {}
