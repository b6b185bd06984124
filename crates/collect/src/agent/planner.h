/* Has gpuscope's own program plan what to do to files, in a process of its own, while a library is loaded. */
#ifndef GPUSCOPE_AGENT_PLANNER_H
#define GPUSCOPE_AGENT_PLANNER_H

#include "room.h"
#include "standby.h"

#define PLANNER "/gpuscope"
#define PLAN_FD 3
#define PLANNING_MS 10000
#define WALL 0x40000000
#define CLONE_LIKE_VFORK 0x4100
#define SIGCHLD_ 17
#define ALL_SIGNALS_BYTES 8

#define MOST_WORDS (7 + MESSAGE_FILES)

struct pause {
	__s64 seconds;
	__s64 nanos;
};

/* Whether a child has ended as it should, in time. */
static bool ends_well(long child)
{
	struct pause pause = { 0, 1000000 };
	int status = -1;

	for (__u32 waited = 0;; waited++) {
		long ended = SYS4(wait4, child, &status, 1 /* WNOHANG */, 0);

		if (ended == child)
			return !status;
		if (failed_call(ended) && ended != INTERRUPTED)
			return false;
		if (waited == PLANNING_MS)
			SYS2(kill, child, 9);
		SYS2(nanosleep, &pause, 0);
	}
}

static void become(const char *program, const char *const *words, long file)
{
	static const char *const nothing[] = { NULL };
	long nowhere;

	if (file == PLAN_FD)
		SYS3(fcntl, file, 2 /* F_SETFD */, 0);
	else
		SYS3(dup3, file, PLAN_FD, 0);
	/* what it has to say is not the program's output */
	nowhere = SYS3(open, "/dev/null", 2, 0);
	for (long stream = 0; stream <= 2; stream++)
		if (stream != nowhere)
			SYS3(dup3, nowhere, stream, 0);
	SYS3(execve, program, words, nothing);
	SYS1(exit_group, 127);
}

/* Runs `words`, with `file` as a descriptor of its own; whether that ends as it should. The program must not meet a child that
 * it does not know: who execs has a parent that is told of its end, so there is one in between, who does not and is not.
 */
static __noinline bool run_program(const char *program, const char *const *words, long file)
{
	__u64 all = ~0ull, before = 0;
	volatile bool well = false;
	long between;

	/* a handler of the program's must not run in a child, which shares our memory */
	SYS4(rt_sigprocmask, 2, &all, &before, ALL_SIGNALS_BYTES);
	between = SYS6(clone, CLONE_LIKE_VFORK, 0, 0, 0, 0, 0);
	if (!between) {
		long child = SYS6(clone, CLONE_LIKE_VFORK | SIGCHLD_, 0, 0, 0, 0, 0);

		if (!child)
			become(program, words, file);
		well = !failed_call(child) && ends_well(child);
		SYS1(exit_group, 0);
	}
	SYS4(rt_sigprocmask, 2, &before, 0, ALL_SIGNALS_BYTES);
	if (!failed_call(between))
		SYS4(wait4, between, 0, WALL, 0);
	return well;
}

/* Has gpuscope plan what to do to files, and keep that in the folder; where its plans are, NULL: nowhere. */
static char *plans_for(const char *const *paths, __u32 count)
{
	const char *words[MOST_WORDS] = { "gpuscope", "preload", "--plan=3", "--folder", folder, "--" };
	char planner[LONGEST_PATH + sizeof(PLANNER)];
	long file = SYS2(memfd_create, "gpuscope", 1 /* CLOEXEC */), at = -1;

	append_text(append_text(planner, folder), PLANNER);
	for (__u32 i = 0; i < count; i++)
		words[6 + i] = paths[i];
	words[6 + count] = NULL;
	if (failed_call(file))
		return NULL;
	if (!failed_call(SYS2(ftruncate, file, RUN_BYTES)) && run_program(planner, words, file))
		at = SYS6(mmap, 0, RUN_BYTES, 1, MAP_SHARED_LAZY, file, 0);
	SYS1(close, file);
	return failed_call(at) ? NULL : (char *)at;
}

#endif
