use super::*;
use std::io::Write;
use tempfile::NamedTempFile;

const REPORT: &str = "NVRM: Xid (PCI:0000:17:00): 31, pid=7, name=a, Ch 8";

fn open(path: &std::path::Path, from: From) -> KernelLog {
    let open = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let mut file = open.expect("a file");
    if from == From::Now {
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).expect("a file");
    }
    KernelLog {
        file,
        begun: Vec::new(),
        next: None,
        oldest: None,
        missed: Missed::default(),
        overrun: false,
        read_at: Instant::now(),
    }
}

fn codes(log: &mut KernelLog) -> Vec<(u32, u64)> {
    log.read()
        .iter()
        .map(|logged| (logged.xid.code, logged.at_us))
        .collect()
}

#[test]
fn each_xid_is_told_once_as_it_comes() {
    let mut file = NamedTempFile::new().expect("a file");
    let mut write = |text: String| file.write_all(text.as_bytes()).expect("written");
    write(format!("3,1,10,-;{REPORT}\n SUBSYSTEM=pci\n6,2,20,-;other\n"));
    let path = file.path().to_owned();
    let (mut old, mut new) = (open(&path, From::Oldest), open(&path, From::Now));
    assert_eq!((codes(&mut old), codes(&mut new)), (vec![(31, 10)], vec![]));
    let mut write = |text: String| file.write_all(text.as_bytes()).expect("written");
    write(format!("3,3,30,-;{REPORT}\n3,4,40,-;NVRM: Xid (PCI:0000:1"));
    assert_eq!((codes(&mut old), codes(&mut new)), (vec![(31, 30)], vec![(31, 30)]));
    write("7:00): 79, pid=1\n".to_owned());
    assert_eq!((codes(&mut old), codes(&mut new)), (vec![(79, 40)], vec![(79, 40)]));
    assert_eq!(old.reaches_to_boot(), Some(false));
    assert_eq!(old.missed(), Missed::default());
}

#[test]
fn what_a_program_wrote_is_not_believed_and_not_kept_back() {
    let mut file = NamedTempFile::new().expect("a file");
    let forged =
        format!("12,0,10,-;{REPORT}\n30,1,11,-;x: {REPORT}\n6,2,12,-;a[1]: segfault in {REPORT}\n12,3,13,-;hello\n");
    file.write_all(forged.as_bytes()).expect("written");
    let mut log = open(file.path(), From::Oldest);
    assert_eq!(codes(&mut log), []);
    assert_eq!(log.missed().foreign, 3);
    assert_eq!(log.reaches_to_boot(), Some(true));
    let notes: Vec<String> = log.missed().notes().collect();
    assert!(
        notes[0].contains("look like Xids and are not the driver's") && notes[0].ends_with("(3)"),
        "{notes:?}"
    );
}

#[test]
fn what_was_overwritten_is_counted() {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(format!("6,5,10,-;x\n6,9,11,-;{REPORT}\n").as_bytes())
        .expect("written");
    let mut log = open(file.path(), From::Oldest);
    assert_eq!(codes(&mut log), [(31, 11)]);
    assert_eq!(log.missed().overwritten, 3);
}

#[test]
fn a_line_without_end_does_not_fill_the_memory() {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(&vec![b'x'; 1 << 20]).expect("written");
    let mut log = open(file.path(), From::Oldest);
    assert_eq!(codes(&mut log), []);
    assert!(log.begun.len() <= RECORD_BYTES);
}

/// Whoever may write to the log is not the kernel.
#[test]
#[ignore = "needs root and BPF"]
fn what_root_writes_to_the_real_log_is_a_programs() {
    let mut log = KernelLog::open(From::Now).expect("the log");
    let mut kmsg = OpenOptions::new().write(true).open(LOG).expect("the log");
    for priority in ["<3>", "<0>", "<2048>", ""] {
        kmsg.write_all(format!("{priority}{REPORT}\n").as_bytes())
            .expect("written");
    }
    assert_eq!(log.read(), []);
    assert_eq!(log.missed().foreign, 4);
}
