/* A thread without Python in a program of Python: it works for a moment and launches, again and again. A library; its caller waits for
 * the thread.
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

static long nanos(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000 + now.tv_nsec;
}

static void *work(void *given)
{
	const struct order *order = given;

	order->set(order->context);
	for (int i = 0; i < order->times; i++) {
		long until = nanos() + 300000;

		while (nanos() < until)
			;
		order->launch(order->kernel, 4, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL);
	}
	return NULL;
}

void launch_in_thread(set_context *set, void *context, launch_kernel *launch, void *kernel, int times)
{
	struct order order = { set, context, launch, kernel, times };
	pthread_t thread;

	pthread_create(&thread, NULL, work, &order);
	pthread_setname_np(thread, "backward");
	pthread_join(thread, NULL);
}
