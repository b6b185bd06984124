//! Versions and the tables that they choose.

use crate::driver::branch::Flavour;
use crate::driver::{Branch, DriverVersion};

const OPEN: &str = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (dvs-builder@U22-I3-H04-01-5)  Tue Jan  6 04:23:56 UTC 2026\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n";
const CLOSED: &str = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\nGCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)\n";

fn parse(text: &str) -> DriverVersion {
    DriverVersion::parse(text).expect("a version")
}

#[test]
fn both_flavours_say_their_version() {
    let open = parse(OPEN);
    assert_eq!(
        (open.text.as_str(), open.flavour, open.dialect.branch),
        ("580.159.04", Flavour::Open, Branch::R580)
    );
    let closed = parse(CLOSED);
    assert_eq!(
        (closed.text.as_str(), closed.flavour, closed.dialect.branch),
        ("535.183.01", Flavour::Closed, Branch::R535)
    );
    let module = parse("570.211.01\n");
    assert_eq!(
        (module.flavour, module.dialect.branch, module.dialect.certain),
        (Flavour::Unknown, Branch::R570, true)
    );
}

#[test]
fn a_branch_without_tables_takes_those_of_the_nearest_older() {
    let chosen = |version: &str| {
        let dialect = parse(version).dialect;
        (dialect.branch.number(), dialect.certain)
    };
    assert_eq!(chosen("550.163.01"), (550, true));
    assert_eq!(chosen("550.40.53"), (550, true));
    assert_eq!(chosen("550.40.07"), (535, false), "before two structs grew");
    assert_eq!(chosen("545.23.06"), (535, false));
    assert_eq!(chosen("575.57.08"), (570, false));
    assert_eq!(chosen("525.147.05"), (535, false));
    assert_eq!(chosen("610.43.02"), (595, false));
    assert_eq!(chosen("9999.1"), (595, false));
}

#[test]
fn text_without_a_version_has_none() {
    for text in [
        "",
        "\n",
        "NVRM version: none",
        "12.2.0",
        "580",
        "580.",
        "580.x.1",
        "580.1.2.3",
        "580.99999999999",
    ] {
        assert_eq!(DriverVersion::parse(text), None, "{text:?}");
    }
}
