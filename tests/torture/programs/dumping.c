/* Children that die in the middle of a call's callback and leave a core: how each died, and whether its core is as small as it
 * ought to be.
 */
#define _GNU_SOURCE
#include "cuda.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 6
#define SMALL (64ll << 20)

static void die(void *data)
{
	(void)data;
	abort();
}

static void work(int number)
{
	struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	unsigned long long address;

	setrlimit(RLIMIT_CORE, &none);
	for (int i = 0; i < 100; i++)
		cuMemAlloc_v2(&address, 64);
	if (number % 2)
		*(volatile int *)0 = 1;
	cuLaunchHostFunc(NULL, die, NULL);
	_exit(1);
}

/* The core of a child, where the kernel writes one into the folder; what lies in it takes no more room than `SMALL`. */
static const char *core(pid_t child)
{
	const char *found = "elsewhere";
	char names[2][32] = { "core" };
	struct stat file;

	snprintf(names[1], sizeof(names[1]), "core.%d", child);
	for (int i = 0; i < 2; i++) {
		if (stat(names[i], &file))
			continue;
		found = file.st_blocks * 512ll < SMALL ? "small" : "large";
		unlink(names[i]);
	}
	return found;
}

int main(void)
{
	char folder[] = "/tmp/dumping.XXXXXX";
	int status;

	if (!mkdtemp(folder) || chdir(folder))
		return 2;
	cuInit(0);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();

		if (!child)
			work(i);
		waitpid(child, &status, 0);
		printf("child %d: signal %d, a core: %d, %s\n", i, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
		       WCOREDUMP(status) != 0, core(child));
	}
	rmdir(folder);
	return 0;
}
