/* Ways out of a host callback other than returning, through the API call that runs it. */

#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>

extern int cudaLaunchHostFunc(void *, void (*)(void *), void *);

static void jump(void *data) { longjmp(*(jmp_buf *)data, 1); }

/* Leaves `times` calls of cudaLaunchHostFunc by longjmp; returns how many were left so. */
unsigned gpusim_longjmp(void *stream, unsigned times) {
    static __thread jmp_buf back;
    volatile unsigned escaped = 0;
    volatile unsigned i;
    for (i = 0; i < times; i++) {
        if (setjmp(back) == 0)
            cudaLaunchHostFunc(stream, jump, &back);
        else
            escaped++;
    }
    return escaped;
}

static void leave(void *data) { pthread_exit(data); }

static void *thread(void *data) {
    cudaLaunchHostFunc(NULL, leave, data);
    return NULL;
}

/* Starts threads one after the other that each end inside cudaLaunchHostFunc; returns how many
 * did. */
unsigned gpusim_thread_exit(unsigned times) {
    unsigned ended = 0;
    for (unsigned i = 0; i < times; i++) {
        pthread_t id;
        void *result = NULL;
        if (pthread_create(&id, NULL, thread, &ended) == 0 && pthread_join(id, &result) == 0)
            ended += result == &ended;
    }
    return ended;
}
