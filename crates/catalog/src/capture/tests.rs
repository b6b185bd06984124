use super::*;
use crate::catalog::{Convention, Kind, Loc, Role};

fn planned(symbol: &str, library: &str) -> Plan {
    planned_by(Convention::SystemV, symbol, library)
}

fn planned_by(convention: Convention, symbol: &str, library: &str) -> Plan {
    let catalog = Catalog::builtin_by(convention).unwrap();
    let library = catalog.library(library).unwrap();
    let id = catalog.find(library, symbol, None).unwrap();
    plan(
        &catalog,
        catalog.row(id).unwrap(),
        Use {
            stream: true,
            returns: true,
            memory: true,
            stacks: true,
            kernels: true,
            work: true,
            launch_stacks: false,
            sync_stacks: false,
        },
    )
}

#[test]
fn launches_are_told_apart_by_handle_and_shape() {
    let plain = planned("cuLaunchKernel", "driver").spec;
    assert_eq!(plain.flags & wire::SPEC_KERNEL, wire::SPEC_KERNEL);
    assert_eq!(plain.launch.kernel, wire::Factor { word: 0, bytes: 8 });
    assert_eq!(plain.launch.shape_word, 1);
    let behind = planned("cuLaunchKernelEx", "driver").spec;
    assert_eq!(behind.launch.kernel, wire::Factor { word: 1, bytes: 8 });
    assert_eq!((behind.launch.shape_block, behind.launch.shape_offset), (0, 0));
    let stream = (behind.work.stream.word, behind.work.stream.offset);
    assert_eq!(stream, (wire::WORD_STREAM, wire::READ_DIRECT));
    assert_eq!(plain.work.stream.word, 8);
    assert_eq!((plain.launch.stream.word, plain.launch.stream_in_block), (8, 0));
    assert_eq!(
        (behind.launch.stream.word, behind.launch.stream_in_block),
        (wire::WORD_NONE, 1)
    );
    assert_eq!(planned("cuLaunchKernel_ptsz", "driver").spec.launch.null_stream, 2);
    let legacy = planned("cuLaunchGrid", "driver").spec;
    assert_eq!(
        (legacy.launch.shape_block, legacy.launch.shape_word),
        (wire::WORD_NONE, wire::WORD_NONE)
    );
    assert_eq!(
        planned("cuModuleUnload", "driver").spec.flags & wire::SPEC_UNLOAD,
        wire::SPEC_UNLOAD
    );
    assert_eq!(planned("cudaLaunchKernel", "runtime").spec.flags & wire::SPEC_KERNEL, 0);
}

#[test]
fn a_launch_with_eleven_arguments_takes_its_last_five_from_the_stack() {
    let plan = planned("cuLaunchKernel", "driver");
    assert_eq!(plan.spec.stack_words, 5);
    assert_eq!(plan.fields[6].show, Show::Word { word: 6, bytes: 4 });
    assert_eq!(plan.fields[10].show, Show::Word { word: 10, bytes: 8 });
}

#[test]
fn a_pointer_that_is_not_followed_is_an_address_whatever_it_points_to() {
    let plan = planned("cuLibraryLoadData", "driver");
    let options = plan.fields.iter().find(|field| field.name == "jitOptions").unwrap();
    assert_eq!(
        (options.kind, options.show),
        (Kind::Ptr, Show::Word { word: 2, bytes: 8 })
    );
}

#[test]
fn the_size_of_a_3d_copy_is_read_from_the_structure_behind_its_argument() {
    let plan = planned("cudaMemcpy3D", "runtime");
    assert_eq!(plan.spec.factors, 3);
    assert_eq!(
        plan.spec.value[0],
        wire::Read {
            word: 0,
            bytes: 8,
            offset: 128
        }
    );
    assert_eq!(plan.spec.size, wire::SIZE_LARGE);
}

#[test]
fn a_structure_of_which_the_address_is_passed_is_read_behind_it() {
    let plan = planned_by(Convention::Aapcs64, "cudaMemset3D", "runtime");
    assert_eq!(plan.spec.factors, 3);
    let extent = |offset| wire::Read {
        word: 2,
        bytes: 8,
        offset,
    };
    assert_eq!(plan.spec.value[..3], [extent(0), extent(8), extent(16)]);
}

#[test]
fn every_row_fits_the_capture_limits() {
    every_row_fits(&Catalog::builtin().unwrap());
    every_row_fits(&Catalog::builtin_by(Convention::Aapcs64).unwrap());
}

fn every_row_fits(catalog: &Catalog) {
    for row in &catalog.rows {
        let plan = plan(
            catalog,
            row,
            Use {
                stream: true,
                returns: !row.raw,
                memory: true,
                stacks: true,
                kernels: true,
                work: true,
                launch_stacks: false,
                sync_stacks: false,
            },
        );
        assert!(usize::from(plan.spec.stack_words) <= wire::STACK, "{}", row.symbol);
        let unreadable = plan
            .fields
            .iter()
            .filter(|field| field.show == Show::Unreadable)
            .count();
        let floats = row
            .args
            .iter()
            .filter(|arg| matches!(arg.loc, Loc::Float { .. }))
            .count();
        let known = row.symbol.starts_with("cudaEGLStreamProducerPresentFrame");
        assert!(
            unreadable == floats || known,
            "{}: {unreadable} unreadable arguments",
            row.symbol
        );
        if let Some(launch) = &row.launch {
            assert_ne!(plan.spec.launch.role, wire::ROLE_NONE, "{}", row.symbol);
            let counts = launch.role == Role::Launch;
            assert_eq!(plan.spec.flags & wire::SPEC_KERNEL != 0, counts, "{}", row.symbol);
            assert!(
                plan.spec.values <= 1 || !matches!(launch.role, Role::Launch | Role::Stub),
                "{}: value 1 is the kernel's",
                row.symbol
            );
        }
        let parts = row.memory.as_ref().map_or(0, |effect| effect.parts.len());
        assert_eq!(usize::from(plan.spec.parts), parts, "{}", row.symbol);
        assert_eq!(
            row.bytes.is_some(),
            plan.spec.scale != 0,
            "{}: its size is not computed",
            row.symbol
        );
    }
}
