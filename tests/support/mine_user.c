/* Calls the library in ways that a tracer must survive, checks every result, and says how often it called what. With an
 * argument no child of it is confined to so few system calls that an agent must not be there. */
#include "mine.h"
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* shared with children */
static struct {
    atomic_long eight, fill, scale, one, two, red_zone, wait, wrong;
} *made;

static void check(int right) {
    if (!right)
        made->wrong++;
}

static void one(long value) {
    made->one++;
    check(mine_get_one(value) == value + 1);
}

static void two(long value) {
    made->two++;
    check((value & 1 ? mine_get_alias(value) : mine_get_two(value)) == value + 2);
}

static void arguments(void) {
    struct box box = {640, 480, "a \"box\"\n", {-3, 4, 200}};
    uint64_t result = 0;
    made->eight += 2;
    check(mine_eight("first \x1b[31m", 7, -9, &box, 4096, 255, "second", -1) == 1 + 7 - 9 + 1 + 4096 + 255 + 1 - 1);
    check(mine_eight(NULL, 0, 0, NULL, 0, 0, (char *)8, 0) == 0);
    made->fill += 2;
    check(mine_fill(&box, &result) == 0 && result == 640 * 480);
    check(mine_fill(NULL, &result) == 7);
    made->scale++;
    check(mine_scale(2.5, 4) == 10.0);
    for (long i = 0; i < 3000; i++) {
        made->red_zone++;
        check(mine_red_zone(i) == 2 * i);
    }
}

static void *many(void *unused) {
    for (long i = 0; i < 2000; i++)
        one(i);
    return unused;
}

static void threads(void) {
    pthread_t ids[64];
    for (int i = 0; i < 64; i++)
        pthread_create(&ids[i], NULL, many, NULL);
    for (int i = 0; i < 64; i++)
        pthread_join(ids[i], NULL);
}

static void on_timer(int unused) {
    (void)unused;
    two(1);
}

/* A thousand signals a second, whose handler calls the library that it interrupts. */
static void signals(void) {
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, on_timer);
    long before = made->two;
    setitimer(ITIMER_REAL, &every, NULL);
    while (made->two < before + 200)
        one(5);
    setitimer(ITIMER_REAL, &never, NULL);
}

static void expect_end(int pid) {
    int status = 1;
    waitpid(pid, &status, 0);
    check(status == 0);
}

/* A child that may only read, write and exit. */
static void confined(void) {
    int pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
            syscall(SYS_exit, 2);
        for (long i = 0; i < 100; i++)
            one(i);
        syscall(SYS_exit, 0);
    }
    expect_end(pid);
}

static void vforked(void) {
    int pid = vfork();
    if (pid == 0) {
        one(1);
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    expect_end(pid);
}

static void *waiting(void *unused) {
    made->wait++;
    mine_wait();
    return unused;
}

static void cancelled(void) {
    pthread_t id;
    void *result = NULL;
    pthread_create(&id, NULL, waiting, NULL);
    usleep(20000);
    pthread_cancel(id);
    pthread_join(id, &result);
    check(result == PTHREAD_CANCELED);
}

int main(int argc, char **argv) {
    (void)argv;
    made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    arguments();
    threads();
    signals();
    if (argc == 1)
        confined();
    vforked();
    cancelled();
    one(1);
    printf("{\"mine_eight\":%ld,\"mine_fill\":%ld,\"mine_scale\":%ld,\"mine_get_one\":%ld,\"mine_get_two\":%ld,"
           "\"mine_red_zone\":%ld,\"mine_wait\":%ld}\n",
           made->eight, made->fill, made->scale, made->one, made->two, made->red_zone, made->wait);
    return made->wrong != 0;
}
