/* When CUPTI is asked, and when no longer: a thread has it hand over what is done, and the end of the process waits for the last
 * of it, for a while.
 */

enum why {
	ENDING_NONE,
	ENDING_PROCESS,
	ENDING_GIVEN, /* the program asks CUPTI */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int ending; /* enum why */
	int ended;
} life = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Whether gpuscope is gone. A program that has closed our connection has us go on. */
static int is_alone(void)
{
	struct pollfd connection = { .fd = own.socket };

	return poll(&connection, 1, 0) == 1 && !(connection.revents & POLLNVAL) &&
	       connection.revents & (POLLHUP | POLLERR);
}

static void in_ms(struct timespec *at, long ms)
{
	clock_gettime(CLOCK_MONOTONIC, at);
	at->tv_sec += ms / 1000;
	at->tv_nsec += ms % 1000 * 1000000;
	if (at->tv_nsec >= 1000000000) {
		at->tv_sec++;
		at->tv_nsec -= 1000000000;
	}
}

#include "windows.h"

/* Whether the process ends; after a while. */
static int is_over(void)
{
	struct timespec until;
	int ending;

	in_ms(&until, ms_until_turn(FLUSH_MS));
	pthread_mutex_lock(&life.lock);
	while (!life.ending && pthread_cond_timedwait(&life.changed, &life.lock, &until) != ETIMEDOUT) {}
	ending = life.ending;
	pthread_mutex_unlock(&life.lock);
	return ending;
}

static void flush(uint32_t how)
{
	uint64_t at = now_ns();

	if (head()->clock == CLOCK_FITTED)
		fit_clock();
	if (cupti.flush(how) == CUPTI_OK)
		__atomic_store_n(&head()->flushed, at, __ATOMIC_RELEASE);
}

/* When libraries were looked at last there had been so many. */
static unsigned long long looked_at;

static int look_for_other(struct dl_phdr_info *info, size_t bytes, void *adds)
{
	const char *path = info->dlpi_name;

	*(unsigned long long *)adds = info->dlpi_adds;
	if (info->dlpi_adds == looked_at)
		return 1;
	if (path && starts_with(name_of(path), "libcupti.so") && strcmp(path, (char *)head()->library))
		snprintf((char *)head()->second, LIBRARY_BYTES, "%s", path);
	return 0;
}

/* A second CUPTI works no longer, once the first was used, even when that is given back. */
static void note_others(void)
{
	unsigned long long adds = looked_at;

	dl_iterate_phdr(look_for_other, &adds);
	looked_at = adds;
}

/* gpuscope is gone: what CUPTI has still is for nobody, the next gpuscope neither. */
static void leave(void)
{
	on = 0;
	stop_asking();
	if (own.waits)
		flush(CUPTI_FLUSH_FORCED);
	set_state(ACTIVITY_LEFT, STEP_NONE, 0);
}

static void say_ended(void)
{
	pthread_mutex_lock(&life.lock);
	life.ended = 1;
	pthread_cond_broadcast(&life.changed);
	pthread_mutex_unlock(&life.lock);
}

/* The program goes on with CUPTI. What still runs is not told of: of devices nothing is known from its begin on. */
static void give(void)
{
	uint64_t until;

	disable_kinds();
	flush(0);
	unfinished.since = UINT64_MAX;
	unfinished.collected = 1;
	flush(CUPTI_FLUSH_FORCED);
	unfinished.collected = 0;
	until = unfinished.since < now_ns() ? unfinished.since : now_ns();
	if (is_open || !head()->period)
		write_turn(until, until, TURN_CLOSED);
	head()->given = until;
	stop_asking();
	on = 0;
	set_state(ACTIVITY_GIVEN, STEP_NONE, 0);
}

static void end(void)
{
	flush(0);
	flush(CUPTI_FLUSH_FORCED);
	set_state(ACTIVITY_ENDED, STEP_NONE, 0);
}

static void *look_after(void *unused)
{
	prctl(PR_SET_NAME, "gpuscope-gpu");
	while (!is_over()) {
		if (is_alone()) {
			leave();
			say_ended();
			return NULL;
		}
		turn_window();
		note_others();
		flush(0);
	}
	note_others();
	if (life.ending == ENDING_GIVEN)
		give();
	else
		end();
	say_ended();
	return NULL;
}

/* CUPTI may be in the middle of something that never ends: then we go. */
static void end_because(enum why why)
{
	struct timespec until;

	if (!on)
		return;
	in_ms(&until, PATIENCE_MS);
	pthread_mutex_lock(&life.lock);
	life.ending = why;
	pthread_cond_broadcast(&life.changed);
	while (!life.ended && pthread_cond_timedwait(&life.changed, &life.lock, &until) != ETIMEDOUT) {}
	if (!life.ended)
		set_state(ACTIVITY_CUT, STEP_NONE, 0);
	pthread_mutex_unlock(&life.lock);
	on = 0;
}

/* A process that ends in an orderly way. */
static void at_exit(void)
{
	end_because(ENDING_PROCESS);
}

static void hand_over(void)
{
	end_because(ENDING_GIVEN);
}

/* CUDA does not work there. */
static void in_child(void)
{
	on = 0;
	forget_threads();
}

static int start_thread(void *(*run)(void *))
{
	pthread_condattr_t monotonic;
	sigset_t all, before;
	int failed;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&life.changed, &monotonic);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&own.thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!failed)
		pthread_detach(own.thread);
	return failed;
}

