/* Sleeps between calls, on two threads, and says how often each was taken off its processor since its first call. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

int hang_not(int value);

static long switched(void) {
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static void *sleepy(void *result) {
    long before;

    hang_not(0);
    before = switched();
    for (int i = 0; i < 50; i++) {
        usleep(1000);
        hang_not(i);
    }
    *(long *)result = switched() - before;
    return NULL;
}

int main(void) {
    long own, other;
    pthread_t thread;

    pthread_create(&thread, NULL, sleepy, &other);
    pthread_join(thread, NULL);
    sleepy(&own);
    printf("%ld\n", own + other);
    return 0;
}
