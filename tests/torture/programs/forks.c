/* Five hundred children: by fork, by vfork and exec of this program, some that end in the middle of a call. */
#include "cuda.h"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(void *status)
{
	_exit((int)(size_t)status);
}

static int pair(void)
{
	unsigned long long address;

	return cuMemAlloc_v2(&address, 64) || cuMemFree_v2(address);
}

static pid_t child(int which, char *self)
{
	pid_t pid = which % 3 == 1 ? vfork() : fork();

	if (pid)
		return pid;
	if (which % 3 == 1) {
		execl(self, self, "child", NULL);
		_exit(99);
	}
	if (which % 3 == 2)
		cuLaunchHostFunc(NULL, end, (void *)7);
	_exit(pair() ? 98 : 7);
}

int main(int count, char **arguments)
{
	int sum = 0, status;

	cuInit(0);
	if (count > 1 && !strcmp(arguments[1], "child"))
		return pair() ? 98 : 7;
	for (int i = 0; i < 500; i++) {
		pid_t pid = child(i, "/proc/self/exe");
		if (pair() || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
			return 1;
		sum += WEXITSTATUS(status);
	}
	printf("statuses %d\n", sum);
	return sum == 3500 ? 0 : 1;
}
