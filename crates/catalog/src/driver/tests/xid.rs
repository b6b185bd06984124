//! Lines of the kernel log.

use crate::driver::xid::{Instance, Reporter, Xid};

fn parse(line: &str) -> Xid {
    Xid::parse(line).unwrap_or_else(|| panic!("no Xid in {line}"))
}

#[test]
fn a_line_names_device_code_and_process() {
    let xid = parse("NVRM: Xid (PCI:0000:17:00): 79, pid=1234, name=python, GPU has fallen off the bus.");
    assert_eq!(
        (xid.reporter, xid.pci.as_str(), xid.code),
        (Reporter::Gpu, "0000:17:00", 79)
    );
    assert_eq!((xid.pid, xid.name.as_deref()), (Some(1234), Some("python")));
    assert_eq!(xid.message, "GPU has fallen off the bus.");
}

#[test]
fn prefixes_of_the_log_do_not_matter() {
    let report = "NVRM: Xid (PCI:0000:01:00): 31, pid=7, name=a.out, Ch 00000008, intr 00000000.";
    for prefix in [
        "",
        "[12345.678901] ",
        "3,2345,987654321,-;",
        "Nov 22 02:46:57 node7 kernel: [  12.3] ",
        "<3>",
    ] {
        assert_eq!(parse(&format!("{prefix}{report}")), parse(report));
    }
}

#[test]
fn old_forms_name_no_process() {
    let oldest = parse("NVRM: Xid (0000:02:00): 13, 0003 00000000 0000a097 00001b0c 1000f010 00000040");
    assert_eq!((oldest.pci.as_str(), oldest.code, oldest.pid), ("0000:02:00", 13, None));
    assert_eq!(oldest.message, "0003 00000000 0000a097 00001b0c 1000f010 00000040");
    let old = parse("NVRM: Xid (PCI:0000:02:00): 31, Ch 00000008, engmask 00000101, intr 10000000");
    assert_eq!(
        (old.code, old.pid, old.message.as_str()),
        (31, None, "Ch 00000008, engmask 00000101, intr 10000000")
    );
}

#[test]
fn a_pid_may_stand_alone_or_be_unknown() {
    let alone = parse("NVRM: Xid (PCI:0000:3b:00): 31, pid=12345, Ch 0000000a, intr 10000000");
    assert_eq!(
        (alone.pid, alone.name, alone.message.as_str()),
        (Some(12345), None, "Ch 0000000a, intr 10000000")
    );
    let unknown = parse("NVRM: Xid (PCI:0000:17:00): 62, pid='<unknown>', name=<unknown>, 2027(2a48) 00000000");
    assert_eq!(
        (unknown.pid, unknown.name, unknown.message.as_str()),
        (None, None, "2027(2a48) 00000000")
    );
}

#[test]
fn a_part_of_a_divided_gpu_is_named() {
    let xid = parse("NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 31, pid=9, name=x, Ch 00000002");
    assert_eq!(
        (xid.pci.as_str(), xid.instance),
        (
            "0000:01:00",
            Some(Instance {
                gpu: 5,
                compute: Some(0)
            })
        )
    );
    let whole = parse("NVRM: Xid (PCI:0000:01:00 GPU-I:0d): 43, pid=9, name=x, Ch 00000002");
    assert_eq!(whole.instance, Some(Instance { gpu: 13, compute: None }));
}

#[test]
fn a_consequence_names_its_cause() {
    let xid = parse("NVRM: Xid (PCI:0000:17:00): 45, pid=5, name=p, Ch 00000010 caused by previous Xid 31");
    assert_eq!((xid.code, xid.caused_by), (45, Some(31)));
    assert_eq!(
        parse("NVRM: Xid (PCI:0000:17:00): 45, pid=5, name=p, Ch 00000010").caused_by,
        None
    );
}

