//! Static probes of a file: which of them the catalogue describes, and the numbers under which the kernel side knows
//! where their arguments lie.

use super::found::Found;
use crate::catalog::{Catalog, LibraryId, Loc, Row, RowId, SiteKind};
use crate::elf::{Cost as Place, ElfError, ElfFile, Location, Operand, Semaphore, StaticProbe};
use crate::engine::{Engine, Point};
use crate::wire;
use anyhow::{Context, Result, bail};

/// The places given to the kernel side so far; a probe's number is its index plus 1.
#[derive(Default)]
pub(super) struct Sites(Vec<wire::ProbeSite>);

impl Sites {
    /// Where to probe, with `row` told where its arguments lie.
    ///
    /// # Errors
    /// The place takes no probe, its arguments are not those of the row, or there are too many.
    pub(super) fn point(
        &mut self,
        engine: &dyn Engine,
        file: &ElfFile,
        probe: &StaticProbe,
        row: (RowId, &Row),
    ) -> Result<Point> {
        let offset = probe.site(file)?;
        let site = self.number(engine, site_of(probe, row.1)?)?;
        let semaphore = match probe.semaphore {
            Semaphore::At(offset) => offset,
            Semaphore::None | Semaphore::Outside => 0,
        };
        Ok(Point {
            offset,
            row: row.0.0,
            returns: false,
            site,
            semaphore,
            place: Place::Emulated,
        })
    }

    /// Where to probe inside a function.
    ///
    /// # Errors
    /// There are too many different places.
    pub(super) fn inner(&mut self, engine: &dyn Engine, offset: u64, row: RowId) -> Result<Point> {
        Ok(Point {
            site: self.number(engine, super::place::registers())?,
            ..Point::entry(offset, row.0, false)
        })
    }

    fn number(&mut self, engine: &dyn Engine, site: wire::ProbeSite) -> Result<u32> {
        let known = self.0.iter().position(|known| *known == site);
        let index = known.unwrap_or(self.0.len());
        if index >= wire::PROBE_SITES {
            bail!("not probed: the arguments of static probes lie in too many different places");
        }
        let number = index as u32 + 1;
        if known.is_none() {
            engine.set_site(number, &site)?;
            self.0.push(site);
        }
        Ok(number)
    }
}

/// The static probes of `elf` that rows of `library` describe.
pub(super) fn static_probes_of(catalog: &Catalog, elf: &ElfFile, library: LibraryId) -> Result<Vec<Found>, ElfError> {
    // notes are looked at only where they can matter
    if !catalog
        .rows
        .iter()
        .any(|row| row.site == SiteKind::StaticProbe && row.library == library)
    {
        return Ok(Vec::new());
    }
    let major = elf.soname_major();
    let probes = elf.static_probes(&|name| catalog.find_probe(library, name, major).is_some())?;
    let found = probes.into_iter().map(|probe| Found {
        name: probe.name.clone(),
        offset: probe.offset.unwrap_or_default(),
        probe: Some(probe),
        is_place: false,
    });
    Ok(found.collect())
}

/// Where the arguments that `row` names lie at one place of a static probe.
///
/// # Errors
/// The probe has fewer arguments, or one is wider, or lies where it cannot be read from outside.
pub fn site_of(probe: &StaticProbe, row: &Row) -> Result<wire::ProbeSite> {
    let (has, wants) = (probe.args.len(), row.args.len());
    if has < wants {
        bail!("not probed: it has {has} of the {wants} arguments that its row names");
    }
    let mut site = wire::ProbeSite {
        places: wants as u32,
        ..wire::ProbeSite::default()
    };
    for (index, (place, arg)) in site.place.iter_mut().zip(&row.args).enumerate() {
        let operand = probe.operand(index).with_context(|| {
            let text = probe.args.get(index).map(String::as_str).unwrap_or_default();
            format!(
                "not probed: argument `{}` lies at {text}, which cannot be read from outside",
                arg.name
            )
        })?;
        let declared = match arg.loc {
            Loc::Reg { bytes, .. } => u16::from(bytes),
            Loc::Stack { bytes, .. } => bytes,
            Loc::Regs { .. } | Loc::Float { .. } => 0,
        };
        if u16::from(operand.bytes) > declared {
            bail!(
                "not probed: argument `{}` has {} bytes there, its row says {declared}",
                arg.name,
                operand.bytes
            );
        }
        *place = place_of(operand);
    }
    Ok(site)
}

fn place_of(operand: Operand) -> wire::Place {
    let mut place = wire::Place {
        kind: wire::PLACE_VALUE,
        base: wire::WORD_NONE,
        index: wire::WORD_NONE,
        bytes: operand.bytes,
        is_signed: operand.signed.into(),
        ..wire::Place::default()
    };
    match operand.location {
        Location::Constant(value) => place.offset = value.cast_unsigned(),
        Location::Register(register) => place.base = register,
        Location::Memory {
            base,
            index,
            displacement,
        } => {
            place.kind = wire::PLACE_MEMORY;
            place.offset = displacement.cast_unsigned();
            place.base = base.unwrap_or(wire::WORD_NONE);
            (place.index, place.scale) = index.unwrap_or((wire::WORD_NONE, 0));
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = "[[library]]\nname = \"mine\"\nmatch = \"m.so\"\n[[function]]\nlibrary = \"mine\"\n\
        probe = \"mine:handed_out\"\nargs = [\"address: devptr\", \"count: i32\"]\n";

    fn placed(args: &[&str]) -> Result<wire::ProbeSite> {
        let mut catalog = Catalog::default();
        catalog.add_hooks("hooks.toml", ROW).unwrap();
        let probe = StaticProbe {
            name: "mine:handed_out".to_owned(),
            offset: None,
            semaphore: Semaphore::None,
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        };
        site_of(&probe, &catalog.rows[0])
    }

    #[test]
    fn a_row_takes_its_arguments_from_the_first_of_the_note() {
        let site = placed(&["-8@%r14", "4@-8(%rbp,%rax,4)", "8@symbol(%rip)"]).unwrap();
        assert_eq!(site.places, 2);
        let [first, second, third, ..] = site.place;
        assert_eq!((first.kind, first.base, first.is_signed), (wire::PLACE_VALUE, 14, 1));
        assert_eq!((second.kind, second.base, second.index), (wire::PLACE_MEMORY, 5, 0));
        assert_eq!((second.scale, second.bytes, second.offset), (2, 4, u64::MAX - 7));
        assert_eq!(third, wire::Place::default());
    }

    #[test]
    fn what_the_row_wants_and_the_probe_lacks_is_a_reason() {
        let few = placed(&["8@%rax"]).unwrap_err().to_string();
        assert!(few.contains("1 of the 2 arguments"), "{few}");
        let odd = placed(&["8@%rax", "8@symbol(%rip)"]).unwrap_err().to_string();
        let wide = placed(&["8@%rax", "8@%rax"]).unwrap_err().to_string();
        assert!(wide.contains("`count` has 8 bytes there, its row says 4"), "{wide}");
        assert!(odd.contains("argument `count` lies at 8@symbol(%rip)"), "{odd}");
    }
}
