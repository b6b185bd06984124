//! The hooks at functions of the kernel and at tracepoints.
//!
//! Owns which of them are hooked now, and when. Functions of modules are hooked one by one, because a link for many of
//! them would keep the module from being unloaded; when a module has come again, they are hooked again. What the kernel
//! says of a name is [`super::kernel`]'s business, one hook that of `held`.

mod held;

use super::Session;
use super::kernel::lists;
use super::kernel::look::{Absent, Look, by_name};
use super::kernel::place::Resolved;
use super::kernel::symbols::Symbol;
use super::links::detach;
use super::rows::Rows;
use super::trampoline::Missed;
use crate::catalog::{InKernel, RowId, SiteKind};
use crate::engine::{Engine, KernelPoint};
use anyhow::{Context, Result, anyhow, bail};
use held::{Held, attach_all, attach_function};
use std::collections::BTreeMap;

/// Matches of one pattern.
const MOST_MATCHES: usize = 512;

/// Everything that is hooked in the kernel.
#[derive(Default)]
pub(crate) struct KernelHooks {
    hooked: BTreeMap<Hook, Hooked>,
    sites: u32,
    /// As they were when we last looked.
    modules: Vec<(String, Option<u64>)>,
    /// By hooks that are gone, by the function's name.
    missed: BTreeMap<String, Missed>,
}

/// A function or tracepoint, and the row that it is hooked for.
type Hook = (String, u32);

struct Hooked {
    /// The modules that it is of.
    modules: Vec<String>,
    held: Held,
}

/// What one attempt to hook has come to.
#[derive(Default)]
struct Outcome {
    gaps: Vec<String>,
    /// Of the built-in groups, which know many versions of the driver.
    absent: Vec<String>,
}

impl Outcome {
    /// No function of the kernel can be hooked: said once.
    fn refuse(&mut self, why: &str) {
        let said = format!("functions of the kernel are not hooked: {why}");
        if !self.gaps.contains(&said) {
            self.gaps.push(said);
        }
    }

    fn said(mut self) -> Vec<String> {
        if !self.absent.is_empty() {
            self.gaps.push(format!(
                "--kernel: this kernel, with the modules that are loaded, does not have {}",
                self.absent.join(", ")
            ));
        }
        self.gaps
    }
}

impl KernelHooks {
    /// Whether any row names a function of the kernel.
    pub(crate) fn wants(rows: &dyn Rows) -> bool {
        !wanted(rows).is_empty()
    }

    /// Hooks what rows of the kernel name; returns what cannot be, and why.
    pub(crate) fn attach(&mut self, session: &Session, rows: &mut dyn Rows) -> Vec<String> {
        let ids = wanted(rows);
        if ids.is_empty() {
            return Vec::new();
        }
        self.modules = lists::modules();
        let mut look = Look::default();
        let mut outcome = Outcome::default();
        let refused = session.ways().refusal();
        for id in ids {
            let row = &rows.catalog().rows[id.0 as usize];
            if let (SiteKind::KernelFunction, Some(why)) = (row.site, &refused) {
                outcome.refuse(why);
                continue;
            }
            let Some(described) = row.in_kernel.as_ref() else {
                continue;
            };
            let (name, builtin) = (format!("{} {}", row.site.name(), described.target), described.builtin);
            match self.attach_row(session, rows, id, &mut look, &mut outcome) {
                Ok(()) => {}
                Err(error) if builtin && error.is::<Absent>() => outcome.absent.push(name),
                Err(error) => outcome.gaps.push(format!("{name}: {error:#}")),
            }
        }
        outcome.said()
    }

    /// Lets go of functions of modules that have gone and hooks those of modules that have come; `None`: none has.
    pub(crate) fn follow_modules(&mut self, session: &Session, rows: &mut dyn Rows) -> Option<Vec<String>> {
        if wanted(rows).is_empty() {
            return None;
        }
        let now = lists::modules();
        let before = std::mem::replace(&mut self.modules, now);
        if before == self.modules {
            return None;
        }
        let stays = |module: &String| {
            let load = |modules: &[(String, Option<u64>)]| modules.iter().find(|(name, _)| name == module).cloned();
            load(&before) == load(&self.modules)
        };
        let missed = &mut self.missed;
        self.hooked.retain(|(name, _), hooked| {
            let stays = hooked.modules.iter().all(stays);
            if !stays {
                *missed.entry(name.clone()).or_default() += hooked.held.missed();
            }
            stays
        });
        Some(self.attach(session, rows))
    }

    /// Takes everything away.
    pub(crate) fn detach(&mut self) {
        self.missed = self.missed_so_far();
        let hooked = std::mem::take(&mut self.hooked);
        detach(hooked.into_values().map(|hooked| hooked.held).collect());
    }

    /// Calls that were not seen, and why.
    #[must_use]
    pub(crate) fn missed(&self, session: &Session) -> Vec<String> {
        let missed = self.missed_so_far();
        let told = missed.iter().flat_map(|(name, missed)| words(name, *missed));
        told.chain(session.missed_in_kernel()).collect()
    }

    fn missed_so_far(&self) -> BTreeMap<String, Missed> {
        let mut missed = self.missed.clone();
        for ((name, _), hooked) in &self.hooked {
            *missed.entry(name.clone()).or_default() += hooked.held.missed();
        }
        missed
    }

