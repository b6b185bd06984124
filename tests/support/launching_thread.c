/* Threads without Python in a program of Python: one works for a moment and launches, again and again, and its caller waits for it;
 * one launches what it is handed, for which nobody waits. A library; the threads live on.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
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

static sem_t handed;

static void *dispatch(void *unused)
{
	(void)unused;
	order.set(order.context);
	for (;;) {
		sem_wait(&handed);
		order.launch(order.kernel, 4, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL);
	}
	return NULL;
}

void start_dispatcher(set_context *set, void *context, launch_kernel *launch, void *kernel)
{
	pthread_t thread;

	order = (struct order){ set, context, launch, kernel, 0 };
	sem_init(&handed, 0, 0);
	pthread_create(&thread, NULL, dispatch, NULL);
	pthread_setname_np(thread, "dispatch");
}

void hand_over(void)
{
	sem_post(&handed);
}

void launch_in_thread(int times)
{
	order.times = times;
	pthread_barrier_wait(&given);
	pthread_barrier_wait(&done);
}
