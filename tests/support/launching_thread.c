/* A thread without Python in a program of Python: it works for a moment and launches, again and again. A library; its caller waits for
 * the thread, which lives on.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>

typedef int launch_kernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			  void *, void **, void **);

typedef int set_context(void *);

struct order {
	set_context *set;
	void *context;
	launch_kernel *launch;
	void *kernel;
	int times;
};

static struct order order;
static pthread_barrier_t given, done;

static long nanos(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000 + now.tv_nsec;
}

static void *work(void *unused)
{
	(void)unused;
	order.set(order.context);
	for (;;) {
		pthread_barrier_wait(&given);
		for (int i = 0; i < order.times; i++) {
			long until = nanos() + 300000;

			while (nanos() < until)
				;
			order.launch(order.kernel, 4, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL);
		}
		pthread_barrier_wait(&done);
	}
	return NULL;
}

void start_thread(set_context *set, void *context, launch_kernel *launch, void *kernel)
{
	pthread_t thread;

	order = (struct order){ set, context, launch, kernel, 0 };
	pthread_barrier_init(&given, NULL, 2);
	pthread_barrier_init(&done, NULL, 2);
	pthread_create(&thread, NULL, work, NULL);
	pthread_setname_np(thread, "backward");
}

void launch_in_thread(int times)
{
	order.times = times;
	pthread_barrier_wait(&given);
	pthread_barrier_wait(&done);
}
