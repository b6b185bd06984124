//! Programs that forbid themselves system calls, on pain of death, while an agent is in them.

use crate::support::{Gpuscope, Trace, compile, number, sim_text};

/// Calls a library before and after it has forbidden itself what agents ask of the kernel, then on a new thread; and says how the
/// C library's function has failed where it must.
const CONFINED: &str = r#"
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int (*allocate)(void **, unsigned long), (*release)(void *);

static int call(int times) {
    void *place;
    int failed = 0;
    for (int i = 0; i < times; i++)
        failed += allocate(&place, 64) || release(place);
    return failed;
}

static void *late(void *failed) {
    *(int *)failed += call(50);
    return 0;
}

static int confine(void) {
    static const int DEADLY[] = { SYS_open, SYS_socket, SYS_connect, SYS_process_vm_readv, SYS_tgkill, SYS_getrusage };
    enum { COUNT = sizeof(DEADLY) / sizeof(*DEADLY) };
    struct sock_filter code[COUNT + 3] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    struct sock_fprog program = { COUNT + 3, code };
    for (int i = 0; i < COUNT; i++)
        code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, DEADLY[i], COUNT - i, 0);
    code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int count, char **paths) {
    void *library = dlopen(paths[count - 1], RTLD_NOW);
    char name[16] = "";
    int failed;
    pthread_t thread;

    allocate = (int (*)(void **, unsigned long))dlsym(library, "cudaMalloc");
    release = (int (*)(void *))dlsym(library, "cudaFree");
    failed = prctl(-1, 0, 0, 0, 0) != -1 || errno != EINVAL;
    failed += prctl(PR_SET_NAME, "renamed") || prctl(PR_GET_NAME, name) || strcmp(name, "renamed");
    failed += call(100) + confine() + call(100);
    pthread_create(&thread, 0, late, &failed);
    pthread_join(thread, 0);
    printf("%d failed\n", failed);
    return failed;
}
"#;

fn traced(options: &[&str]) -> Trace {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "confined", CONFINED, &["-ldl"]);
    let command = [program.to_str().expect("UTF-8"), &sim_text("libcudart.so.13")];
    let trace = Gpuscope::run(options, &command).tier("inside").finish().ok();
    assert_eq!(trace.stdout, "0 failed\n", "{options:?}");
    trace
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn who_forbids_itself_system_calls_is_counted_on_and_lives() {
    for options in [&["--chatty"][..], &["--stacks", "all"], &["-q", "--summary", "none"]] {
        let trace = traced(options);
        if options.contains(&"-q") {
            continue;
        }
        let functions = trace.summary()["functions"].as_array().expect("functions").iter();
        let mut named = functions.filter(|function| function["name"] == "cudaMalloc");
        assert_eq!(number(named.next().expect("calls"), "calls"), 200, "{options:?}");
    }
}

/// Who it is would have to be asked of the kernel.
#[test]
#[ignore = "needs the simulated CUDA"]
fn calls_of_threads_that_come_after_that_are_said_to_be_unseen() {
    let unseen = traced(&[]).unseen();
    let words = "calls found nowhere to be counted";
    assert!(unseen.iter().any(|line| line.contains(words)), "{unseen:?}");
}
