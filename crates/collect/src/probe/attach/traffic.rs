//! The probes of a file by what they see, so that those of frequent calls can be taken away for a while and put back.
//!
//! Owns which are there. When they go is not decided here.

use super::Attacher;
use crate::catalog::{RowId, Traffic};
use crate::engine::{Engine, Hooks, Point};
use crate::probe::links;
use crate::probe::rows::Rows;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Probes of one kind.
struct Part {
    points: Vec<Point>,
    /// Empty: they are not there now.
    hooks: Hooks,
}

/// All probes of a file, by the traffic that they see; `None`: what is always seen.
pub(super) struct Hooked(BTreeMap<Option<Traffic>, Part>);

impl Hooked {
    /// Those of a file of which nobody asks where they are.
    pub(super) fn always(hooks: Hooks) -> Hooked {
        let points = Vec::new();
        Hooked(BTreeMap::from([(None, Part { points, hooks })]))
    }

    /// Where they are now.
    pub(super) fn points(&self) -> impl Iterator<Item = &Point> {
        let there = self.0.values().filter(|part| !part.hooks.is_empty());
        there.flat_map(|part| &part.points)
    }

    /// Their offsets, in order, each once.
    pub(super) fn sites(&self) -> Vec<u64> {
        let sites: BTreeSet<u64> = self.points().map(|point| point.offset).collect();
        sites.into_iter().collect()
    }

    /// How many there are: of an engine that makes single events, one for each.
    pub(super) fn count(&self) -> usize {
        self.0.values().map(|part| part.hooks.len()).sum()
    }

    /// Those that `are` meant, which are then no longer here.
    pub(super) fn take(&mut self, are: impl Fn(Option<Traffic>) -> bool) -> Hooks {
        let meant = self.0.iter_mut().filter(|(traffic, _)| are(**traffic));
        meant.flat_map(|(_, part)| std::mem::take(&mut part.hooks)).collect()
    }
}

impl Attacher {
    /// From now on frequent calls are probed apart from others, so that they can be shed.
    pub fn tell_traffic_apart(&mut self) {
        self.by_traffic = true;
    }

    /// Probes `points` of the file behind `path`, but for what is shed.
    pub(super) fn hook(
        &mut self,
        engine: &dyn Engine,
        rows: &dyn Rows,
        path: &Path,
        points: Vec<Point>,
    ) -> Result<Hooked> {
        let mut parts: BTreeMap<Option<Traffic>, Vec<Point>> = BTreeMap::new();
        for point in points {
            let row = rows.catalog().row(RowId(point.row));
            let traffic = row.and_then(|row| row.traffic()).filter(|_| self.by_traffic);
            parts.entry(traffic).or_default().push(point);
        }
        let hooked = parts.into_iter().map(|(traffic, points)| {
            let is_shed = traffic.is_some_and(|traffic| self.shed.contains(&traffic));
            let hooks = if is_shed {
                Vec::new()
            } else {
                engine.attach(path, &points)?
            };
            Ok((traffic, Part { points, hooks }))
        });
        hooked.collect::<Result<_>>().map(Hooked)
    }

    /// Takes the probes of such calls away, in all files and in those to come.
    pub fn shed(&mut self, traffic: Traffic) {
        self.shed.insert(traffic);
        let files = self.attached.values_mut().map(|file| &mut file.probes);
        let mut gone = Hooks::new();
        for probes in files {
            gone.extend(probes.hooked.take(|of| of == Some(traffic)));
            probes.original.clear();
        }
        links::detach(gone);
    }

    /// Puts them back, in all files or in none.
    ///
    /// # Errors
    /// A file cannot be read any more, or the kernel refuses.
    pub fn take_up(&mut self, engine: &dyn Engine, traffic: Traffic) -> Result<()> {
        let files = self.attached.iter();
        let parts = files.filter_map(|(key, file)| Some((*key, file, file.probes.hooked.0.get(&Some(traffic))?)));
        let parts: Vec<_> = parts.collect();
        for (_, file, part) in &parts {
            // the kernel reads these pages: not while we wait
            let touched = file.probes.file.touch(part.points.iter().map(|point| point.offset));
            touched.with_context(|| file.path.display().to_string())?;
        }
        let mut back: Vec<((u64, u64), Hooks)> = Vec::new();
        for (key, file, part) in parts {
            match engine.attach(&file.probes.file.path(), &part.points) {
                Ok(hooks) => back.push((key, hooks)),
                Err(error) => {
                    links::detach(back.into_iter().flat_map(|(_, hooks)| hooks).collect());
                    return Err(error.context(file.path.display().to_string()));
                }
            }
        }
        self.shed.remove(&traffic);
        for (key, hooks) in back {
            let Some(file) = self.attached.get_mut(&key) else {
                continue;
            };
            file.probes.original.clear();
            if let Some(part) = file.probes.hooked.0.get_mut(&Some(traffic)) {
                part.hooks = hooks;
            }
        }
        Ok(())
    }
}
