/* How this process comes to share memory with gpuscope, and ceases to: as a program that begins, as a forked child, or when gpuscope
 * is at the door of one that stands by.
 */
#ifndef GPUSCOPE_AGENT_MEMBERSHIP_H
#define GPUSCOPE_AGENT_MEMBERSHIP_H

#include "confined.h"
#include "loaded.h"

/* of an epoch: the process, how often it was traced before, and whether its calls pass */
#define EPOCH_PROCESS ((1u << 22) - 1)
#define EPOCH_ROUND (1u << 22)
#define MADV_WIPE_ON_FORK 18
#define MADV_DONT_DUMP 16
#define MADV_REMOVE 9
#define LEFT_TO_LIBRARIES (64ull << 30)

/* whether this process, or the one that it was forked from, is traced now */
static bool is_traced;

/* The section "pages" ends with a page of its own, and what follows it begins with one. */
static char last_page[ARENA_PAGE] __attribute__((section("pages"), aligned(ARENA_PAGE), used));
static char first_page[ARENA_PAGE] __attribute__((aligned(ARENA_PAGE), used));

static bool map_page(volatile void *at, int fd, __u64 offset, int rights)
{
	return !failed_call(SYS6(mmap, at, ARENA_PAGE, rights, MAP_SHARED_FIXED, fd, offset));
}

static bool map_all(int of_process, int of_run)
{
	/* room beside libraries is left to libraries that come later, and to what their patches need */
	char *below = (char *)((__u64)last_page - LEFT_TO_LIBRARIES) - RUN_BYTES;
	/* what was there before gives way at once: there is always memory where a hook may be writing */
	long memory_of_run = SYS6(mmap, run ? run : below, RUN_BYTES, 1,
				  MAP_SHARED_LAZY | (run ? MAP_FIXED_ : 0), of_run, 0);
	long memory_of_process = SYS6(mmap, process ? process : below - PROCESS_BYTES, PROCESS_BYTES, PROT_RW,
				      MAP_SHARED_LAZY | (process ? MAP_FIXED_ : 0), of_process, 0);

	if (failed_call(memory_of_run) || failed_call(memory_of_process))
		return false;
	SYS3(madvise, memory_of_run, RUN_BYTES, MADV_DONT_DUMP);
	SYS3(madvise, memory_of_process, PROCESS_BYTES, MADV_DONT_DUMP);
	run = (char *)memory_of_run;
	memcpy(layout, ((struct process_head *)memory_of_process)->shape, sizeof(layout));
	if (!map_page(&options, of_run, RUN_OPTIONS, 1) ||
	    !map_page(&site_options, of_run, RUN_SITE_OPTIONS, 1) ||
	    !map_page(&control, of_process, PROCESS_CONTROL, PROT_RW) ||
	    !map_page(&site_counters, of_process, PROCESS_SITE_COUNTERS, PROT_RW) ||
	    !map_page(&aggregate_counters, of_process, PROCESS_AGGREGATE_COUNTERS, PROT_RW))
		return false;
	process = (char *)memory_of_process;
	clock_ahead = ((struct process_head *)process)->clock_ahead;
	((struct process_head *)process)->mapped = 1;
	return true;
}

/* Whether gpuscope wants this process; it has its memory then. */
static bool join(__u32 kind)
{
	struct message message = { .magic = ARENA_MAGIC, .kind = kind };
	int fds[2] = { -1, -1 };
	bool joined;

	/* a child's namespace may be another one; gpuscope knows by how much its clock is ahead */
	clock_ahead = 0;
	message.at = read_clock();
	message.tid = (__u32)SYS0(gettid);
	message.parent = (__u32)SYS0(getppid);
	joined = ask(&message, fds, PATIENCE_S) && map_all(fds[0], fds[1]);
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			SYS1(close, fds[i]);
	return joined;
}

/* The process is in the `round`th state of its own. */
static void set_epoch(__u32 round, bool traced)
{
	__u32 number =
		((__u32)SYS0(getpid) & EPOCH_PROCESS) | (round * EPOCH_ROUND & ~(EPOCH_PROCESS | DORMANT));

	is_traced = traced;
	__atomic_store_n(&membership.epoch, traced ? number : number | DORMANT, __ATOMIC_RELEASE);
}

static bool is_borrowed(void)
{
	__u32 number = membership.epoch & EPOCH_PROCESS;

	return number && number != ((__u32)SYS0(getpid) & EPOCH_PROCESS);
}

/* Nothing that is called from now on is recorded. */
static void leave_tracing(void)
{
	switch_all_off();
	if (is_traced)
		__atomic_fetch_add(&door.joined, 1, __ATOMIC_RELEASE);
	set_epoch(membership.epoch / EPOCH_ROUND + 1, false);
}

/* A forked child makes its first call. */
static void join_child(void)
{
	if (__atomic_exchange_n(&membership.joining, 1, __ATOMIC_ACQUIRE))
		return; /* another thread does: what this one calls meanwhile is not seen */
	/* the thread that was looking has stayed behind */
	looking = 0;
	if (stands_by() && patched_count)
		make_door();
	if (is_traced && join(MESSAGE_CHILD)) {
		set_epoch(0, true);
		door.joined = 1;
		return;
	}
	is_traced = false;
	/* the parent's is not ours to write to; nobody of this process is in a hook yet */
	if (process)
		SYS2(munmap, process, PROCESS_BYTES);
	process = NULL;
	leave_tracing();
}

/* Whether this process has memory of its own, as a child gets it when it first needs it. */
static bool is_member(void)
{
	if (!membership.epoch && (process || stands_by()))
		join_child();
	return process && membership.epoch && !(membership.epoch & DORMANT);
}

/* gpuscope wants a process that has stood by, or has done with it. */
static void answer_door(void)
{
	__u32 wish;

	if (__atomic_exchange_n(&looking, 1, __ATOMIC_ACQUIRE))
		return; /* the dynamic linker is at work: the next call sees to it */
	wish = __atomic_exchange_n(&door.wake, 0, __ATOMIC_ACQ_REL);
	if (wish == DOOR_LEAVE && is_traced) {
		leave_tracing();
		/* gives the memory back; what a hook writes that is under way, nobody reads */
		SYS3(madvise, process, PROCESS_BYTES, MADV_REMOVE);
	} else if (wish == DOOR_JOIN) {
		/* another gpuscope may have gone without a word */
		if (is_traced)
			leave_tracing();
		append_path(address.path, (const char *)door.path);
		if (join(MESSAGE_LATE)) {
			set_epoch(membership.epoch / EPOCH_ROUND + 1, true);
			switch_on_loaded();
			__atomic_fetch_add(&door.joined, 1, __ATOMIC_RELEASE);
		}
	}
	__atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
}

/* Whether the call is to be recorded, where the program stands by, or did. */
static __noinline bool passes_door(const struct hook *hook)
{
	if (!membership.epoch)
		join_child();
	if (door.wake && door.tgid == (membership.epoch & EPOCH_PROCESS))
		answer_door();
	return __atomic_load_n(&hook->on, __ATOMIC_ACQUIRE);
}

static void count_patched(__u64 done, __u64 refused)
{
	struct process_head *head = (struct process_head *)process;

	if (is_traced) {
		__sync_fetch_and_add(&head->patched, done);
		__sync_fetch_and_add(&head->refused, refused);
	} else if (door.magic) {
		__sync_fetch_and_add(&door.patched, done);
		__sync_fetch_and_add(&door.refused, refused);
	}
}

#endif
