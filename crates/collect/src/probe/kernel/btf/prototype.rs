//! The arguments of a function, and the way from one of them to a field.

use super::{Btf, ENUM, ENUM64, INT, PTR, STRUCT, UNION};
use crate::probe::kernel::place::{Names, Placed};
use crate::wire::{self, KernelPlace};

/// A function's arguments.
pub struct Prototype<'b> {
    pub(super) btf: &'b Btf<'b>,
    /// Name and type.
    pub(super) args: Vec<(String, u32)>,
}

impl Names for Prototype<'_> {
    fn place(&self, path: &[String]) -> Result<Placed, String> {
        let (first, fields) = path.split_first().ok_or("no argument is named")?;
        let found = self.args.iter().position(|(name, _)| name == first);
        let known = || {
            let names: Vec<&str> = self.args.iter().map(|(name, _)| name.as_str()).collect();
            format!("no argument {first}; it has {}", names.join(", "))
        };
        let index = found.ok_or_else(known)?;
        let in_registers = self.args[..=index].iter().all(|(_, kind)| self.is_word(*kind));
        if index >= wire::REGS || !in_registers {
            return Err(format!("argument {first} does not come in a register"));
        }
        let mut walk = Walk {
            btf: self.btf,
            offsets: Vec::new(),
            bit_field: None,
            kind: self.args[index].1,
        };
        for field in fields {
            walk.step(field)?;
        }
        walk.placed(index as u8, path.last().map_or("", String::as_str))
    }

    fn all(&self) -> Vec<String> {
        let named = self.args.iter().map(|(name, _)| name).filter(|name| !name.is_empty());
        let placed = named.filter(|name| self.place(&[(*name).clone()]).is_ok());
        placed.cloned().collect()
    }
}

impl Prototype<'_> {
    /// Whether an argument of that type takes one register.
    fn is_word(&self, kind: u32) -> bool {
        self.btf.bare(kind).is_some_and(|(found, _)| match found.kind {
            PTR | ENUM | ENUM64 => true,
            INT | STRUCT | UNION => found.size_or_type <= 8,
            _ => false,
        })
    }
}

/// The way from an argument to a field.
struct Walk<'b> {
    btf: &'b Btf<'b>,
    /// Behind each pointer that is followed.
    offsets: Vec<u32>,
    /// First bit in its byte, and width.
    bit_field: Option<(u32, u32)>,
    kind: u32,
}

impl Walk<'_> {
    fn step(&mut self, field: &str) -> Result<(), String> {
        let missing = || format!("nothing is called {field} there");
        let (here, owner) = self.btf.bare(self.kind).ok_or_else(missing)?;
        let (structure, behind_pointer) = match here.kind {
            PTR => (self.btf.bare(here.size_or_type).ok_or_else(missing)?, true),
            _ => ((here, owner), false),
        };
        let (bits, width, kind) = self.btf.member(structure, field, 0).ok_or_else(missing)?;
        if behind_pointer {
            self.offsets.push(0);
        }
        let offset = self
            .offsets
            .last_mut()
            .ok_or_else(|| format!("{field} lies in an argument that is no pointer"))?;
        *offset = offset.checked_add(bits / 8).ok_or_else(missing)?;
        self.bit_field = (width > 0).then_some((bits % 8, width));
        self.kind = kind;
        Ok(())
    }

    fn placed(&self, base: u8, name: &str) -> Result<Placed, String> {
        let no_value = || format!("{name} is no number, address or text; name a field of it");
        let value = self.btf.value(self.kind).ok_or_else(no_value)?;
        let mut offset = [0; wire::KERNEL_STEPS];
        let room = offset.get_mut(..self.offsets.len());
        room.ok_or("too many pointers are followed")?
            .copy_from_slice(&self.offsets);
        let in_memory = !self.offsets.is_empty();
        if value.is_array && !in_memory {
            return Err(no_value());
        }
        let (shift, width) = self.bit_field.unwrap_or((0, 64));
        let bit_bytes = u8::try_from((shift + width).div_ceil(8)).unwrap_or(8);
        let bits = self.bit_field.is_some();
        Ok(Placed {
            place: KernelPlace {
                base,
                bytes: if bits { bit_bytes.min(8) } else { value.bytes },
                steps: self.offsets.len() as u8,
                flags: u8::from(value.signed && !bits) * wire::KERNEL_SIGNED
                    + u8::from(value.is_array) * wire::KERNEL_ADDRESS,
                shift,
                mask: u64::MAX >> 64u32.saturating_sub(width).min(63),
                offset,
            },
            kind: value.kind,
        })
    }
}
