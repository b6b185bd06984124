/* A thread that Python has not started: it calls back into Python, and allocates GPU memory itself in between, when it has no state of
 * Python's any more. A library; its caller waits for the thread.
 */
#include <pthread.h>
#include <stddef.h>

struct order {
	void (*callback)(void);
	int (*allocate)(unsigned long long *, size_t);
	int times;
};

__attribute__((noinline)) int allocate_own(const struct order *order)
{
	unsigned long long pointer;

	return order->allocate(&pointer, 3000) + 1;
}

static void *work(void *given)
{
	const struct order *order = given;

	for (int i = 0; i < order->times; i++) {
		order->callback();
		allocate_own(order);
	}
	return NULL;
}

void in_thread(void (*callback)(void), int (*allocate)(unsigned long long *, size_t), int times)
{
	struct order order = { callback, allocate, times };
	pthread_t thread;

	pthread_create(&thread, NULL, work, &order);
	pthread_join(thread, NULL);
}
