/* Calls the library from THREADS threads, ROUNDS times each, and writes what it did. */
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sum_work(size_t size, int kind, const char *path, int64_t delta, uint32_t *out);
int64_t sum_place(int64_t a, int64_t b);
int sum_jump(int value);

static pthread_barrier_t together;
static long rounds;

static void *run(void *unused) {
    (void)unused;
    for (long i = 0; i < rounds; i++) {
        char path[32];
        uint32_t out;
        snprintf(path, sizeof(path), "/data/%ld", i % 7);
        if (i % 50 == 0) /* new groups are met by all at once */
            pthread_barrier_wait(&together);
        sum_work((size_t)i * 37, (int)(i / 50 % 4), path, i % 21 - 10, &out);
        sum_place(i, 5);
    }
    return NULL;
}

int main(int count, char **words) {
    int threads = count > 1 ? atoi(words[1]) : 1;
    pthread_t *thread = calloc((size_t)threads, sizeof(*thread));
    rounds = count > 2 ? atol(words[2]) : 1;
    pthread_barrier_init(&together, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++)
        pthread_create(&thread[i], NULL, run, NULL);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    printf("jumped %d\n", sum_jump(17));
    free(thread);
    return 0;
}
