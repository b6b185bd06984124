/* Calls from ever new places, in a thread whose signals' handler calls from ever new places too, on a stack of its own that
 * lies above the thread's.
 */
#include "cuda.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>

enum { PLACES = 12, PAIRS = 20000, FEWEST = 100, MOST = 3000, NEVER_CAME = 10000000, STACK = 1 << 20 };

static const struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
static volatile sig_atomic_t wrong, came;
static volatile unsigned below;

static void pair(void)
{
	unsigned long long address = 0;

	if (cuMemAlloc_v2(&address, 64) || !address || cuMemFree_v2(address))
		wrong++;
}

static void walk(unsigned path, unsigned left);

static __attribute__((noinline)) void one_way(unsigned path, unsigned left)
{
	walk(path / 2, left);
	below++;
}

static __attribute__((noinline)) void other_way(unsigned path, unsigned left)
{
	walk(path / 2, left);
	below--;
}

/* The place is told by the ways that lead to it. */
static __attribute__((noinline)) void walk(unsigned path, unsigned left)
{
	if (!left)
		pair();
	else if (path % 2)
		one_way(path, left - 1);
	else
		other_way(path, left - 1);
	below++;
}

static void handler(int signal)
{
	(void)signal;
	walk(came, PLACES);
	if (++came >= MOST)
		setitimer(ITIMER_REAL, &never, NULL);
}

static void *work(void *above)
{
	stack_t stack = { .ss_sp = above, .ss_size = STACK };
	int here;

	sigaltstack(&stack, NULL);
	for (unsigned i = 0; (i < PAIRS && came < MOST) || (i < NEVER_CAME && came < FEWEST); i++)
		walk(i, PLACES);
	setitimer(ITIMER_REAL, &never, NULL);
	return (char *)above > (char *)&here ? above : NULL;
}

int main(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART };
	char *above = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigset_t alarms;
	pthread_t thread;
	void *is_above;

	cuInit(0);
	sigaction(SIGALRM, &action, NULL);
	pthread_create(&thread, NULL, work, above);
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarms, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	pthread_join(thread, &is_above);
	printf("wrong %d, signals %s, %s\n", wrong, came >= FEWEST ? "came" : "are missing",
	       is_above ? "on a stack above" : "on a stack below");
	return wrong || !is_above;
}
