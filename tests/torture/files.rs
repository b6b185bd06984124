//! Very many probed files: gpuscope lets go of all of them when it ends.

use crate::effort::{rounds, tried};
use crate::subject::{Subject, assert_no_probe_is_left, folder};
use crate::support::eventually;
use crate::tracer::Tracer;
use std::path::PathBuf;
use std::time::Instant;

const WAYS: [&[&str]; 2] = [&["serve", "--listen", "127.0.0.1:0"], &["trace", "-q", "-p", "PID"]];

/// Copies of the library, each in a folder of its own, as its name is what it is known by.
fn copies(count: u64) -> Vec<PathBuf> {
    let copy = |number: u64| {
        let own = folder().join(number.to_string());
        std::fs::create_dir_all(&own).expect("a folder");
        let copy = own.join("libcuda.so.1");
        std::fs::copy(folder().join("libcuda.so.1"), &copy).expect("a copy");
        copy
    };
    (0..count).map(copy).collect()
}

#[test]
#[ignore = "needs root and BPF"]
fn a_gpuscope_that_probes_very_many_files_lets_go_of_all() {
    let files = copies(rounds(10, 40, 1200, 1200));
    let go_on = folder().join("go on");
    for way in WAYS {
        let _ = std::fs::remove_file(&go_on);
        let arguments: Vec<&str> = files.iter().map(|file| file.to_str().expect("UTF-8")).collect();
        // alone it waits for nothing: what it waits for is there
        std::fs::write(&go_on, "").expect("a file");
        let wait = go_on.to_str().expect("UTF-8");
        let subject = Subject::new("opening", &[&[wait][..], &arguments].concat());
        std::fs::remove_file(&go_on).expect("it was there");
        let child = subject.start();
        let pid = child.id().to_string();
        let maps = || std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let last = arguments.last().expect("a copy");
        eventually("it has opened all", || maps().contains(last));
        let way: Vec<&str> = way
            .iter()
            .map(|word| if *word == "PID" { &pid } else { *word })
            .collect();
        let mut tracer = Tracer::start(&way).until_attached();
        let begun = Instant::now();
        tracer.signal(libc::SIGTERM);
        let status = tracer.wait();
        println!("{} with {} files left in {:?}", way[0], files.len(), begun.elapsed());
        assert!(status.success(), "{status:?}: {}", tracer.stderr());
        tracer.assert_session_is_over();
        std::fs::write(&go_on, "").expect("a file");
        subject.assert_as_alone(&child.wait_with_output().expect("it ends"), way[0]);
        tried(
            files.len() as u64,
            &format!("files probed when gpuscope {} ended", way[0]),
        );
    }
    assert_no_probe_is_left();
}
