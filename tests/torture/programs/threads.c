/* Ten thousand threads that come, call from a small stack, and go. */
#include "cuda.h"
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 10000, AT_ONCE = 50, CALLS = 4 };

static atomic_int done;

static void *work(void *nothing)
{
	unsigned long long address;

	for (int i = 0; i < CALLS; i++)
		if (!cuMemAlloc_v2(&address, 64) && !cuMemFree_v2(address))
			done++;
	return nothing;
}

int main(void)
{
	pthread_t threads[AT_ONCE];
	pthread_attr_t small;

	cuInit(0);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int wave = 0; wave < THREADS / AT_ONCE; wave++) {
		for (int i = 0; i < AT_ONCE; i++)
			pthread_create(&threads[i], &small, work, NULL);
		for (int i = 0; i < AT_ONCE; i++)
			pthread_join(threads[i], NULL);
	}
	printf("done %d\n", done);
	return done == THREADS * CALLS ? 0 : 1;
}
