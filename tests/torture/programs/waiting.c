/* Waits of all kinds that a signal or a tracer would interrupt: none may end before its time, none with EINTR. Threads that load
 * a library which nobody has mapped before wait, and so do programs that have just begun. Argument: one kind, to wait so once;
 * or a file, until which is there only its threads wait. It makes FILE.here then.
 * GPUSCOPE_TORTURE_WAITS: how often each thread waits.
 */
#define _GNU_SOURCE
#include "cuda.h"
#ifdef STATIC
#include "cuda.c"
#else
#include <dlfcn.h>
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MILLIS 100
#define MOST 6000

static int rounds = 20;
static const char *begin;
static const struct timespec moment = { 0, MILLIS * 1000 * 1000 };

static long in_epoll_wait(void)
{
	struct epoll_event event;
	int epoll = epoll_create1(0);
	long result = epoll_wait(epoll, &event, 1, MILLIS);

	close(epoll);
	errno = result ? errno : EAGAIN;
	return result ? result : -1;
}

static long in_semtimedop(void)
{
	struct sembuf down = { 0, -1, 0 };
	int set = semget(IPC_PRIVATE, 1, 0600), error;
	long result = semtimedop(set, &down, 1, &moment);

	error = errno;
	semctl(set, 0, IPC_RMID);
	errno = error;
	return result;
}

static long in_sigtimedwait(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigaddset(&none, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &none, NULL);
	return sigtimedwait(&none, NULL, &moment);
}

static long in_recv(void)
{
	struct timeval patience = { 0, MILLIS * 1000 };
	int ends[2], error;
	long result;
	char byte;

	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	result = recv(ends[0], &byte, 1, 0);
	error = errno;
	close(ends[0]);
	close(ends[1]);
	errno = error;
	return result;
}

static const struct kind {
	const char *name;
	long (*wait)(void);
	double least_ms;
} kinds[] = {
	{ "epoll_wait", in_epoll_wait, MILLIS - 1 },
	{ "semtimedop", in_semtimedop, MILLIS - 1 },
	{ "sigtimedwait", in_sigtimedwait, MILLIS - 1 },
	/* counted in ticks of the kernel, which lag behind where a processor is taken away from a virtual machine */
	{ "recv", in_recv, MILLIS / 2.0 }
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static double now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Whether it was interrupted. */
static int wait_once(const struct kind *kind)
{
	double begun = now();
	long result = kind->wait();
	int error = errno, early = now() - begun < kind->least_ms;

	if (result == -1 && error == EAGAIN && !early)
		return 0;
	printf("%s: result %ld, errno %d%s\n", kind->name, result, error, early ? ", too early" : "");
	return 1;
}

/* Maps a library that nobody has mapped before. */
static void load(void)
{
#ifndef STATIC
	char path[] = "/tmp/libcuda.so.1.XXXXXX";
	int copy = mkstemp(path), library;
	Dl_info info;
	struct stat about;

	dladdr((void *)cuInit, &info);
	library = open(info.dli_fname, O_RDONLY);
	fstat(library, &about);
	if (sendfile(copy, library, NULL, (size_t)about.st_size) != about.st_size)
		abort();
	close(library);
	close(copy);
	if (!dlopen(path, RTLD_NOW | RTLD_LOCAL))
		abort();
	unlink(path);
#endif
}

static int may_begin(void)
{
	return !begin || !access(begin, F_OK);
}

static void make_here(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s.here", begin);
	close(creat(path, 0644));
}

static void *wait_again_and_again(void *kind)
{
	unsigned long long address;
	long interrupted = 0;

	for (int i = 0; i < MOST && !may_begin(); i++)
		interrupted += wait_once(kind);
	for (int i = 0; i < rounds; i++) {
		load();
		interrupted += wait_once(kind);
		cuMemAlloc_v2(&address, 64);
		cuMemFree_v2(address);
	}
	return (void *)interrupted;
}

/* Programs that wait as soon as they run, one of each kind. */
static int start_each(void)
{
	int interrupted = 0, status;
	pid_t children[KINDS];

	for (size_t kind = 0; kind < KINDS; kind++) {
		children[kind] = vfork();
		if (!children[kind]) {
			execl("/proc/self/exe", "waiting", kinds[kind].name, NULL);
			_exit(9);
		}
	}
	for (size_t kind = 0; kind < KINDS; kind++)
		interrupted += waitpid(children[kind], &status, 0) != children[kind] || status != 0;
	return interrupted;
}

int main(int count, char **arguments)
{
	pthread_t threads[KINDS];
	long interrupted = 0, by_thread;
	const char *often = getenv("GPUSCOPE_TORTURE_WAITS");

	if (often)
		rounds = atoi(often);
	for (size_t kind = 0; kind < KINDS; kind++)
		if (count > 1 && !strcmp(arguments[1], kinds[kind].name))
			return wait_once(&kinds[kind]);
	if (cuInit(0))
		return 2;
	begin = count > 1 ? arguments[1] : NULL;
	if (begin)
		make_here();
	for (size_t kind = 0; kind < KINDS; kind++)
		pthread_create(&threads[kind], NULL, wait_again_and_again, (void *)&kinds[kind]);
	for (int i = 0; i < MOST && !may_begin(); i++)
		nanosleep(&moment, NULL);
	for (int i = 0; i < rounds; i++)
		interrupted += start_each();
	for (size_t kind = 0; kind < KINDS; kind++) {
		pthread_join(threads[kind], (void **)&by_thread);
		interrupted += by_thread;
	}
	printf("interrupted %ld\n", interrupted);
	return interrupted != 0;
}
