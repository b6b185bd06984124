/* longjmp out of callbacks, also of nested ones and out of a signal's own stack. */
#include "cuda.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static sigjmp_buf place;
static int jumped;

static void jump(void *depth)
{
	if ((size_t)depth > 0)
		cuLaunchHostFunc(NULL, jump, (void *)((size_t)depth - 1));
	siglongjmp(place, 1);
}

static void in_signal(int signal)
{
	(void)signal;
	cuLaunchHostFunc(NULL, jump, (void *)1);
}

int main(void)
{
	stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
	struct sigaction action = { .sa_handler = in_signal, .sa_flags = SA_ONSTACK };
	unsigned long long address;

	cuInit(0);
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	for (volatile int i = 0; i < 200; i++) {
		if (sigsetjmp(place, 1))
			jumped++;
		else if (i % 2)
			raise(SIGUSR1);
		else
			cuLaunchHostFunc(NULL, jump, (void *)(size_t)(i % 8));
		cuMemAlloc_v2(&address, 64);
		cuMemFree_v2(address);
	}
	printf("jumped %d\n", jumped);
	return jumped == 200 ? 0 : 1;
}
