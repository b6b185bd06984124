//! What is to be done to a file: its functions' beginnings, as [`super::patch`] moves them, in the form that agents read.

use super::arena::{ArenaCall, ArenaPatch, PATCH_COPY, PATCH_FIXUPS, PATCH_ORIGINAL, PATCH_UNDO, PatchFixup};
use super::patch::{self, Patch};
use crate::elf::{Beginning, ElfFile};
use crate::engine::Point;
use crate::wire::zero;
use anyhow::{Context, Result, bail};

/// Words of the stack that a function is given again: as many as thirty arguments have, six of which lie in registers.
const STACK_WORDS: u32 = 24;

/// The patches of a file, and which functions stay as they are, and why.
#[derive(Default)]
pub(super) struct Planned {
    pub patches: Vec<ArenaPatch>,
    pub refused: Vec<(Point, String)>,
}

/// Plans what `points` ask of a file.
pub(super) fn of_file(elf: &ElfFile, points: &[Point]) -> Planned {
    let mut planned = Planned::default();
    for point in points {
        match of_point(elf, point) {
            Ok(patch) => planned.patches.push(patch),
            Err(error) => planned.refused.push((*point, format!("{error:#}"))),
        }
    }
    leave_overlaps(&mut planned, points);
    planned
}

/// Two functions that begin so close to each other that both cannot be moved: neither is.
fn leave_overlaps(planned: &mut Planned, points: &[Point]) {
    let mut ranges: Vec<(u64, u64)> = planned
        .patches
        .iter()
        .map(|patch| (patch.entry, patch.entry + u64::from(patch.covered)))
        .collect();
    ranges.sort_unstable();
    ranges.dedup();
    let close: Vec<u64> = ranges
        .windows(2)
        .filter(|pair| pair[1].0 < pair[0].1)
        .flat_map(|pair| [pair[0].0, pair[1].0])
        .collect();
    planned.patches.retain(|patch| {
        let stays = !close.contains(&patch.entry);
        if !stays && let Some(point) = points.iter().find(|point| point.cookie() == patch.cookie) {
            let why = "another function begins within the bytes that would have to be moved";
            planned.refused.push((*point, why.to_owned()));
        }
        stays
    });
}

fn of_point(elf: &ElfFile, point: &Point) -> Result<ArenaPatch> {
    if point.site != 0 {
        return of_place(elf, point);
    }
    if elf.is_go() {
        bail!("Go's stacks are small and move: nothing else may run on them");
    }
    let beginning = elf.beginning(point.offset)?.context("there is no code")?;
    let planned = patch::plan(&beginning.bytes, beginning.size, beginning.address)?;
    as_agents_read(&planned, &beginning, point).context("its beginning is too long to be moved")
}

/// A place within a function: a static probe, or one that a user has named.
fn of_place(elf: &ElfFile, point: &Point) -> Result<ArenaPatch> {
    let around = elf.around(point.offset)?;
    let around = around.context("nothing says where the function around it begins and ends")?;
    let (function, at) = (&around.function, around.at);
    let semaphore = match point.semaphore {
        0 => 0,
        offset => elf
            .address_of(offset)
            .context("its semaphore lies outside of what the file loads")?,
    };
    let planned = patch::plan_place(&function.bytes, function.size, function.address, at, semaphore)?;
    let place = Beginning {
        address: function.address + at as u64,
        bytes: function.bytes.get(at..).unwrap_or_default().to_vec(),
        size: function.size - at,
    };
    let mut patch = as_agents_read(&planned, &place, point).context("what has to be moved is too long")?;
    patch.place = 1;
    patch.semaphore = semaphore;
    Ok(patch)
}

fn as_agents_read(planned: &Patch, beginning: &Beginning, point: &Point) -> Option<ArenaPatch> {
    let mut patch: ArenaPatch = zero();
    patch.entry = beginning.address;
    patch.cookie = point.cookie();
    patch.returns = point.returns.into();
    patch.kept = planned.kept;
    patch.covered = planned.covered;
    patch.stack_words = STACK_WORDS;
    patch.undo_bytes = put(&mut patch.undo, &planned.undo)?;
    patch.copy_bytes = put(&mut patch.copy, &planned.copy)?;
    let original = beginning.bytes.get(..usize::from(planned.covered))?;
    put(&mut patch.original, original)?;
    patch.fixups = u32::try_from(planned.fixups.len()).ok()?;
    for (index, fixup) in planned.fixups.iter().enumerate() {
        *patch.fixup.get_mut(index)? = PatchFixup {
            target: fixup.target,
            at: fixup.at.into(),
            next: fixup.next.into(),
        };
    }
    Some(patch)
}

/// `None`: there is no room.
fn put(to: &mut [u8], from: &[u8]) -> Option<u8> {
    to.get_mut(..from.len())?.copy_from_slice(from);
    u8::try_from(from.len()).ok()
}

/// The calls of a dynamic linker's notification, which lies at `offset`.
///
/// # Errors
/// There is none.
pub(super) fn of_linker(elf: &ElfFile, offset: u64) -> Result<Vec<ArenaCall>> {
    let (calls, target) = elf.calls_of(offset)?;
    if calls.is_empty() {
        bail!("nothing in it calls its notification: libraries that are loaded later are not seen from inside");
    }
    Ok(calls.into_iter().map(|at| ArenaCall { at, target }).collect())
}

/// What is read of a plan has room for what the planner makes.
const _: () = assert!(PATCH_ORIGINAL >= 32 && PATCH_UNDO >= 8 && PATCH_COPY >= 80 && PATCH_FIXUPS >= 6);

#[cfg(test)]
mod libraries {
    use super::*;
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    /// NVIDIA's own, in the folder that `GPUSCOPE_LIBRARIES` names.
    #[test]
    #[ignore = "needs GPUSCOPE_LIBRARIES"]
    fn nearly_all_functions_of_the_libraries_can_be_patched() {
        let folder = std::env::var_os("GPUSCOPE_LIBRARIES").expect("GPUSCOPE_LIBRARIES; scripts/fetch-libraries.sh");
        let mut files: Vec<PathBuf> = Vec::new();
        let mut folders = vec![PathBuf::from(folder)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                match entry.path().is_dir() {
                    true => folders.push(entry.path()),
                    false if name.starts_with("libcudart.so.") || name.starts_with("libcuda.so.") => {
                        files.push(entry.path());
                    }
                    false => {}
                }
            }
        }
        assert!(!files.is_empty(), "no library");
        for path in files {
            let elf = ElfFile::open(&path).expect("a library");
            let symbols = elf.symbols_where(&|name| name.starts_with("cu")).expect("symbols");
            let point = |symbol: &crate::elf::Symbol| Point::entry(symbol.file_offset, 0, true);
            let points: Vec<Point> = symbols.iter().map(point).collect();
            let mut why: BTreeMap<String, Vec<String>> = BTreeMap::new();
            let mut refused = 0;
            for (symbol, point) in symbols.iter().zip(&points) {
                if let Err(error) = of_point(&elf, point) {
                    refused += 1;
                    why.entry(format!("{error:#}")).or_default().push(symbol.name.clone());
                }
            }
            eprintln!("{}: {refused} of {} refused: {why:#?}", path.display(), points.len());
            assert!(refused * 50 <= points.len(), "{}", path.display());
        }
    }
}
