//! Each layout of each branch: what is put into a field is what is shown of it.

use super::{Argument, every_layout, place};
use crate::driver::layout::{Direction, Field, FieldKind};
use crate::driver::value::Value;
use crate::driver::{Branch, Dialect, NvStatus};

/// Bytes that differ from field to field, so that a wrong offset shows; text without a zero.
fn mark(field: &Field) -> Vec<u8> {
    (0..field.width)
        .map(|at| 1 + ((field.offset + at) % 97) as u8)
        .collect()
}

fn shown(field: &Field, branch: Branch) -> Value {
    Value::of(field.kind, &mark(field), branch)
}

#[test]
fn every_field_is_shown_as_it_was_written() {
    for (branch, request, entry, layout) in every_layout() {
        let mut argument = Argument::new(request);
        for field in &layout.fields {
            argument = argument.bytes(place(field).start, &mark(field));
        }
        if let Some(status) = layout.status {
            argument = argument.answer(usize::from(status), 0x1f);
        }
        let ioctl = argument.decode(Dialect::of(branch));
        let expected: Vec<_> = layout
            .fields
            .iter()
            .map(|field| (field.name, shown(field, branch)))
            .collect();
        assert_eq!(ioctl.args, expected, "{} in {branch}", entry.name);
        assert_eq!(
            ioctl.status,
            layout.status.map(|_| NvStatus::of(0x1f, branch)),
            "{} in {branch}",
            entry.name
        );
        assert!(ioctl.name.starts_with(entry.name));
    }
}

#[test]
fn what_a_program_wrote_is_there_without_the_exit() {
    for (branch, request, entry, layout) in every_layout() {
        let mut argument = Argument::new(request);
        for field in &layout.fields {
            argument = argument.bytes(place(field).start, &mark(field));
        }
        let args = argument.decode_with(Dialect::of(branch), true, false).args;
        let asked = layout.fields.iter().filter(|field| field.direction != Direction::Out);
        let expected: Vec<_> = asked.map(|field| (field.name, shown(field, branch))).collect();
        assert_eq!(args, expected, "{} in {branch}", entry.name);
    }
}

#[test]
fn a_class_can_be_told_wherever_there_is_one() {
    let with_class = every_layout().filter(|(.., layout)| layout.fields.iter().any(|f| f.kind == FieldKind::Class));
    for (branch, request, entry, layout) in with_class {
        let at = layout
            .field("hClass")
            .map(place)
            .expect("the class's name is hClass")
            .start;
        let ioctl = Argument::new(request).u32(at, 0x3e).decode(Dialect::of(branch));
        assert_eq!(ioctl.name, format!("{} NV01_MEMORY_SYSTEM", entry.name));
    }
}
