/* The current thread: its block, the time, and what of its program may be read. */
#ifndef GPUSCOPE_AGENT_THREAD_H
#define GPUSCOPE_AGENT_THREAD_H

#include <linux/ptrace.h>
#include "arena.h"
#include "syscall.h"

/* NULL: it has none yet, or there is no room for it. */
__thread struct block *self;
/* For the calls of a signal's handler that has interrupted a hook, which was at work in `self`. */
static __thread struct block *other;

#define PAGES_KNOWN 64  /* a power of two */
#define TOTALS_KNOWN 16 /* a power of two */
#define BLOCK_THREAD_UNUSED ((BLOCK_THREAD - BLOCK_LOCAL) / 8 - 12 - PAGES_KNOWN - 3 * TOTALS_KNOWN)

/* A total of the thread's that it has added to, which stays where it is as long as the thread does. */
struct known_total {
	__u32 tgid;
	__u32 row;
	__u64 variant;
	void *total; /* NULL: none */
};

/* What of a block is nobody's but the thread's; the body's own structures follow behind it. */
struct local {
	__u64 ids; /* TGID and TID, as the kernel gives them to its programs */
	__u64 cookie;
	__u64 now;     /* the last time that was read, CLOCK_MONOTONIC ns */
	__u64 trusted; /* whether the library has followed the call's pointers; it need not follow handles */
	__u64 stack
		[2]; /* from, to: the area that the thread's stack lies in, as the process's map had it last */
	__u64 near
		[2]; /* the same of the page that the stack pointer is on, and of the next one if that is there */
	__u64 reserved; /* where the next record ends */
	__u64 sp;       /* of the call whose hook the thread is in, or was */
	__u64 caller;   /* where the call that is entered returns to */
	__u32 walked;   /* what is to be said of the stack that was walked last, enum site_flag */
	__u8 at_entry;  /* the call is entered, not left */
	__u8 alive; /* what is read now stays as long as the call: pages that were read once may be read directly */
	__u8 aside;    /* the thread's other block is that of the hook that was interrupted */
	__u8 at_place; /* the registers are those within a function */
	__u64 pages[PAGES_KNOWN];
	struct known_total known_total[TOTALS_KNOWN];
	__u64 unused[BLOCK_THREAD_UNUSED];
};

INLINE struct local *local(void)
{
	return (struct local *)((char *)self + BLOCK_LOCAL);
}

__u64 now_ns(void);
long read_memory(void *to, __u32 bytes, const void *from);
long read_string(char *to, __u32 bytes, const void *from);
long read_by_handle(void *to, __u32 bytes, const void *from);
long read_string_by_handle(char *to, __u32 bytes, const void *from);
long name_of_thread(char *to);
long walk_frames(const struct pt_regs *regs, __u64 *to, __u32 bytes);

INLINE __u64 thread_pointer_of(void *task)
{
	__u64 pointer;

	(void)task;
	asm("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
}

#endif
