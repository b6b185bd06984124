//! Single calls, byte by byte.

use super::{Argument, dialect};
use crate::driver::tables::ClassKind;
use crate::driver::{Act, Branch, Device, Dialect, Ioctl, NvStatus, Request, Seen, Value, decode};

const MIB: u64 = 1 << 20;

fn arg<'a>(ioctl: &'a Ioctl, name: &str) -> Option<&'a Value> {
    ioctl.args.iter().find(|arg| arg.0 == name).map(|arg| &arg.1)
}

fn alloc(class: u32) -> Argument {
    let argument = Argument::front(Device::Control, 0x2b, 48);
    argument
        .u32(0, 0xc1d0_0001)
        .u32(4, 0x5c00_0002)
        .u32(12, class)
        .u64(16, 0x7fff_0000)
        .answer(8, 0x5c00_0010)
}

#[test]
fn an_object_is_named_by_its_class() {
    let ioctl = alloc(0xcbc0).decode(dialect(580));
    assert_eq!(ioctl.name, "RM_ALLOC HOPPER_COMPUTE_A");
    assert_eq!(
        arg(&ioctl, "hObjectNew"),
        Some(&Value::Handle(0x5c00_0010)),
        "as the driver chose it"
    );
    assert_eq!(
        arg(&ioctl, "pAllocParms").map(ToString::to_string).as_deref(),
        Some("0x7fff0000")
    );
    assert_eq!(ioctl.status.and_then(|status| status.name), Some("NV_OK"));
    assert!(!ioctl.failed() && ioctl.notes.is_empty());
}

#[test]
fn memory_is_as_large_as_the_driver_took_it() {
    let ioctl = alloc(0x40).behind(&(64 * MIB).to_le_bytes()).decode(dialect(580));
    assert_eq!(
        (ioctl.name.as_str(), ioctl.size),
        ("RM_ALLOC NV01_MEMORY_LOCAL_USER", Some(64 * MIB))
    );
    let expected = Act::Create {
        client: 0xc1d0_0001,
        parent: 0x5c00_0002,
        object: 0x5c00_0010,
        class: 0x40,
        kind: ClassKind::Vidmem,
        bytes: Some(64 * MIB),
    };
    assert_eq!(ioctl.act, expected);
}

#[test]
fn memory_whose_parameters_cannot_be_read_has_no_size() {
    let ioctl = alloc(0x40).behind(&[1, 2, 3]).decode(dialect(580));
    assert_eq!(ioctl.size, None);
    assert!(matches!(ioctl.act, Act::Create { bytes: None, .. }));
}

#[test]
fn a_channel_names_its_engine() {
    let ioctl = alloc(0xc86f).behind(&10u32.to_le_bytes()).decode(dialect(570));
    assert_eq!(
        arg(&ioctl, "engineType").map(ToString::to_string).as_deref(),
        Some("COPY1")
    );
    let ioctl = alloc(0xa06c).behind(&1u32.to_le_bytes()).decode(dialect(570));
    assert_eq!(
        arg(&ioctl, "engineType").map(ToString::to_string).as_deref(),
        Some("GR0")
    );
}

#[test]
fn the_older_struct_of_an_allocation_is_told_by_its_size() {
    let argument = Argument::front(Device::Control, 0x2b, 32)
        .u32(12, 0x41)
        .answer(28, 0x51);
    let ioctl = argument.decode(dialect(550));
    assert_eq!(ioctl.name, "RM_ALLOC NV01_ROOT_CLIENT");
    assert_eq!(
        ioctl.status.map(|status| status.to_string()).as_deref(),
        Some("NV_ERR_NO_MEMORY")
    );
    assert!(ioctl.failed());
}

#[test]
fn a_client_is_its_own_root() {
    let ioctl = Argument::front(Device::Control, 0x2b, 48)
        .u32(12, 0x41)
        .answer(8, 0xc1d0_0007)
        .decode(dialect(580));
    assert!(matches!(
        ioctl.act,
        Act::Create {
            client: 0xc1d0_0007,
            object: 0xc1d0_0007,
            kind: ClassKind::Client,
            ..
        }
    ));
}

#[test]
fn a_method_is_named() {
    let ioctl = Argument::front(Device::Control, 0x2a, 32)
        .u32(8, 0xa06c_0101)
        .decode(dialect(580));
    assert_eq!(ioctl.name, "RM_CONTROL NVA06C_CTRL_CMD_GPFIFO_SCHEDULE");
}

#[test]
fn a_number_that_was_used_again_is_named_as_in_the_branch() {
    let named = |branch| {
        Argument::front(Device::Control, 0x2a, 32)
            .u32(8, 0x2080_1361)
            .decode(dialect(branch))
            .name
    };
    assert_eq!(named(580), "RM_CONTROL NV2080_CTRL_CMD_FB_GET_CPU_COHERENT_RANGE");
    assert_eq!(named(590), "RM_CONTROL NV2080_CTRL_CMD_FB_GET_REMAPPED_BANKS");
}

