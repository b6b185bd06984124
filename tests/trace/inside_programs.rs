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

/// Loads CUDA and leaves it to its children to call, as a server does that forks its workers.
const LEAVING_IT: &str = r#"
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **paths) {
    void *runtime = dlopen(paths[1], RTLD_NOW), *driver = dlopen(paths[2], RTLD_NOW), *place;
    int (*allocate)(void **, unsigned long) = (int (*)(void **, unsigned long))dlsym(runtime, "cudaMalloc");
    int (*release)(void *) = (int (*)(void *))dlsym(runtime, "cudaFree");
    for (int child = 0; child < 3; child++)
        if (!fork()) {
            for (int i = 0; i < 10; i++)
                if (allocate(&place, 64) || release(place))
                    exit(1);
            exit(0);
        }
    int status, failed = !driver;
    while (wait(&status) > 0)
        failed += status;
    return failed;
}
"#;

#[test]
#[ignore = "needs the simulated CUDA"]
fn children_of_a_parent_that_never_called_are_counted_from_their_first_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "leaving", LEAVING_IT, &["-ldl"]);
    let program = program.to_str().expect("UTF-8");
    let libraries = ["libcudart.so.13", "libcuda.so.1"].map(sim_text);
    let trace = Gpuscope::run(&["--chatty"], &[program, &libraries[0], &libraries[1]])
        .finish()
        .ok();
    assert_eq!(trace.calls_of("cudaMalloc").count(), 30, "{:?}", trace.unseen());
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

/// Launches at the end of a page of the stack and, in turns, from deeper; its process has a long map. Prints how often the
/// process has read a file or the like meanwhile.
const DEEP: &str = r#"
#include <alloca.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

int cuInit(unsigned flags);
int cuLaunchKernel(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **extra);

static long reads(void)
{
    FILE *file = fopen("/proc/self/io", "r");
    long characters, count = -1;

    fscanf(file, "rchar: %ld wchar: %*d syscr: %ld", &characters, &count);
    fclose(file);
    return count;
}

/* The stack pointer at the call lies about `above` bytes above the beginning of a page. */
__attribute__((noinline)) static void launch(int pages, int above)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    volatile char *room = alloca(((frame & 4095) + pages * 4096 + 4096 - above) & ~15ul);

    room[0] = 1;
    cuLaunchKernel(0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
}

int main(void)
{
    long before;

    for (int i = 0; i < 3000; i++)
        mmap(0, 4096, i & 1 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cuInit(0);
    before = reads();
    for (int i = 0; i < 300; i++) {
        launch(0, 4032);
        launch(6, 2048);
        launch(1, 4032);
    }
    printf("READS %ld\n", reads() - before);
    return 0;
}
"#;

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_stack_that_grows_and_shrinks_is_not_looked_up_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = sim_text("libcuda.so.1");
    let directory = sim("").to_str().expect("UTF-8").to_owned();
    let program = compile(
        folder.path(),
        "deep",
        DEEP,
        &[&library, &format!("-Wl,-rpath,{directory}")],
    );
    let trace = traced(&[program.to_str().expect("UTF-8")]);
    assert_whole(&trace);
    let said = trace.stdout.lines().find_map(|line| line.strip_prefix("READS "));
    let reads: u64 = said.expect("it says so").parse().expect("a number");
    // the map of such a process takes some 200 reads
    assert!(reads < 3000, "{reads} reads for 900 launches");
}

/// What a processor with shadow stacks would hold against the agent: a return to where no call has come from.
#[test]
#[ignore = "needs the simulated CUDA"]
fn each_return_of_a_traced_call_is_to_where_its_call_came_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = include_str!("../support/returning.c");
    let program = compile(folder.path(), "returning", source, &["-ldl"]);
    let command = [program.to_str().expect("UTF-8"), &sim_text("libcudart.so.13"), "5"];
    let trace = traced(&command);
    assert_eq!(trace.stdout, "followed, 0 returns elsewhere\n");
    for name in ["cudaMalloc", "cudaFree"] {
        assert_eq!(trace.calls_of(name).count(), 6, "{name}: {:?}", trace.unseen());
    }
    let astray = traced(&[&command[..], &["astray"]].concat());
    assert_eq!(astray.stdout, "followed, 1 returns elsewhere\n");
}
