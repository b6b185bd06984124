/* Twenty children that share this process's memory and are processes of their own, and twenty that a thread ends while
 * another one is in the middle of a call.
 */
#define _GNU_SOURCE
#include "cuda.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 20

static int pair(void)
{
	unsigned long long address;

	return cuMemAlloc_v2(&address, 64) || cuMemFree_v2(address);
}

static int sharing(void *nothing)
{
	(void)nothing;
	_exit(pair() ? 98 : 7);
}

static int entered[2];

static void pause_in_call(void *nothing)
{
	(void)nothing;
	(void)!write(entered[1], "", 1);
	pause();
}

static void *end_all(void *nothing)
{
	char byte;

	if (read(entered[0], &byte, 1) == 1)
		_exit(pair() ? 98 : 7);
	return nothing;
}

static void ended_by_thread(void)
{
	pthread_t thread;

	if (pipe(entered) || pthread_create(&thread, NULL, end_all, NULL))
		_exit(97);
	cuLaunchHostFunc(NULL, pause_in_call, NULL);
	_exit(96);
}

static int status_of(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

int main(void)
{
	static char stack[64 * 1024] __attribute__((aligned(16)));
	int sum = 0;

	cuInit(0);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child;

		sum += status_of(
			clone(sharing, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
		child = fork();
		if (!child)
			ended_by_thread();
		sum += status_of(child);
	}
	printf("statuses %d\n", sum);
	return sum != 2 * CHILDREN * 7;
}
