//! Calls as rows of the catalogue, and what the kernel side is told of each.

use super::dialect;
use crate::catalog::{Catalog, Layer};
use crate::driver::plan::{classes, plans};
use crate::driver::rows::errno_name;
use crate::driver::{Branch, Dialect, DriverRows, reads};
use crate::wire::{ANY_SIZE, DRIVER_SUBJECT, IoctlKey, IoctlPlan, NO_OFFSET, PIECE, STEP_MMAP, UVM_REQUEST};

fn catalog(number: u32) -> (Catalog, DriverRows) {
    let mut catalog = Catalog::builtin().expect("the tables");
    catalog.add_driver(dialect(number)).expect("room");
    let rows = catalog.driver.expect("rows");
    (catalog, rows)
}

fn all(rows: &DriverRows) -> Vec<(IoctlKey, IoctlPlan)> {
    plans(rows, &|_| true)
}

fn plan(rows: &DriverRows, nr: u32, size: u32) -> IoctlPlan {
    let key = IoctlKey { nr, size };
    let found = all(rows).into_iter().rfind(|(found, _)| *found == key);
    found.expect("a plan").1
}

#[test]
fn the_rows_follow_those_of_cuda_and_know_themselves() {
    let (catalog, rows) = catalog(580);
    let known = (0..catalog.rows.len() as u32).filter(|row| rows.contains(*row));
    for row in known {
        let library = catalog.library_with(catalog.rows[row as usize].library);
        let library = library.expect("a library");
        assert_eq!((library.layer, library.name.as_str()), (Layer::Kernel, "kernel"));
    }
    let built_in = Catalog::builtin().expect("the tables").rows.len() as u32;
    assert!(!rows.contains(built_in - 1) && rows.contains(built_in));
    assert!(!rows.contains(catalog.rows.len() as u32));
    assert_eq!(catalog.name_of(rows.of_step(STEP_MMAP), 0), "mmap");
}

#[test]
fn what_a_call_is_about_is_part_of_its_name() {
    let (catalog, rows) = catalog(580);
    let name = |nr, size, subject: u64| {
        let row = plan(&rows, nr, size).row;
        catalog.name_of(row, DRIVER_SUBJECT | subject).into_owned()
    };
    assert_eq!(name(0x2b, 48, 0x40), "RM_ALLOC NV01_MEMORY_LOCAL_USER");
    assert_eq!(name(0x2b, 48, 0), "RM_ALLOC NV01_ROOT");
    assert_eq!(name(0x2b, 48, 0xffff_fff0), "RM_ALLOC 0xfffffff0");
    let schedule = "RM_CONTROL NVA06C_CTRL_CMD_GPFIFO_SCHEDULE";
    assert_eq!(name(0x2a, 32, 0xa06c_0101), schedule);
    let row = plan(&rows, UVM_REQUEST | 34, 0).row;
    assert_eq!(catalog.name_of(row, 0), "UVM_FREE");
    let unknown = |uvm, nr: u64| catalog.name_of(rows.unknown(uvm), DRIVER_SUBJECT | nr).into_owned();
    assert_eq!(unknown(false, 0x5e), "nvidia ioctl 0x5e");
    assert_eq!(unknown(true, 99), "nvidia-uvm ioctl 0x63");
}

#[test]
fn answers_and_refusals_have_names() {
    let (catalog, rows) = catalog(580);
    let row = &catalog.rows[rows.unknown(false) as usize];
    assert_eq!(catalog.error_name(row, 0), Some("NV_OK"));
    assert_eq!(catalog.error_name(row, 0x51), Some("NV_ERR_NO_MEMORY"));
    assert_eq!(catalog.error_name(row, -i64::from(libc::EFAULT)), Some("EFAULT"));
    assert_eq!(errno_name(4242), None);
}

#[test]
fn what_is_copied_fits_and_is_what_the_decoder_asks_for() {
    let dialects = Branch::ALL.map(Dialect::of);
    for dialect in dialects.into_iter().chain([Dialect::unknown()]) {
        let rows = DriverRows::new(7, dialect);
        let plans = all(&rows);
        for (key, plan) in &plans {
            let mut pieces = plan.before.iter().chain(&plan.after);
            assert!(pieces.all(|piece| usize::from(piece.length) <= PIECE), "{key:?}");
        }
        for planned in reads::table(dialect) {
            let nr = planned.nr | if planned.uvm { UVM_REQUEST } else { 0 };
            let length = |plan: &IoctlPlan| plan.after.iter().map(|piece| piece.length).sum::<u16>();
            let wanted = planned.reads.exit.length();
            let found = plans.iter().any(|(key, plan)| key.nr == nr && length(plan) == wanted);
            assert!(found, "{nr:#x} in branch {}", dialect.branch);
        }
    }
}

#[test]
fn a_call_of_an_unknown_size_is_counted_by_its_number() {
    let (_, rows) = catalog(580);
    let (known, other) = (plan(&rows, 0x2a, 32), plan(&rows, 0x2a, ANY_SIZE));
    assert_eq!(known.row, other.row);
    assert_eq!((known.subject, known.status), (8, 28));
    assert_eq!((other.subject, other.status), (NO_OFFSET, NO_OFFSET));
    assert_eq!(other.after.map(|piece| piece.length), [0, 0]);
}

#[test]
fn rows_that_are_not_traced_have_no_plan() {
    let (_, rows) = catalog(580);
    let free = plan(&rows, 0x29, 16).row;
    let left = plans(&rows, &|row| row != free);
    assert!(left.iter().all(|(_, plan)| plan.row != free));
    assert!(left.len() < all(&rows).len());
}

#[test]
fn the_size_of_memory_lies_behind_the_parameters_of_its_class() {
    let vidmem = classes().into_iter().find(|(class, _)| *class == 0x40);
    let vidmem = vidmem.expect("a piece").1;
    assert_eq!((vidmem.offset, vidmem.length), (64, 8));
    let (_, rows) = catalog(580);
    let alloc = plan(&rows, 0x2b, 48);
    assert_eq!((alloc.subject, alloc.pointer), (12, 16));
    assert_eq!(plan(&rows, 0x29, 16).pointer, NO_OFFSET);
}
