/* What gpuscope has planned for files when earlier programs loaded them: it is kept beside the agent, so that nobody is asked twice.
 * It is read for one look at the list of what is loaded, and let go of then.
 */
#ifndef GPUSCOPE_AGENT_KEPT_H
#define GPUSCOPE_AGENT_KEPT_H

#include "plans.h"
#include "standby.h"

#define PLANS "/plans"

struct kept_plans {
	char *at; /* NULL: there are none */
	__u64 bytes;
	bool are_read;
};

static struct kept_plans kept_plans;

static bool are_whole(const char *at, __u64 bytes)
{
	const struct kept_head *head = (const struct kept_head *)at;

	return bytes >= sizeof(*head) && head->magic == KEPT_MAGIC && head->build == AGENT_BUILD &&
	       head->bytes == bytes - sizeof(*head) &&
	       head->digest == digest_of(at + sizeof(*head), head->bytes);
}

/* Copied: who shortens a file that is mapped ends the program. */
static void copy_kept(long fd)
{
	struct stat status;
	__u64 bytes;
	long at;

	if (SYS2(fstat, fd, &status) || status.st_size <= 0 || status.st_size > KEPT_BYTES)
		return;
	bytes = (__u64)status.st_size;
	at = SYS6(mmap, 0, bytes, PROT_RW, MAP_PRIVATE_ANON, -1, 0);
	if (failed_call(at))
		return;
	if (SYS4(pread64, fd, at, bytes, 0) == (long)bytes && are_whole((const char *)at, bytes))
		kept_plans = (struct kept_plans){ (char *)at, bytes, true };
	else
		SYS2(munmap, at, bytes);
}

static void read_kept(void)
{
	char path[LONGEST_PATH + sizeof(PLANS)];
	long fd;

	kept_plans.are_read = true;
	append_text(append_text(path, folder), PLANS);
	fd = SYS3(open, path, 02404000 /* O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK */, 0);
	if (failed_call(fd))
		return;
	copy_kept(fd);
	SYS1(close, fd);
}

/* Who forks meanwhile leaves a child that knows of none. */
static void let_go_of_kept(void)
{
	struct kept_plans was = kept_plans;

	kept_plans = (struct kept_plans){ 0 };
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (was.at)
		SYS2(munmap, was.at, was.bytes);
}

/* Finds where the patches of a file lie among what is kept; false: nobody has looked at it. */
static bool find_kept(const struct found_file *found, struct arena_planned *plan)
{
	if (!kept_plans.are_read)
		read_kept();
	return kept_plans.at && find_plan(kept_plans.at, kept_plans.bytes, found, plan);
}

#endif
