//! Each in a thread of its own: what is given up does not come back.

use super::*;
use std::fs::File;
use std::net::TcpStream;

/// What a thread that has been confined says.
fn confined<T: Send + 'static>(keep: Keep, says: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(move || {
        this_thread(keep);
        says()
    });
    thread.join().expect("a thread")
}

fn field(name: &str) -> String {
    let text = std::fs::read_to_string("/proc/thread-self/status").expect("a status");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.expect("a field").trim().to_owned()
}

fn bits(name: &str) -> u64 {
    u64::from_str_radix(&field(name), 16).expect("bits")
}

#[test]
fn a_thread_without_capabilities_has_none_and_gets_none() {
    let sets = || ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"].map(bits);
    assert_eq!(confined(Keep::NoCapability, sets), [0; 4]);
    assert_eq!(confined(Keep::NoCapability, || field("NoNewPrivs:")), "1");
    assert!(confined(Keep::NoCapability, || File::open("/dev/null").is_ok()));
}

#[test]
fn what_is_kept_is_kept_as_far_as_it_was_there() {
    const KEPT: &[Capability] = &[Capability::Bpf, Capability::SysPtrace, Capability::DacReadSearch];
    let had = bits("CapPrm:");
    let mask = KEPT.iter().fold(0, |mask, one| mask | 1u64 << *one as u32);
    let sets = confined(Keep::Capabilities(KEPT), || [bits("CapPrm:"), bits("CapEff:")]);
    assert_eq!(sets, [had & mask; 2]);
    assert_eq!(bits("CapPrm:"), had, "of that thread alone");
}

#[test]
fn who_keeps_all_gets_no_more() {
    let had = bits("CapPrm:");
    let sets = confined(Keep::All, || (bits("CapPrm:"), field("NoNewPrivs:")));
    assert_eq!(sets, (had, "1".to_owned()));
    let held = |capability: Capability| had >> capability as u32 & 1 == 1;
    let all = [Capability::DacOverride, Capability::SysPtrace, Capability::Bpf];
    assert_eq!(all.map(Capability::is_held), all.map(held));
}

#[test]
fn a_thread_that_has_descriptors_alone_opens_runs_and_connects_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let refused = confined(Keep::DescriptorsAlone, move || {
        let kind = |result: std::io::Result<()>| result.err().map(|error| error.kind());
        [
            kind(File::open("/dev/null").map(drop)),
            kind(std::process::Command::new("/bin/true").status().map(drop)),
            kind(TcpStream::connect(address).map(drop)),
            kind(std::fs::create_dir("/tmp/gpuscope-confined")),
        ]
    });
    assert_eq!(refused, [Some(std::io::ErrorKind::PermissionDenied); 4]);
}

#[test]
fn a_thread_that_has_descriptors_alone_still_serves_and_starts_threads() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        this_thread(Keep::DescriptorsAlone);
        let (mut stream, _) = listener.accept().expect("a client");
        let text = std::thread::spawn(|| vec![b'x'; 1 << 20]).join().expect("a thread");
        std::io::Write::write_all(&mut stream, &text).expect("an answer");
    });
    let mut answer = Vec::new();
    let mut stream = TcpStream::connect(address).expect("a server");
    std::io::Read::read_to_end(&mut stream, &mut answer).expect("an answer");
    assert_eq!(answer.len(), 1 << 20);
    server.join().expect("a thread");
}