#[test]
fn a_method_of_other_branches_says_so() {
    let ioctl = Argument::front(Device::Control, 0x2a, 32)
        .u32(8, 0x2080_1361)
        .decode(dialect(535));
    assert_eq!(ioctl.notes, ["0x20801361 has this name in branches 580 to 580"]);
}

#[test]
fn unknown_classes_and_methods_are_numbers() {
    let ioctl = alloc(0xdead).decode(dialect(580));
    assert_eq!(
        (ioctl.name.as_str(), ioctl.notes.as_slice()),
        ("RM_ALLOC 0xdead", &["class 0xdead is in no table".to_owned()][..])
    );
    let ioctl = Argument::front(Device::Control, 0x2a, 32)
        .u32(8, 0x2080_8159)
        .decode(dialect(580));
    assert_eq!(ioctl.name, "RM_CONTROL 0x20808159");
    assert_eq!(
        ioctl.notes,
        ["method 0x20808159 is undocumented: forwarded to the GPU's firmware"]
    );
}

#[test]
fn an_argument_of_another_size_is_not_decoded() {
    let ioctl = Argument::front(Device::Control, 0x2b, 40)
        .u32(12, 0x40)
        .decode(dialect(580));
    assert_eq!(
        (ioctl.name.as_str(), ioctl.args.len(), ioctl.status),
        ("RM_ALLOC", 0, None)
    );
    assert_eq!(
        ioctl.notes,
        ["RM_ALLOC takes 48 or 32 bytes in branch 580, this call says 40: not decoded"]
    );
}

#[test]
fn a_driver_without_tables_is_decoded_by_the_size_of_its_arguments() {
    let newer = Dialect {
        branch: Branch::R595,
        certain: false,
    };
    let argument = Argument::front(Device::Control, 0x57, 56).u64(40, 0x1000).u64(24, MIB);
    let ioctl = argument.decode(newer);
    assert_eq!(arg(&ioctl, "dmaOffset"), Some(&Value::Address(0x1000)));
    assert_eq!(ioctl.notes, ["decoded as in branch 570, whose argument has this size"]);
    assert_eq!(
        argument.decode(dialect(595)).args,
        [],
        "a driver that is known has no such call"
    );
}

#[test]
fn fields_lie_where_the_branch_has_them() {
    let status = |nr, offset, branch| Argument::uvm(nr).answer(offset, 0x1f).decode(dialect(branch)).status;
    let invalid = Some(NvStatus {
        code: 0x1f,
        name: Some("NV_ERR_INVALID_ARGUMENT"),
    });
    assert_eq!(status(0x21, 1196, 535), invalid);
    assert_eq!(status(0x21, 9260, 550), invalid);
    assert_eq!(status(0x22, 16, 580), invalid);
    assert_eq!(status(0x22, 8, 590), invalid);
    assert_eq!(status(0x1c, 24, 580), invalid);
    assert_eq!(status(0x1c, 8, 595), invalid);
    assert_eq!(status(0x2a, 32, 535), invalid);
    assert_eq!(status(0x2a, 36, 550), invalid);
}

#[test]
fn a_mapping_tells_range_and_memory() {
    let argument = Argument::uvm(0x21)
        .u64(0, 0x7f00_0000_0000)
        .u64(8, 2 * MIB)
        .u32(9252, 0xc1d0_0001)
        .u32(9256, 7);
    let ioctl = argument.decode(dialect(580));
    assert_eq!(
        (ioctl.name.as_str(), ioctl.size),
        ("UVM_MAP_EXTERNAL_ALLOCATION", Some(2 * MIB))
    );
    assert_eq!(arg(&ioctl, "hMemory"), Some(&Value::Handle(7)));
    assert_eq!(
        ioctl.act,
        Act::MapRange {
            base: 0x7f00_0000_0000,
            bytes: 2 * MIB
        }
    );
}

#[test]
fn pinned_memory_is_as_large_as_its_limit_says() {
    let argument = Argument::front(Device::Gpu(0), 0x27, 56)
        .u32(12, 0x71)
        .u64(24, 0x7f00_0000)
        .u64(32, MIB - 1);
    let ioctl = argument.decode(dialect(580));
    assert_eq!(ioctl.name, "RM_ALLOC_MEMORY NV01_MEMORY_SYSTEM_OS_DESCRIPTOR");
    assert_eq!(ioctl.size, Some(MIB));
    assert!(matches!(
        ioctl.act,
        Act::Create {
            kind: ClassKind::Sysmem,
            bytes: Some(MIB),
            ..
        }
    ));
}

