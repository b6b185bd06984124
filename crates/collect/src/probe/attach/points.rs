//! Where exactly a file's functions are probed, and which of them cannot be.
//!
//! Owns one point for each place. Which instruction takes a probe is [`crate::elf`]'s business.

use super::rows::row_for;
use super::{Attacher, Rows};
use crate::catalog::{LibraryId, RowId};
use crate::elf::{Cost, ElfFile, is_trampoline, probe_site};
use crate::engine::{Engine, Point};
use crate::probe::found::Found;
use crate::probe::place::{readable_inside, site_at};
use crate::probe::returns;
use crate::probe::rows::NoRoom;
use anyhow::Result;
use std::collections::HashSet;
use std::path::Path;

/// A file that is about to be probed.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) engine: &'a dyn Engine,
    pub(super) elf: &'a ElfFile,
    pub(super) library: LibraryId,
    pub(super) path: &'a Path,
}

impl Attacher {
    /// Where to probe for what was found, and how many of the probes have to single-step an instruction.
    pub(super) fn points(&mut self, rows: &mut dyn Rows, file: Target<'_>, found: &[Found]) -> (Vec<Point>, usize) {
        let names: HashSet<&str> = found.iter().map(|function| function.name.as_str()).collect();
        let mut taken = HashSet::new();
        let (mut points, mut single_stepped, mut beyond) = (Vec::new(), 0, 0);
        for function in found {
            let row = match row_for(rows, file.elf, file.library, function, &names) {
                Ok(Some(row)) => row,
                Ok(None) => continue,
                Err(NoRoom) => {
                    beyond += 1;
                    continue;
                }
            };
            let own = function.is_place.then_some(row);
            if !taken.insert((function.offset, function.probe.is_some(), own)) {
                continue;
            }
            if let Some((point, is_slow)) = self.point(rows, file, function, row) {
                single_stepped += usize::from(is_slow);
                points.push(point);
            }
        }
        if beyond > 0 {
            self.gap(format!(
                "{}: {beyond} functions are not hooked: patterns may add {} in all; hint: a narrower pattern",
                file.path.display(),
                rows.spare(),
            ));
            self.blind = true;
        }
        (points, single_stepped)
    }

    /// With it, whether the probe single-steps at the entry of a function.
    fn point(&mut self, rows: &mut dyn Rows, file: Target<'_>, function: &Found, row: RowId) -> Option<(Point, bool)> {
        let point = match &function.probe {
            _ if function.is_place => self.place(rows, file, function, row),
            Some(probe) => {
                let described = &rows.catalog().rows[row.0 as usize];
                self.sites.point(file.engine, file.elf, probe, (row, described))
            }
            None if is_trampoline(file.elf, function.offset).unwrap_or(false) => return None,
            None => return self.entry(rows, file, function, row),
        };
        match point {
            Ok(point) => Some((point, false)),
            Err(error) => {
                self.gap(format!("{}: {}: {error:#}", file.path.display(), function.name));
                None
            }
        }
    }

    /// Where to probe a function at its entry.
    fn entry(&mut self, rows: &mut dyn Rows, file: Target<'_>, function: &Found, row: RowId) -> Option<(Point, bool)> {
        let about = format!("{}: {}", file.path.display(), function.name);
        let site = match probe_site(file.elf, function.offset) {
            Ok(site) => site,
            Err(refusal) => {
                self.blind |= rows.catalog().rows[row.0 as usize].work.is_some();
                self.gap(format!("{about}: {refusal}"));
                return None;
            }
        };
        if let (true, Some(why)) = (rows.returns(row), returns::refused(file.elf, &function.name)) {
            rows.see_entry_only(row);
            self.gap(format!("{about}: seen at entry only: {why}"));
        }
        // from inside, the kernel runs no instruction for us
        let cost = file.engine.is_inside().map_or(site.cost, |_| Cost::Emulated);
        let point = Point::entry(site.offset, row.0, rows.returns(row)).at(cost);
        Some((point, cost == Cost::SingleStepped))
    }

    /// Where to probe for a row with an offset.
    fn place(&mut self, rows: &mut dyn Rows, file: Target<'_>, function: &Found, row: RowId) -> Result<Point> {
        let place = site_at(file.elf, function.offset)?;
        let refused = if place.is_entry {
            let names = file.elf.function_names(&[function.offset]).pop().flatten();
            returns::refused(file.elf, names.as_deref().unwrap_or_default())
        } else {
            Some("no function begins there")
        };
        if let (true, Some(why)) = (rows.returns(row), refused) {
            rows.see_entry_only(row);
            self.gap(format!("{}: seen at entry only: {why}", function.name));
        }
        if place.is_entry {
            return Ok(Point::entry(place.site.offset, row.0, rows.returns(row)).at(place.site.cost));
        }
        readable_inside(&rows.catalog().rows[row.0 as usize])?;
        let point = self.sites.inner(file.engine, place.site.offset, row)?;
        Ok(point.at(place.site.cost))
    }
}
