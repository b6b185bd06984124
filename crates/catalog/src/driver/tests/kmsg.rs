//! Records of the kernel's log.

use crate::driver::kmsg::Record;
use proptest::prelude::*;

fn parse(line: &str) -> Record {
    Record::parse(line.as_bytes()).unwrap_or_else(|| panic!("no record in {line}"))
}

#[test]
fn a_record_has_a_writer_a_number_a_time_and_a_text() {
    let record = parse("3,2345,987654321,-;NVRM: Xid (PCI:0000:17:00): 79, pid=1\n");
    assert_eq!((record.sequence, record.at_us), (2345, 987_654_321));
    assert_eq!(record.text, "NVRM: Xid (PCI:0000:17:00): 79, pid=1");
    assert!(record.is_of_kernel());
}

#[test]
fn what_a_program_writes_is_not_the_kernels() {
    assert_eq!(parse("12,7,5,-;x").facility, 1);
    assert!(!parse("12,7,5,-;x").is_of_kernel());
    assert!(!parse("30,7,5,-;systemd[1]: x").is_of_kernel());
    assert!(!parse("2047,7,5,-;x").is_of_kernel());
}

#[test]
fn newer_kernels_add_to_the_head() {
    assert_eq!(parse("6,339,5140900,-,caller=T27;text").text, "text");
    assert_eq!(parse("4,339,5140900,c;a;b").text, "a;b");
}

#[test]
fn escaped_bytes_are_what_they_were() {
    assert_eq!(parse(r"6,1,2,-;name=a\x0ab\x5cx0a, \xc3\xa9").text, "name=a\nb\\x0a, é");
    assert_eq!(parse(r"6,1,2,-;\x, \xg0, \x+1, \x4").text, r"\x, \xg0, \x+1, \x4");
}

#[test]
fn properties_and_other_lines_are_no_records() {
    for line in [
        "",
        " SUBSYSTEM=pci",
        " DEVICE=+pci:0000:17:00.0;",
        "x",
        "6,1;y",
        "-1,1,2,-;y",
        "6,a,2,-;y",
    ] {
        assert_eq!(Record::parse(line.as_bytes()), None, "{line}");
    }
}

proptest! {
    #[test]
    fn any_text_comes_back_as_the_kernel_escapes_it(text in any::<Vec<u8>>()) {
        let mut line = b"6,1,2,-;".to_vec();
        for byte in &text {
            match byte {
                b'\\' | 0..0x20 | 0x7f.. => line.extend(format!("\\x{byte:02x}").bytes()),
                plain => line.push(*plain),
            }
        }
        let record = Record::parse(&line).expect("a record");
        prop_assert_eq!(record.text, String::from_utf8_lossy(&text).into_owned());
    }
}
