/* Very many of one thing: streams, kernels, live allocations, threads' failures, processes one after the other and at once. */
#include "cuda.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int launch(uintptr_t kernel, void *stream)
{
	return cuLaunchKernel((void *)kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

static int stream(long i)
{
	void *made;

	(void)i;
	return cuStreamCreate(&made, 0) || launch(4096, made);
}

static int kernel(long i)
{
	return launch(0x10000 + (uintptr_t)i * 64, NULL);
}

static int allocation(long i)
{
	unsigned long long address;

	return cuMemAlloc_v2(&address, 512 + (size_t)i % 4096);
}

static int failure(long i)
{
	return !cuInit(1 + (unsigned)i);
}

static int process(long i)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(allocation(i));
	return waitpid(child, &status, 0) != child || status;
}

static int gate[2], arrived[2];

/* Allocates, says so, and lives until all are there. */
static int alive(long i)
{
	char byte = 0;
	pid_t child = fork();

	if (child == 0) {
		int failed = allocation(i);

		close(gate[1]);
		failed |= write(arrived[1], &byte, 1) != 1;
		_exit(failed | (read(gate[0], &byte, 1) != 0));
	}
	return child < 0 || read(arrived[0], &byte, 1) != 1;
}

static int all_end(void)
{
	int wrong = 0, status;

	close(gate[1]);
	while (wait(&status) > 0)
		wrong += status != 0;
	return wrong;
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		int (*make)(long i);
	} things[] = { { "streams", stream },   { "kernels", kernel },    { "allocations", allocation },
		       { "failures", failure }, { "processes", process }, { "alive", alive } };
	const char *name = count > 1 ? arguments[1] : "streams";
	long times = count > 2 ? atol(arguments[2]) : 10;
	int wrong = 0;

	cuInit(0);
	if (pipe(gate) || pipe(arrived))
		return 1;
	for (size_t thing = 0; thing < sizeof(things) / sizeof(*things); thing++)
		for (long i = 0; !strcmp(things[thing].name, name) && i < times; i++)
			wrong += things[thing].make(i);
	wrong += all_end();
	printf("%ld %s, %d wrong\n", times, name, wrong);
	return wrong != 0;
}
