//! Records of system calls on the kernel driver's devices, in any branch of the driver.

use gpuscope::driver::{Branch, Dialect, Record};
use gpuscope::model::driver::{Caller, FileId, Objects};

pub fn run(data: &[u8]) {
    let Some((branch, bytes)) = data.split_first() else {
        return;
    };
    let Some(record) = Record::parse(bytes) else { return };
    let dialect = Dialect::of(Branch::ALL[usize::from(*branch) % Branch::ALL.len()]);
    let ioctl = record.decode(dialect);
    assert!(!ioctl.name.is_empty());
    let mut objects = Objects::default();
    let caller = Caller {
        pid: record.header.tgid,
        file: FileId(record.file()),
    };
    objects.called(caller, &ioctl, record.header.duration);
    objects.closed(caller.file);
}
