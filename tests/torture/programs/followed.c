/* A child that is followed by ptrace, call by call, while it calls. */
#include "cuda.h"
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static int work(void)
{
	unsigned long long address;
	int done = 0;

	for (int i = 0; i < 500; i++) {
		done += !cuMemAlloc_v2(&address, 64) && !cuMemFree_v2(address);
		if (i % 10 == 0)
			getppid();
	}
	return done == 500 ? 11 : 1;
}

int main(void)
{
	int status, stops = 0;
	pid_t child;

	cuInit(0);
	child = fork();
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(work());
	}
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		int signal = WSTOPSIG(status);
		stops++;
		ptrace(PTRACE_SYSCALL, child, 0, signal == SIGTRAP || signal == SIGSTOP ? 0 : signal);
	}
	printf("child ended with %d, stops %s\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
	       stops > 100 ? "seen" : "missing");
	return WIFEXITED(status) && WEXITSTATUS(status) == 11 ? 0 : 1;
}