#[test]
fn a_switch_reports_under_numbers_of_its_own() {
    let xid =
        parse("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error");
    assert_eq!(
        (xid.reporter, xid.pci.as_str(), xid.code),
        (Reporter::Switch, "0000:c1:00", 12028)
    );
    assert_eq!(xid.message, "Non-fatal, Link 32 egress non-posted PRIV error");
    assert_eq!(xid.meaning(), None);
}

#[test]
fn a_bare_code_is_a_report() {
    let xid = parse("NVRM: Xid (PCI:0000:17:00): 79");
    assert_eq!((xid.code, xid.message.as_str()), (79, ""));
}

#[test]
fn a_name_that_looks_like_a_report_is_none() {
    let xid = parse("NVRM: Xid (PCI:0000:17:00): 13, pid=1, name=NVRM: Xid (, Graphics Exception");
    assert_eq!((xid.code, xid.name.as_deref()), (13, Some("NVRM: Xid (")));
    assert_eq!(xid.message, "Graphics Exception");
}

#[test]
fn other_lines_are_no_reports() {
    let lines = [
        "",
        "NVRM: GPU at PCI:0000:17:00: GPU-b850f46d-d5ea-c752-ddf3-c53d84bc9c09",
        "NVRM: Xid (PCI:0000:17:00",
        "NVRM: Xid (PCI:0000:17:00): x",
        "NVRM: Xid (PCI:0000:17:00): 99999999999, y",
        "NVRM: Xid (here): 13, y",
        "NVRM: Xid (): 13, y",
        "NVRM: Xid (.0): 13, y",
        "NVRM: Xid (PCI:0000::00): 13, y",
        "some driver: SXid (PCI:0000:c1:00.0): 12028, Fatal",
        "Xid (PCI:0000:17:00): 79, without the driver's name",
    ];
    for line in lines {
        assert_eq!(Xid::parse(line), None, "{line}");
    }
}

#[test]
fn the_tracepoint_tells_the_same_fault() {
    let log = parse("NVRM: Xid (PCI:0000:00:06): 31, Ch 00000008, intr 0");
    assert_eq!(Xid::of_tracepoint("0000:00:06.0", 31, "Ch 00000008, intr 0\n"), log);
}

#[test]
fn a_code_has_meaning_origin_and_action() {
    let xid = parse("NVRM: Xid (PCI:0000:17:00): 31, pid=1, name=x, MMU Fault");
    let meaning = xid.meaning().expect("Xid 31 is in the table");
    assert!(meaning.meaning.contains("page fault"), "{}", meaning.meaning);
    assert!(meaning.origin.starts_with("app"), "{}", meaning.origin);
    assert_eq!(meaning.action_words(), "restart the application");
    assert_eq!(parse("NVRM: Xid (PCI:0000:17:00): 4242, new").meaning(), None);
}

#[test]
fn every_action_has_words() {
    for code in 1..=176 {
        let xid = crate::driver::tables::xid(code).expect("in the table");
        assert_eq!(
            xid.action.is_empty(),
            xid.action_words().is_empty(),
            "{code}: {}",
            xid.action
        );
    }
}

#[test]
fn in_a_record_of_the_kernel_the_report_comes_first() {
    let report = "NVRM: Xid (PCI:0000:17:00): 79, pid=1234, name=python, GPU has fallen off the bus.";
    assert_eq!(Xid::of_record(report), Xid::parse(report));
    let switch = "nvidia-nvswitch12: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32";
    assert_eq!(Xid::of_record(switch), Xid::parse(switch));
    for line in [
        "a.out[12]: segfault at 0 ip 0 sp 0 error 4 in NVRM: Xid (PCI:0000:17:00): 79, x[400000+1000]",
        "NVRM: Xid (0): [12]: segfault at 0 ip 0 sp 0 error 4",
        "nvidia-nvswitch[12]: segfault in SXid (PCI:0000:c1:00.0): 12028, Fatal",
        "usb 1-1: Product: NVRM: Xid (PCI:0000:17:00): 79, pid=1",
        " NVRM: Xid (PCI:0000:17:00): 79, pid=1",
    ] {
        assert_eq!(Xid::of_record(line), None, "{line}");
    }
}