    /// Functions and tracepoints that are hooked now.
    #[must_use]
    pub(crate) fn functions(&self) -> usize {
        self.hooked.len()
    }

    fn is_hooked(&self, target: &str, row: Option<RowId>) -> bool {
        let mut same = self.hooked.keys().filter(|(name, _)| name == target);
        match row {
            Some(row) => same.any(|(_, known)| *known == row.0),
            None => same.next().is_some(),
        }
    }

    fn attach_row(
        &mut self,
        session: &Session,
        rows: &mut dyn Rows,
        id: RowId,
        look: &mut Look,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let row = rows.catalog().rows[id.0 as usize].clone();
        let described = row.in_kernel.as_ref().context("is no row of the kernel")?;
        let found = look.matches(row.site, &described.target)?;
        if found.len() > MOST_MATCHES {
            bail!(
                "{} match, more than {MOST_MATCHES}: write a narrower pattern",
                found.len()
            );
        }
        let named = by_name(&found);
        let single = named.len() == 1;
        for same in &named {
            let Some(target) = same.first() else { continue };
            // a row of its own describes it better than a pattern
            if self.is_hooked(&target.name, (!row.is_glob()).then_some(id)) {
                continue;
            }
            let hooked = self.attach_one(session, rows, (id, described), same, look);
            let name = format!("{} {}", row.site.name(), target.name);
            match hooked {
                Ok(notes) => outcome.gaps.extend(notes.iter().map(|note| format!("{name}: {note}"))),
                Err(error) if single => return Err(error),
                Err(error) => outcome.gaps.push(format!("{name}: {error:#}")),
            }
        }
        Ok(())
    }

    /// Hooks the tracepoint or the functions of one name; says what of it is not shown.
    fn attach_one(
        &mut self,
        session: &Session,
        rows: &mut dyn Rows,
        (asked, described): (RowId, &InKernel),
        same: &[Symbol],
        look: &mut Look,
    ) -> Result<Vec<String>> {
        let target = same.first().context("nothing has that name")?;
        let row = &rows.catalog().rows[asked.0 as usize];
        let (site, library) = (row.site, row.library);
        if site == SiteKind::KernelFunction {
            look.choice(session.ways(), same)?;
        }
        let id = match described.target == target.name {
            true => asked,
            false => rows
                .add(library, &target.name, Some(asked))
                .map_err(|_| anyhow!("not hooked: patterns have added as many as may be"))?
                .context("not hooked: the filter leaves it out")?,
        };
        let mut resolved = look.resolve(site, described, same)?;
        let notes = resolved.as_mut().map(|resolved| std::mem::take(&mut resolved.notes));
        let number = self.publish(session, rows, id, resolved)?;
        let point = KernelPoint {
            row: id.0,
            site: number,
            returns: rows.returns(id),
        };
        let held = match site {
            SiteKind::Tracepoint => Held::links(session.attach_tracepoint(&target.name, point)?),
            _ if same.len() > 1 => Held::links(attach_all(session, same, point)?),
            _ => attach_function(session, target, point, look)?,
        };
        let modules = same.iter().filter_map(|symbol| symbol.module.clone()).collect();
        self.hooked
            .insert((target.name.clone(), asked.0), Hooked { modules, held });
        Ok(notes.unwrap_or_default())
    }

    /// Tells the kernel side where arguments lie; the number of that.
    fn publish(
        &mut self,
        session: &Session,
        rows: &mut dyn Rows,
        id: RowId,
        resolved: Option<Resolved>,
    ) -> Result<u32> {
        let Some(resolved) = resolved else {
            rows.publish(session)?;
            return Ok(0);
        };
        self.sites += 1;
        (session as &dyn Engine).set_kernel_site(self.sites, &resolved.site)?;
        rows.set_args(id, resolved.args);
        rows.publish(session)?;
        Ok(self.sites)
    }
}

/// A call whose entry was not seen is in no count; one whose return was not seen is counted as unfinished.
fn words(name: &str, missed: Missed) -> impl Iterator<Item = String> {
    let Missed { entries, returns } = missed;
    let entries = (entries > 0).then(|| {
        format!(
            "{entries} calls of kernel function {name}, of any process: another thread or an interrupt was within its hook on that CPU"
        )
    });
    let returns = (returns > 0).then(|| {
        format!(
            "up to {returns} returns of kernel function {name}, of any process: another thread or an interrupt was within its hook; \
             calls whose entry was seen are unfinished"
        )
    });
    entries.into_iter().chain(returns)
}

/// Rows of the kernel that the run is about: names before patterns.
fn wanted(rows: &dyn Rows) -> Vec<RowId> {
    let catalog = rows.catalog();
    let all = catalog.rows.iter().enumerate();
    let chosen =
        all.filter(|(_, row)| row.in_kernel.is_some() && (row.is_glob() || rows.filter().selects(catalog, row)));
    let mut ids: Vec<(bool, RowId)> = chosen
        .map(|(index, row)| (row.is_glob(), RowId(index as u32)))
        .collect();
    ids.sort_by_key(|(glob, _)| *glob);
    ids.into_iter().map(|(_, id)| id).collect()
}
