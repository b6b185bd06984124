/* Calls one function again and again and says what a call took.
 * usage: hammer LIBRARY [FRAMES]     then on stdin, a line each:  FUNCTION[,FUNCTION...] CALLS THREADS RATE
 * The calls are made below so many frames more, without frame pointers.
 * Several functions are called in turn, as often as they are named. RATE 0: at full speed.
 * Answer to each: nanoseconds per call, calls made, seconds. The nanoseconds are CPU time of the calling threads, so
 * that other programs on the machine disturb less; the seconds are real. RATE is calls a second of all threads together;
 * who falls behind it catches up. Thread n runs on CPU n, so that repeated bursts are comparable.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 64
#define MAX_FUNCTIONS 64

typedef int call_fn(void *, const void *, size_t, int, void *, void *);

struct turn {
	call_fn *functions[MAX_FUNCTIONS];
	int count;
};

struct burst {
	const struct turn *turn;
	long calls;
	double period_ns;
	int cpu;
	double seconds;
	double cpu_ns;
};

static pthread_barrier_t together;
static int frames;

static double now_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void call(struct burst *burst)
{
	void *place = NULL;
	double start, cpu_start;
	int next = 0;

	pthread_barrier_wait(&together);
	start = now_ns(CLOCK_MONOTONIC);
	cpu_start = now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (long i = 0; i < burst->calls; i++) {
		while (burst->period_ns > 0 && now_ns(CLOCK_MONOTONIC) < start + i * burst->period_ns)
			__builtin_ia32_pause();
		burst->turn->functions[next](&place, &place, 4096, 1, NULL, NULL);
		next = next + 1 < burst->turn->count ? next + 1 : 0;
	}
	burst->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_start;
	burst->seconds = (now_ns(CLOCK_MONOTONIC) - start) / 1e9;
}

/* Its stack is not its caller's: something is done when it returns. */
static __attribute__((noinline, noclone)) void call_below(struct burst *burst, int more)
{
	if (more > 0)
		call_below(burst, more - 1);
	else
		call(burst);
	__asm__ volatile("" ::: "memory");
}

static void *run(void *argument)
{
	struct burst *burst = argument;

	pin(burst->cpu);
	call_below(burst, frames);
	return NULL;
}

static void answer(const struct turn *turn, long calls, int threads, double rate)
{
	pthread_t ids[MAX_THREADS];
	struct burst bursts[MAX_THREADS];
	double longest = 0, cpu_ns = 0;

	pthread_barrier_init(&together, NULL, threads);
	for (int i = 0; i < threads; i++) {
		bursts[i] =
			(struct burst){ turn, calls / threads, rate > 0 ? 1e9 * threads / rate : 0, i, 0,
					0 };
		pthread_create(&ids[i], NULL, run, &bursts[i]);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		cpu_ns += bursts[i].cpu_ns;
		if (bursts[i].seconds > longest)
			longest = bursts[i].seconds;
	}
	pthread_barrier_destroy(&together);
	printf("%.3f %ld %.6f\n", cpu_ns / (calls / threads * threads), calls / threads * threads, longest);
	fflush(stdout);
}

/* The functions of a list with commas; 0 if one is not there. */
static int look_up(void *library, char *names, struct turn *turn)
{
	turn->count = 0;
	for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
		call_fn *function = (call_fn *)dlsym(library, name);

		if (!function || turn->count == MAX_FUNCTIONS)
			return 0;
		turn->functions[turn->count++] = function;
	}
	return turn->count;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	struct turn turn;
	char names[1024];
	long calls;
	int threads;
	double rate;

	if (!library) {
		fprintf(stderr, "hammer: %s\n", argc > 1 ? dlerror() : "usage: hammer LIBRARY [FRAMES]");
		return 2;
	}
	frames = argc > 2 ? atoi(argv[2]) : 0;
	while (scanf("%1023s %ld %d %lf", names, &calls, &threads, &rate) == 4) {
		if (!look_up(library, names, &turn) || threads < 1 || threads > MAX_THREADS || calls < threads) {
			fprintf(stderr, "hammer: cannot do: %s %ld %d\n", names, calls, threads);
			return 2;
		}
		answer(&turn, calls, threads, rate);
	}
	return 0;
}
