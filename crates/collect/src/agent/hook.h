/* Functions that are patched: what each of them leads to, by file, and whether anything is wanted of its calls. */
#ifndef GPUSCOPE_AGENT_HOOK_H
#define GPUSCOPE_AGENT_HOOK_H

#include "memory.h"

enum hook_state {
	HOOK_PASSES,
	HOOK_TELLS,
	HOOK_COUNTS, /* nothing but the number of its calls is wanted */
};

/* As enter.S reads it. Zero in a child, which the kernel sees to: then it has not joined yet. */
struct membership {
	__u32 epoch;
	__u32 joining;
};

/* of an epoch: nobody is recorded, so that no hook need be looked at */
#define DORMANT (1u << 31)

SHARED struct membership membership;
__thread __u32 epoch;

/* As enter.S reads it. */
struct hook {
	__u64 copy; /* the beginning of the function, elsewhere */
	__u64 address;
	__u64 cookie;
	__u32 words;
	__u32 returns;
	__u64 thunk;     /* 0: it stays as it is */
	__u64 on;        /* enum hook_state */
	__u64 semaphore; /* 0: there is none, or it is not raised */
	__u64 plain;     /* where in a block its calls are counted in HOOK_COUNTS */
};

/* What was done to a file that is mapped. */
struct patched_file {
	struct arena_file file;
	__u64 bias;
	struct hook *hooks;
	__u64 count;
};

#define MOST_PATCHED 1024

static struct patched_file patched_files[MOST_PATCHED];
static __u32 patched_count;

static void remember_patched(const struct arena_file *file, __u64 bias, struct hook *hooks, __u64 count)
{
	if (!count || patched_count == MOST_PATCHED)
		return;
	patched_files[patched_count] = (struct patched_file){ *file, bias, hooks, count };
	__atomic_store_n(&patched_count, patched_count + 1, __ATOMIC_RELEASE);
}

/* Tells how many functions were patched, and how many were not. */
static void count_patched(__u64 done, __u64 refused);

/* The program skips a static probe while nobody has raised its semaphore. Its page may not be there to be written. */
static bool raise_semaphore(const struct hook *hook, __s16 by)
{
	struct io_vector ours, theirs = { (void *)hook->semaphore, sizeof(by) };
	__u16 count;

	if (!hook->semaphore)
		return true;
	if (read_by_kernel(&count, sizeof(count), hook->semaphore))
		return false;
	count = (__u16)(count + by);
	ours = (struct io_vector){ &count, sizeof(count) };
	return SYS6(process_vm_writev, SYS0(getpid), &ours, 1, &theirs, 1, 0) == sizeof(count);
}

#endif
