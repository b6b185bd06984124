//! The tables agree with themselves.

use std::collections::HashSet;

use crate::driver::Branch;
use crate::driver::layout::{FieldKind, Role, Size};
use crate::driver::tables::{class, classes, control, controls, escape, escapes, status, uvm, uvm_calls, xid};

/// Lines of a table that say something.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

#[test]
fn every_line_is_read() {
    let layouts = |entries: &[crate::driver::tables::Entry]| entries.iter().map(|entry| entry.layouts.len()).sum();
    let read: [(&str, usize); 4] = [
        (include_str!("../../../catalog/nvidia/escapes.txt"), layouts(escapes())),
        (include_str!("../../../catalog/nvidia/uvm.txt"), layouts(uvm_calls())),
        (include_str!("../../../catalog/nvidia/classes.txt"), classes().len()),
        (include_str!("../../../catalog/nvidia/controls.txt"), controls().len()),
    ];
    for (text, read) in read {
        assert_eq!(lines(text).count(), read, "{}", text.lines().next().unwrap_or_default());
    }
    for line in lines(include_str!("../../../catalog/nvidia/status.txt")) {
        let mut columns = line.split(' ');
        let code = columns
            .next()
            .and_then(|code| u32::from_str_radix(code, 16).ok())
            .expect("a number");
        let name = columns.next();
        assert!(
            name.is_some() && Branch::ALL.iter().any(|branch| status(code, *branch) == name),
            "{line}"
        );
    }
    let codes = lines(include_str!("../../../catalog/nvidia/xid.txt")).map(|line| line.split('|').next());
    let codes: Vec<u32> = codes
        .map(|code| code.and_then(|code| code.parse().ok()).expect("a number"))
        .collect();
    assert_eq!(codes, (1..=176).collect::<Vec<_>>());
    assert!(
        codes
            .iter()
            .all(|code| xid(*code).is_some_and(|xid| xid.code == *code && !xid.name.is_empty()))
    );
}

#[test]
fn no_number_and_no_name_stands_twice() {
    for entries in [escapes(), uvm_calls()] {
        assert!(entries.windows(2).all(|pair| pair[0].nr < pair[1].nr));
        assert_eq!(
            entries.iter().map(|entry| entry.name).collect::<HashSet<_>>().len(),
            entries.len()
        );
    }
    assert!(classes().windows(2).all(|pair| pair[0].number < pair[1].number));
    assert_eq!(
        classes().iter().map(|class| class.name).collect::<HashSet<_>>().len(),
        classes().len()
    );
}

#[test]
fn layouts_of_one_branch_differ_in_size() {
    for entry in escapes().iter().chain(uvm_calls()) {
        for branch in Branch::ALL {
            let sizes: Vec<Size> = entry
                .layouts
                .iter()
                .filter(|l| l.is_of(branch))
                .map(|l| l.size)
                .collect();
            let differ = sizes.iter().enumerate().all(|(at, size)| !sizes[..at].contains(size));
            assert!(differ, "{} in {branch}: {sizes:?}", entry.name);
        }
    }
}

#[test]
fn fields_do_not_overlap_and_lie_inside() {
    for entry in escapes().iter().chain(uvm_calls()) {
        for layout in &entry.layouts {
            let ends = layout.fields.iter().map(|field| field.offset + field.width);
            let starts = layout.fields.iter().skip(1).map(|field| field.offset);
            assert!(
                ends.clone().zip(starts).all(|(end, start)| end <= start),
                "{}",
                entry.name
            );
            let (Size::Bytes(size) | Size::Times(size)) = layout.size else {
                continue;
            };
            let last = ends
                .chain(layout.status.map(|offset| offset + 4))
                .max()
                .unwrap_or_default();
            assert!(
                u32::from(last) <= size,
                "{} is {size} bytes, has fields up to {last}",
                entry.name
            );
        }
    }
}

