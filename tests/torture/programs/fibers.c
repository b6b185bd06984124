/* Fibers that are left within a callback and taken up again later, in another order. */
#include "cuda.h"
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { FIBERS = 16, ROUNDS = 50, STACK = 65536 };

static ucontext_t home, fibers[FIBERS];
static int current, returned;

static void leave(void *data)
{
	(void)data;
	swapcontext(&fibers[current], &home);
}

static void work(void)
{
	unsigned long long address;

	for (int round = 0; round < ROUNDS; round++) {
		cuMemAlloc_v2(&address, 4096);
		cuLaunchHostFunc(NULL, leave, NULL);
		cuMemFree_v2(address);
		returned++;
	}
}

int main(void)
{
	cuInit(0);
	for (int i = 0; i < FIBERS; i++) {
		getcontext(&fibers[i]);
		fibers[i].uc_stack.ss_sp = malloc(STACK);
		fibers[i].uc_stack.ss_size = STACK;
		fibers[i].uc_link = &home;
		makecontext(&fibers[i], work, 0);
	}
	for (int step = 0; step < FIBERS * (ROUNDS + 1); step++) {
		current = (step * 7) % FIBERS;
		swapcontext(&home, &fibers[current]);
	}
	printf("returned %d\n", returned);
	return returned == FIBERS * ROUNDS ? 0 : 1;
}
