/* Calls CUDA while its parent follows it instruction by instruction and keeps what a processor's shadow stack holds: where each call
 * is to return to.
 * usage: returning LIBRARY CALLS [astray]    `astray`: one return at the end that no call belongs to
 * Prints how many calls were followed, and how many returns went elsewhere.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEEPEST 4096
/* where the kernel has calls return whose return somebody else probes, and goes on from there by itself */
#define OF_PROBES 0x7fffffffe000ul

static unsigned long returns_to[DEEPEST];
static long depth, calls, elsewhere;

static void call(void *library, long times) {
    int (*allocate)(void **, size_t) = (int (*)(void **, size_t))dlsym(library, "cudaMalloc");
    int (*release)(void *) = (int (*)(void *))dlsym(library, "cudaFree");
    void *place;
    for (long i = 0; i < times; i++)
        if (allocate(&place, 64) || release(place))
            exit(3);
}

__attribute__((noinline)) static void go_astray(void) {
    __asm__ volatile("lea 1f(%%rip), %%rax; push %%rax; ret; 1:" ::: "rax", "memory");
}

static int follow_me(void *library, long times, int astray) {
    call(library, 1); /* what a first call does is not followed: it takes long */
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    call(library, times);
    if (astray)
        go_astray();
    raise(SIGSTOP);
    return 0;
}

/* Behind prefixes, 0xff with 2 in the middle of its second byte calls what a register or memory says. */
static int is_call(const unsigned char *code) {
    while (*code == 0x3e || *code == 0x66 || *code == 0x67 || *code == 0xf2 || (*code & 0xf0) == 0x40)
        code++;
    return *code == 0xe8 || (*code == 0xff && (code[1] >> 3 & 7) == 2);
}

static int is_return(const unsigned char *code) {
    while (*code == 0xf2 || *code == 0xf3)
        code++;
    return *code == 0xc3 || *code == 0xc2;
}

static void look(pid_t child, unsigned long from, const struct user_regs_struct *now) {
    long code = ptrace(PTRACE_PEEKTEXT, child, from, 0);
    if (is_call((unsigned char *)&code) && depth < DEEPEST) {
        calls++;
        returns_to[depth++] = (unsigned long)ptrace(PTRACE_PEEKDATA, child, now->rsp, 0);
    } else if (is_return((unsigned char *)&code) && from < OF_PROBES && depth && returns_to[--depth] != now->rip &&
               now->rip < OF_PROBES) {
        elsewhere++;
        depth++; /* its call has not returned yet */
    }
}

int main(int argc, char **argv) {
    void *library = dlopen(argc > 2 ? argv[1] : "", RTLD_NOW);
    struct user_regs_struct before, now;
    int status;
    if (!library)
        return 2;
    pid_t child = fork();
    if (!child)
        return follow_me(library, atol(argv[2]), argc > 3 && !strcmp(argv[3], "astray"));
    waitpid(child, &status, 0);
    ptrace(PTRACE_GETREGS, child, 0, &before);
    for (;; before = now) {
        ptrace(PTRACE_SINGLESTEP, child, 0, 0);
        waitpid(child, &status, 0);
        if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
            break;
        ptrace(PTRACE_GETREGS, child, 0, &now);
        if (now.rip != before.rip)
            look(child, before.rip, &now);
    }
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    printf("%s, %ld returns elsewhere\n", calls > 0 ? "followed" : "nothing was followed", elsewhere);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}
