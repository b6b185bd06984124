//! What programs do that an agent in them must survive: very many threads, descriptors that are closed, libraries that come, go
//! and come twice. What they do at their worst is `torture`'s business, for either engine.

use crate::support::{Gpuscope, Trace, assert_same, compile, sim, sim_text};
use std::collections::BTreeMap;

fn traced(command: &[&str]) -> Trace {
    let trace = Gpuscope::run(&["--chatty"], command).tier("inside").finish().ok();
    assert_eq!(trace.summary()["attach"], "inside");
    trace
}

/// Every call that the libraries received is counted, and either written or counted as lost.
fn assert_whole(trace: &Trace) {
    let visible = trace.ledger.visible();
    assert_same(&format!("totals; {:?}", trace.unseen()), &visible, &trace.entered());
    assert_same("lost and written", &visible, &with_lost(trace));
}

fn with_lost(trace: &Trace) -> BTreeMap<(String, String), u64> {
    let mut counts = trace.written();
    for part in ["lost", "unfinished"] {
        for (key, count) in trace.totals(part) {
            *counts.entry(key).or_default() += count;
        }
    }
    counts
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn two_thousand_threads_at_once_are_counted() {
    assert_whole(&traced(&[&sim_text("gpusim"), "threads", "2000", "2"]));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn ten_thousand_threads_one_after_the_other_are_counted() {
    let trace = traced(&[&sim_text("gpusim"), "thread-exit-midcall", "10000"]);
    assert_same("totals", &trace.ledger.visible(), &trace.entered());
}

/// Closes all descriptors that it has, those of others, too, and has children that get none; by `vfork`, `posix_spawn` and `fork`.
const CLOSING: &str = r"
import ctypes, os, subprocess, sys
runtime, gpusim = sys.argv[1:]
os.closerange(3, 4096)
cuda = ctypes.CDLL(runtime)
place = ctypes.c_void_p()
def call(times):
    for _ in range(times):
        assert cuda.cudaMalloc(ctypes.byref(place), 64) == 0 and cuda.cudaFree(place) == 0
call(10)
os.closerange(3, 4096)
call(10)
subprocess.run([gpusim, 'train', '2'], close_fds=True, check=True)
os.waitpid(os.posix_spawn(gpusim, [gpusim, 'train', '2'], os.environ), 0)
child = os.fork()
if not child:
    os.closerange(3, 4096)
    os.execv(gpusim, [gpusim, 'train', '2'])
os.waitpid(child, 0)
call(10)
";

#[test]
#[ignore = "needs the simulated CUDA"]
fn descriptors_may_be_closed_at_any_time() {
    let trace = traced(&[
        "python3",
        "-c",
        CLOSING,
        &sim_text("libcudart.so.13"),
        &sim_text("gpusim"),
    ]);
    assert_eq!(trace.ledger.pids.len(), 4, "three children");
    assert_whole(&trace);
}

/// Loads each library that it is given, calls it and lets it go, again and again, and at last has all of them at a time.
const COMING_AND_GOING: &str = r#"
#include <dlfcn.h>
static int call(void *library) {
    int (*allocate)(void **, unsigned long) = (int (*)(void **, unsigned long))dlsym(library, "cudaMalloc");
    int (*release)(void *) = (int (*)(void *))dlsym(library, "cudaFree");
    void *place;
    return allocate(&place, 64) || release(place);
}
int main(int count, char **paths) {
    int failed = 0;
    for (int i = 0; i < 40; i++) {
        void *library = dlopen(paths[1 + i % (count - 1)], RTLD_NOW);
        failed += !library || call(library);
        dlclose(library);
    }
    for (int i = 1; i < count; i++)
        failed += call(dlopen(paths[i], RTLD_NOW));
    for (int i = 1; i < count; i++)
        failed += call(dlopen(paths[i], RTLD_NOW));
    return failed;
}
"#;

#[test]
#[ignore = "needs the simulated CUDA"]
fn libraries_come_go_and_are_there_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "coming", COMING_AND_GOING, &["-ldl"]);
    let copies = ["one", "two"].map(|name| {
        let place = folder.path().join(name);
        std::fs::create_dir(&place).expect("a folder");
        std::fs::copy(sim("libcudart.so.13"), place.join("libcudart.so.13")).expect("a copy");
        place.join("libcudart.so.13").to_str().expect("UTF-8").to_owned()
    });
    let trace = traced(&[program.to_str().expect("UTF-8"), &copies[0], &copies[1]]);
    let unseen = trace.unseen();
    for name in ["cudaMalloc", "cudaFree"] {
        assert_eq!(trace.calls_of(name).count(), 44, "{name}: {unseen:?}");
    }
    let attached = trace.summary()["attached"].to_string();
    assert!(copies.iter().all(|path| attached.contains(path)), "{attached}");
}

/// What has a namespace of its own is not seen, and each run says that.
#[test]
#[ignore = "needs the simulated CUDA"]
fn what_is_loaded_into_another_namespace_is_said_not_to_be_seen() {
    const SOURCE: &str = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        int main(int count, char **paths) {
            void *library = dlmopen(LM_ID_NEWLM, paths[count - 1], RTLD_NOW), *place;
            int (*allocate)(void **, unsigned long) = (int (*)(void **, unsigned long))dlsym(library, "cudaMalloc");
            return allocate(&place, 64);
        }
    "#;
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "apart", SOURCE, &["-ldl"]);
    let trace = traced(&[program.to_str().expect("UTF-8"), &sim_text("libcudart.so.13")]);
    let said: Vec<String> = trace.summary()["unseen"]
        .as_array()
        .expect("unseen")
        .iter()
        .map(|line| line.to_string())
        .collect();
    let names_it = said.iter().any(|line| line.contains("dlmopen"));
    assert!(names_it || trace.calls_of("cudaMalloc").count() == 1, "{said:?}");
}
