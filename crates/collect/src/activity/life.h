/* When CUPTI is asked, and when no longer: a thread has it hand over what is done, and the end of the process waits for the last
 * of it, for a while.
 */

static void *subscriber;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int ending;
	int ended;
} life = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const struct {
	uint32_t kind;
	uint32_t step;
} wanted[] = {
	{ CUPTI_KIND_CONCURRENT_KERNEL, STEP_KERNELS },
	{ CUPTI_KIND_MEMCPY, STEP_COPIES },
	{ CUPTI_KIND_MEMCPY2, STEP_COPIES },
	{ CUPTI_KIND_MEMSET, STEP_MEMSETS },
};

#define WANTED (sizeof(wanted) / sizeof(wanted[0]))

static void disable_kinds(void)
{
	size_t at;

	for (at = 0; at < WANTED; at++)
		cupti.disable(wanted[at].kind);
	if (head()->graphs)
		cupti.disable(CUPTI_KIND_GRAPH_TRACE);
}

/* What CUPTI answers where it refuses; 0: all is asked for. */
static int ask_for_kinds(uint32_t *step)
{
	size_t at;
	int error;

	for (at = 0; at < WANTED; at++) {
		*step = wanted[at].step;
		error = cupti.enable(wanted[at].kind);
		if (error != CUPTI_OK)
			return error;
	}
	*step = STEP_GRAPHS;
	return head()->graphs ? cupti.enable(CUPTI_KIND_GRAPH_TRACE) : CUPTI_OK;
}

/* Of contexts and streams that are made. */
static void hear_of_streams(uint32_t heard)
{
	cupti.enable_callback(heard, subscriber, CUPTI_DOMAIN_RESOURCE, CUPTI_CONTEXT_CREATED);
	cupti.enable_callback(heard, subscriber, CUPTI_DOMAIN_RESOURCE, CUPTI_STREAM_CREATED);
}

/* Whether what buffers hold when CUPTI gets them is nothing. */
static void say_cleared(uint8_t cleared)
{
	size_t bytes = sizeof(cleared);

	if (cupti.set_attribute)
		cupti.set_attribute(CUPTI_CLEARED_BUFFERS, &bytes, &cleared);
}

/* Whoever asks CUPTI next in this process hands it buffers as it always has. */
static void stop_asking(void)
{
	say_cleared(0);
	disable_kinds();
	cupti.disable(CUPTI_KIND_OVERHEAD);
	cupti.disable(CUPTI_KIND_DEVICE);
	hear_of_streams(0);
	cupti.unsubscribe(subscriber);
}

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
		flush(0);
	}
	flush(0);
	flush(CUPTI_FLUSH_FORCED);
	set_state(ACTIVITY_ENDED, STEP_NONE, 0);
	say_ended();
	return NULL;
}

/* A process that ends in an orderly way. CUPTI may be in the middle of something that never ends: then we go. */
static void at_exit(void)
{
	struct timespec until;

	if (!on)
		return;
	in_ms(&until, PATIENCE_MS);
	pthread_mutex_lock(&life.lock);
	life.ending = 1;
	pthread_cond_broadcast(&life.changed);
	while (!life.ended && pthread_cond_timedwait(&life.changed, &life.lock, &until) != ETIMEDOUT) {}
	if (!life.ended)
		set_state(ACTIVITY_CUT, STEP_NONE, 0);
	pthread_mutex_unlock(&life.lock);
	on = 0;
}

/* CUDA does not work there. */
static void in_child(void)
{
	on = 0;
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

/* Less memory of the device: buffers of a megabyte, of which CUPTI takes as many as it needs. */
static void keep_small(void)
{
	size_t bytes = sizeof(size_t), device_buffer = 1 << 20;

	if (cupti.set_attribute)
		cupti.set_attribute(CUPTI_DEVICE_BUFFER_SIZE, &bytes, &device_buffer);
	if (cupti.set_thread_id_type)
		cupti.set_thread_id_type(CUPTI_THREAD_ID_SYSTEM);
}

/* What can be done without. */
static void ask_beside(void)
{
	head()->overheads = cupti.enable(CUPTI_KIND_OVERHEAD) == CUPTI_OK;
	cupti.enable(CUPTI_KIND_DEVICE);
}

static int ask(uint32_t *step)
{
	int error;

	*step = STEP_CALLBACKS;
	error = cupti.register_callbacks(give_buffer, take_buffer);
	if (error != CUPTI_OK)
		return error;
	set_clock();
	keep_small();
	say_cleared(1);
	hear_of_streams(1);
	return ask_for_kinds(step);
}

/* What CUPTI answers where it refuses; 0: from now on it tells what is done. */
static int begin(void)
{
	static int registered;
	uint32_t step = STEP_SUBSCRIBE;
	int error = cupti.subscribe(&subscriber, hear, NULL);

	if (error != CUPTI_OK) {
		set_state(ACTIVITY_REFUSED, step, error);
		return error;
	}
	on = 1;
	error = ask(&step);
	if (!error) {
		ask_beside();
		begin_windows();
	}
	if (!error)
		set_state(ACTIVITY_ON, STEP_NONE, 0);
	if (!error && !own.waits && start_thread(look_after)) {
		step = STEP_THREAD;
		error = -1;
	}
	if (error) {
		on = 0;
		stop_asking();
		set_state(ACTIVITY_REFUSED, step, error);
		return error;
	}
	if (!registered) {
		registered = 1;
		pthread_atfork(NULL, NULL, in_child);
		atexit(at_exit);
	}
	return 0;
}