#[test]
fn what_could_not_be_read_at_enter_is_read_at_exit() {
    let argument = alloc(0x40).behind(&MIB.to_le_bytes());
    assert_eq!(
        argument.decode_with(dialect(580), false, true),
        argument.decode(dialect(580))
    );
    let enter_only = argument.decode_with(dialect(580), true, false);
    assert_eq!(enter_only.name, "RM_ALLOC NV01_MEMORY_LOCAL_USER");
    assert_eq!(enter_only.status, None);
    let nothing = argument.decode_with(dialect(580), false, false);
    assert_eq!((nothing.name.as_str(), nothing.act), ("RM_ALLOC", Act::Nothing));
    assert_eq!(nothing.notes, ["its argument could not be read"]);
}

#[test]
fn a_refused_call_has_no_answer_of_the_driver() {
    let ioctl = alloc(0x40).answer(40, 0x1f).result(-14).decode(dialect(580));
    assert_eq!((ioctl.status, ioctl.failed()), (None, true));
    assert_eq!(
        arg(&ioctl, "hObjectNew"),
        Some(&Value::Handle(0)),
        "as the program passed it"
    );
}

#[test]
fn a_warning_is_no_failure() {
    let ioctl = alloc(0x40).answer(40, 0x10006).decode(dialect(580));
    assert_eq!(
        ioctl.status.and_then(|status| status.name),
        Some("NV_WARN_NOTHING_TO_DO")
    );
    assert!(!ioctl.failed());
}

#[test]
fn an_answer_that_was_used_again_is_named_as_in_the_branch() {
    let named = |branch| {
        alloc(0x40)
            .answer(40, 0x8b)
            .decode(dialect(branch))
            .status
            .and_then(|status| status.name)
    };
    assert_eq!(
        (named(580), named(595)),
        (Some("NV_ERR_DMA_XFER_FAILED"), Some("NV_ERR_OPERATION_ABORTED"))
    );
}

#[test]
fn an_array_is_as_long_as_the_request_says() {
    let cards = Argument::front(Device::Control, 0xc8, 0x900).decode(dialect(580));
    assert_eq!((cards.name.as_str(), cards.notes.len()), ("CARD_INFO", 0));
    let odd = Argument::front(Device::Control, 0xc8, 0x901).decode(dialect(580));
    assert_eq!(
        odd.notes,
        ["CARD_INFO takes a multiple of 72 bytes in branch 580, this call says 2305: not decoded"]
    );
}

#[test]
fn unknown_numbers_and_devices_keep_their_numbers() {
    let name = |device, word| {
        let seen = Seen {
            request: Request::new(device, word),
            enter: &[],
            exit: &[],
            behind: &[],
            result: -22,
        };
        let ioctl = decode(&seen, dialect(580));
        (ioctl.name, ioctl.notes.concat())
    };
    let (unknown, why) = name(Device::Gpu(3), 0xc010_4663);
    assert_eq!(
        (unknown.as_str(), why.as_str()),
        (
            "nvidia ioctl 0x63",
            "number 0x63 of nvidia3 is in no table: request 0xc0104663, 16 bytes"
        )
    );
    assert_eq!(name(Device::Uvm, 200).0, "nvidia-uvm ioctl 0xc8");
    let (modeset, why) = name(Device::Modeset, 0xc010_6d00);
    assert_eq!(
        (modeset.as_str(), why.as_str()),
        ("nvidia-modeset ioctl 0x0", "ioctls of nvidia-modeset are not decoded")
    );
}

#[test]
fn a_dead_number_and_one_of_a_later_branch_say_so() {
    assert_eq!(
        Argument::uvm(1).decode(dialect(580)).notes,
        ["UVM_RESERVE_VA is in NVIDIA's headers, but no driver serves it"]
    );
    let discard = Argument::uvm(80).decode(dialect(535));
    assert_eq!(
        discard.notes,
        ["UVM_DISCARD is known in branches 580 to 595, the driver is of 535: not decoded"]
    );
}

#[test]
fn text_and_uuids_are_shown_as_nvidia_writes_them() {
    let version = Argument::front(Device::Control, 0xd2, 72)
        .bytes(8, b"580.159.04\0rest")
        .decode(dialect(580));
    assert_eq!(
        arg(&version, "versionString"),
        Some(&Value::Text("580.159.04".to_owned()))
    );
    let uuid: Vec<u8> = (0..16).collect();
    let gpu = Argument::uvm(25).bytes(0, &uuid).decode(dialect(580));
    let shown = arg(&gpu, "gpuUuid").map(ToString::to_string);
    assert_eq!(shown.as_deref(), Some("GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"));
}
