/* A storm of signals whose handler, on a stack of its own, calls what the program is in the middle of calling. Argument: for
 * how many ms at least.
 */
#include "cuda.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

enum { PAIRS = 20000, FEWEST = 100, MOST = 5000, NEVER_CAME = 10000000 };

static const struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
static volatile sig_atomic_t wrong, came;
static long end;

static void pair(size_t bytes)
{
	unsigned long long address = 0;

	if (cuMemAlloc_v2(&address, bytes) || !address || cuMemFree_v2(address))
		wrong++;
}

static void handler(int signal)
{
	(void)signal;
	pair(4096);
	/* where a processor is emulated the next signal has come by now, and the program would do nothing else */
	if (++came >= MOST && now_ms() >= end)
		setitimer(ITIMER_REAL, &never, NULL);
}

int main(int count, char **arguments)
{
	stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART };

	end = now_ms() + (count > 1 ? atoi(arguments[1]) : 0);
	cuInit(0);
	sigaltstack(&stack, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; (i < PAIRS && came < MOST) || (i < NEVER_CAME && came < FEWEST) || now_ms() < end;
	     i++)
		pair(64);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("wrong %d, signals %s\n", wrong, came >= FEWEST ? "came" : "are missing");
	return wrong;
}
