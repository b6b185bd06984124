/* Waits of all kinds that a signal or a tracer would interrupt: none may end before its time, none with EINTR. */
#define _GNU_SOURCE
#include "cuda.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int interrupted;

static void check(const char *what, long result, int expected)
{
	int error = errno;

	if (result >= 0 && expected)
		printf("%s: returned %ld\n", what, result);
	else if (result < 0 && error != expected)
		printf("%s: errno %d\n", what, error);
	else
		return;
	interrupted++;
}

int main(void)
{
	struct timespec moment = { 0, 30 * 1000 * 1000 };
	struct timeval patience = { 0, 30 * 1000 };
	struct sembuf down = { 0, -1, 0 };
	struct epoll_event event;
	int ends[2], set = semget(IPC_PRIVATE, 1, 0600), epoll = epoll_create1(0);
	unsigned long long address;
	sigset_t none;
	char byte;

	if (cuInit(0) || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return 2;
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	sigemptyset(&none);
	sigaddset(&none, SIGUSR2);
	sigprocmask(SIG_BLOCK, &none, NULL);
	for (int i = 0; i < 5; i++) {
		cuMemAlloc_v2(&address, 64);
		check("epoll_wait", epoll_wait(epoll, &event, 1, 30), 0);
		check("semtimedop", semtimedop(set, &down, 1, &moment), EAGAIN);
		check("sigtimedwait", sigtimedwait(&none, NULL, &moment), EAGAIN);
		check("recv", recv(ends[0], &byte, 1, 0), EAGAIN);
		check("nanosleep", nanosleep(&moment, NULL), 0);
		cuMemFree_v2(address);
	}
	semctl(set, 0, IPC_RMID);
	printf("interrupted %d\n", interrupted);
	return interrupted;
}
