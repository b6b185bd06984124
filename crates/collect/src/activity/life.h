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

/* When libraries are looked at next, and how long after that again: more and more seldom, as some programs have mapped
 * thousands of pieces of memory.
 */
static struct {
	uint64_t due;
	uint64_t apart;
} others;

#define OTHERS_FIRST_NS (1ull << 30)
#define OTHERS_MOST_NS (1ull << 33)

static void begin_to_look(void)
{
	others.due = 0;
	others.apart = OTHERS_FIRST_NS;
}

/* A second CUPTI works no longer, once the first was used, even when that is given back. */
static void note_others(void)
{
	struct mapped ours = { .at = (uintptr_t)cupti.version };
	struct mapped other = { .beginning = "libcupti.so", .but = ours.path };

	if (is_mapped(&ours) && is_mapped(&other))
		snprintf((char *)head()->second, LIBRARY_BYTES, "%s", other.path);
}

static void note_others_in_time(void)
{
	uint64_t now = now_ns();

	if (now < others.due)
		return;
	note_others();
	others.due = now + others.apart;
	others.apart = others.apart < OTHERS_MOST_NS ? 2 * others.apart : others.apart;
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

/* From when on nothing is known, as what CUPTI has not told of until now is not told of any more. */
static uint64_t known_until(void)
{
	uint64_t until = now_ns();

	return unfinished.since < until ? unfinished.since : until;
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
	until = known_until();
	if (is_open || !head()->period)
		write_turn(until, until, TURN_CLOSED);
	note_others();
	stop_asking();
	on = 0;
	head()->given = until;
	set_state(ACTIVITY_GIVEN, STEP_NONE, 0);
}

static void end(void)
{
	note_others();
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
		note_others_in_time();
		flush(0);
	}
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
