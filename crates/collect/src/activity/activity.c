/* The library that CUDA loads into a process (CUDA_INJECTION64_PATH): it asks the CUPTI that is there for kernels, copies and
 * memsets, and hands them to gpuscope through shared memory.
 *
 * Owns when CUPTI is asked, and that the program goes on whatever becomes of it. What the records mean is gpuscope's business.
 * Nothing here writes output, ends the process, or waits without an end.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <linux/types.h>
#include "old_glibc.h"
#include "activity.h"
#include "cupti.h"

#define FLUSH_MS 100
#define PAGE_BYTES 4096
#define PATIENCE_MS 2000 /* of gpuscope's answer, and of the last flush */

static struct {
	char *shared;
	int socket;
	int waits; /* a thread waits for gpuscope, and records itself */
	pthread_t thread;
} own = { .socket = -1 };

/* Whoever writes records holds it; never while CUPTI is called. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Whether records are taken at all: not in a forked child, nor once all is over. */
static volatile int on;

static struct activity_head *head(void)
{
	return (struct activity_head *)own.shared;
}

static uint64_t ns_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint64_t now_ns(void)
{
	return ns_of(CLOCK_MONOTONIC);
}

static void set_state(uint32_t state, uint32_t step, uint32_t error)
{
	head()->step = step;
	head()->error = error;
	__atomic_store_n(&head()->state, state, __ATOMIC_RELEASE);
}

static int starts_with(const char *text, const char *beginning)
{
	return !strncmp(text, beginning, strlen(beginning));
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

#include "mapped.h"
#include "meeting.h"
#include "names.h"
#include "writing.h"
#include "reading.h"
#include "clock.h"
#include "by_hand.h"
#include "streams.h"
#include "guards.h"
#include "asking.h"
#include "life.h"
#include "beginning.h"
#include "finding.h"
#include "standby.h"

/* What CUDA calls in cuInit. 1: all is well, which it is for CUDA whatever has become of us. */
__attribute__((visibility("default"))) int InitializeInjection(void)
{
	static int begun;
	const char *path = getenv("GPUSCOPE_ACTIVITY");

	if (!path || __atomic_exchange_n(&begun, 1, __ATOMIC_ACQ_REL))
		return 1;
	if (!strcmp(path, STANDBY)) {
		stand_by();
	} else if (meet(path)) {
		head()->began = now_ns();
		ask_cupti();
	}
	return 1;
}
