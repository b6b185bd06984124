//! A record of the kernel's log: an Xid, or none; and the text of a driver's version.

use gpuscope::driver::DriverVersion;
use gpuscope::driver::kmsg::Record;
use gpuscope::driver::xid::Xid;

pub fn run(text: &str) {
    let record = Record::parse(text.as_bytes());
    let record = record.and_then(|record| Xid::of_record(&record.text));
    if let Some(xid) = record {
        assert!(!xid.pci.is_empty(), "{xid:?}");
    }
    let after = format!("NVRM: Xid ({text}");
    for xid in [text, &after].into_iter().filter_map(Xid::parse) {
        assert!(!xid.pci.is_empty());
        let _ = xid.meaning().map(|meaning| meaning.action_words());
    }
    let _ = DriverVersion::parse(text);
}
