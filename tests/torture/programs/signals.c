/* A storm of signals whose handler, on a stack of its own, calls what the program is in the middle of calling. */
#include "cuda.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

static volatile sig_atomic_t wrong, came;

static void pair(size_t bytes)
{
	unsigned long long address = 0;

	if (cuMemAlloc_v2(&address, bytes) || !address || cuMemFree_v2(address))
		wrong++;
}

static void handler(int signal)
{
	(void)signal;
	came++;
	pair(4096);
}

int main(void)
{
	stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART };
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };

	cuInit(0);
	sigaltstack(&stack, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 100000 || (came < 100 && i < 10000000); i++)
		pair(64);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("wrong %d, signals %s\n", wrong, came >= 100 ? "came" : "are missing");
	return wrong;
}