#[test]
fn a_role_has_the_fields_that_it_needs() {
    let needed = |role| match role {
        Role::Alloc => &["hRoot", "hObjectParent", "hObjectNew", "hClass"][..],
        Role::Free => &["hRoot", "hObjectOld"],
        Role::Control => &["hClient", "hObject", "cmd"],
        Role::Duplicate => &["hClient", "hParent", "hObject", "hClientSrc", "hObjectSrc"],
        Role::MapCpu => &["hClient", "hMemory", "length"],
        Role::UnmapCpu => &["hClient", "hMemory"],
        Role::MapGpu => &["hClient", "hDma", "dmaOffset", "length"],
        Role::UnmapGpu => &["hClient", "hDma", "dmaOffset"],
        Role::EventOpen | Role::EventClose => &["hClient", "fd"],
        Role::Wrapper => &["cmd", "size", "ptr"],
        Role::RangeOpen | Role::RangeMap => &["base", "length"],
        Role::RangeClose => &["base"],
        Role::SpaceOpen | Role::SpaceClose => &["gpuUuid"],
        Role::Dead | Role::Other => &[],
    };
    for entry in escapes().iter().chain(uvm_calls()) {
        for field in needed(entry.role) {
            let has = entry.layouts.iter().all(|layout| layout.field(field).is_some());
            assert!(has, "{} has no {field}", entry.name);
        }
    }
}

#[test]
fn a_method_has_one_name_in_a_branch() {
    // carries two names in the headers of the same branches
    let twice: HashSet<u32> = [0x2080_132a].into();
    for pair in controls().windows(2).filter(|pair| pair[0].number == pair[1].number) {
        let apart = pair[0].last < pair[1].first || pair[1].last < pair[0].first;
        assert!(apart || twice.contains(&pair[0].number), "{:#x}", pair[0].number);
    }
}

#[test]
fn known_numbers_have_their_canonical_names() {
    let class_name = |number| class(number).map(|class| class.name);
    assert_eq!(class_name(0x3e), Some("NV01_MEMORY_SYSTEM"));
    assert_eq!(class_name(0x41), Some("NV01_ROOT_CLIENT"));
    assert_eq!(class_name(0xa06c), Some("KEPLER_CHANNEL_GROUP_A"));
    assert_eq!(class_name(0x79), Some("NV01_EVENT_OS_EVENT"));
    assert_eq!(escape(0x2b).map(|entry| entry.name), Some("RM_ALLOC"));
    assert_eq!(uvm(0x3000_0001).map(|entry| entry.name), Some("UVM_INITIALIZE"));
    assert_eq!(
        (status(0, Branch::R580), status(0x51, Branch::R580)),
        (Some("NV_OK"), Some("NV_ERR_NO_MEMORY"))
    );
    assert_eq!(
        control(0xa06c_0101, Branch::R580).map(|c| c.name),
        Some("NVA06C_CTRL_CMD_GPFIFO_SCHEDULE")
    );
    assert_eq!(
        (
            escape(0x63),
            uvm(0x9999),
            class(0xdead),
            status(0xdead, Branch::R580),
            xid(0)
        ),
        (None, None, None, None, None)
    );
}

#[test]
fn an_alias_is_no_name() {
    let names: HashSet<&str> = classes().iter().map(|class| class.name).collect();
    for alias in [
        "NV1_ROOT",
        "NV01_CONTEXT_ERROR_TO_MEMORY",
        "NV04_MEMORY",
        "NV01_EVENT_WIN32_EVENT",
    ] {
        assert!(!names.contains(alias), "{alias}");
    }
}

#[test]
fn a_class_that_takes_memory_by_its_parameters_says_where() {
    for class in classes().iter().filter(|class| class.kind.takes_memory()) {
        let counts = class.behind.is_none_or(|field| field.kind == FieldKind::Bytes);
        assert!(counts, "{}", class.name);
    }
}
