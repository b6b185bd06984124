//! The same by kind of memory, and pools.

use super::words::{age, explained, place};
use crate::catalog::Holder;
use crate::model::memory::{FamilyReport, PoolReport, ProcessReport};
use crate::text::fit::GAP;
use crate::text::quantity::{bytes, count};
use std::fmt::Write;

/// A line for each family on each device; what others hold, or nobody, is shown apart.
pub(crate) fn table(process: &ProcessReport, out: &mut String) {
    let used = process.families.iter().filter(|family| family.account.is_used());
    let (apart, held): (Vec<&FamilyReport>, Vec<&FamilyReport>) =
        used.partition(|family| family.family.holder() == Holder::Nobody);
    if !held.is_empty() {
        heading("by family", out);
        held.iter().for_each(|family| row(family, out));
    }
    if !apart.is_empty() {
        heading("apart, never added to it", out);
        apart.iter().for_each(|family| row(family, out));
    }
}

fn heading(title: &str, out: &mut String) {
    let _ = writeln!(
        out,
        "  {title:<26}{GAP} {:>10}{GAP} {:>10}{GAP} {:>11}{GAP} {:>11}{GAP} {:>11}{GAP} {:>7}",
        "held", "peak", "outstanding", "allocations", "frees", "failed"
    );
}

fn row(family: &FamilyReport, out: &mut String) {
    let account = &family.account;
    let _ = writeln!(
        out,
        "    {:<24}{GAP} {:>10}{GAP} {:>10}{GAP} {:>11}{GAP} {:>11}{GAP} {:>11}{GAP} {:>7}{GAP}  {}",
        format!("{}, {}", family.family.name(), place(family.device)),
        bytes(account.held_bytes),
        bytes(account.peak_bytes),
        count(account.outstanding),
        count(account.allocations),
        count(account.frees),
        count(account.failed_allocations),
        explained(family.family),
    );
}

/// What pools lend out, and what they keep as far as the program has asked.
pub(crate) fn pools(process: &ProcessReport, out: &mut String) {
    let worth = |pool: &&PoolReport| pool.peak_used_bytes > 0 || pool.reserved.is_some();
    let pools: Vec<&PoolReport> = process.pools.iter().filter(worth).collect();
    if pools.is_empty() {
        return;
    }
    out.push_str("  memory pools:\n");
    for pool in pools {
        let _ = write!(
            out,
            "    {:#x}, {}: {} used, peak {}",
            pool.handle,
            place(pool.device),
            bytes(pool.used_bytes),
            bytes(pool.peak_used_bytes)
        );
        if let Some((reserved, at)) = pool.reserved {
            let ago = age(process.at.saturating_sub(at));
            let _ = write!(
                out,
                ", {} reserved when the program last asked, {ago} before",
                bytes(reserved)
            );
        }
        out.push('\n');
    }
}
