/* Ranges that the program has opened: pushed ones lie in their thread's block, nested, started ones in the process, so that
 * gpuscope finds those that never end. Each becomes one record, when it ends, with all its texts: none depends on another.
 */
#ifndef GPUSCOPE_AGENT_RANGES_H
#define GPUSCOPE_AGENT_RANGES_H

#include "ring.h"
#include "text.h"

#define STARTED_LOOKED_AT 64

/* Of a thread; what lies behind the open ones is `scratch`, for what is over at once. */
struct thread_ranges {
	struct open_ranges open;
	struct open_range scratch;
	struct probed_pages probed;
};

_Static_assert(BLOCK_RANGES + sizeof(struct thread_ranges) <= BLOCK_RING, "they lie before the ring");
_Static_assert(PROCESS_STARTED + MOST_STARTED * sizeof(struct started_range) <= PROCESS_TABLES,
	       "they lie before the tables");

INLINE struct thread_ranges *ranges_of_thread(void)
{
	return (struct thread_ranges *)((char *)self + BLOCK_RANGES);
}

INLINE struct started_range *started_at(__u64 number)
{
	return (struct started_range *)(process + PROCESS_STARTED) + number % MOST_STARTED;
}

INLINE void lose_range(void)
{
	__sync_fetch_and_add(&((struct process_head *)process)->ranges_lost, 1);
}

/* Hands a range over; its end is now. */
static void submit_range(const struct open_range *range, __u8 flags)
{
	const struct range_record *from = &range->record;
	struct range_record *to = reserve(RING_RANGES, sizeof(*to) + from->name_bytes + from->domain_bytes);
	char *text = (char *)(to + 1);

	if (!to) {
		lose_range();
		return;
	}
	copy_words(to, from, sizeof(*to));
	to->end = local()->now;
	/* who finds one open has not ended it */
	to->end_tid = flags & RANGE_OPEN ? from->tid : (__u32)local()->ids;
	to->flags |= flags;
	copy_words(text, range->text, from->name_bytes);
	copy_words(text + from->name_bytes, range->text + RANGE_NAME, from->domain_bytes);
	submit_record();
}

/* Where the next pushed range is written; NULL: there are too many. */
INLINE struct open_range *next_pushed(struct open_ranges *open)
{
	return open->depth < MOST_OPEN_RANGES ? &open->range[open->depth] : NULL;
}

/* The innermost of a domain, from 1 on; 0: none is open. */
INLINE __u32 innermost(const struct open_ranges *open, __u32 domain)
{
	__u32 at = open->depth < MOST_OPEN_RANGES ? open->depth : MOST_OPEN_RANGES;

	while (at && open->range[at - 1].record.domain != domain)
		at--;
	return at;
}

/* How many of a domain are around the next one. */
INLINE __u16 level_of(const struct open_ranges *open, __u32 domain)
{
	__u32 found = innermost(open, domain);

	return found ? (__u16)(open->range[found - 1].record.level + 1) : 0;
}

/* Ends the innermost of a domain: its level; -1: there is none. */
static int pop_range(struct open_ranges *open, __u32 domain)
{
	__u32 found;
	int level;

	if (open->beyond) {
		open->beyond--;
		lose_range();
		return MOST_OPEN_RANGES + (int)open->beyond;
	}
	found = innermost(open, domain);
	if (!found)
		return -1;
	level = open->range[found - 1].record.level;
	submit_range(&open->range[found - 1], 0);
	/* those of other domains need not be nested in it */
	for (; found < open->depth; found++)
		open->range[found - 1] = open->range[found];
	open->depth--;
	return level;
}

/* What the thread before this one has left open in this block. */
static void hand_over_left(void)
{
	struct open_ranges *open = &ranges_of_thread()->open;

	for (__u32 i = 0; i < open->depth && i < MOST_OPEN_RANGES; i++)
		submit_range(&open->range[i], RANGE_OPEN);
	open->depth = 0;
	open->beyond = 0;
}

/* A place for one that has no thread; NULL: there is none. It is nobody else's until its number is set. */
static struct started_range *next_started(__u64 *id)
{
	static __u64 number;

	for (__u32 turn = 0; turn < STARTED_LOOKED_AT; turn++) {
		__u64 next = __sync_add_and_fetch(&number, 1) + MOST_STARTED;
		struct started_range *started = started_at(next);

		*id = next;
		if (__sync_bool_compare_and_swap(&started->id, 0, STARTED_BUSY))
			return started;
	}
	return NULL;
}

static void end_started(__u64 id)
{
	struct started_range *started = started_at(id);

	if (id <= STARTED_BUSY || !__sync_bool_compare_and_swap(&started->id, id, STARTED_BUSY))
		return;
	submit_range(&started->range, 0);
	__atomic_store_n(&started->id, 0, __ATOMIC_RELEASE);
}

#endif
