/* The ring of a thread: records of all streams in the order in which it submits them. What finds no room is refused, and the
 * body counts it; but for what happened to memory the thread waits, as one record less makes a balance wrong for good. */
#ifndef GPUSCOPE_AGENT_RING_H
#define GPUSCOPE_AGENT_RING_H

#include "arena.h"
#include "clock.h"
#include "table.h"
#include "thread.h"

#define KEPT 4 /* a fourth of each ring is not for calls: accounts do not depend on chatter */
#define ANEW_BYTES 65536
#define LINES_AHEAD 4 /* of 64 bytes */
#define WAIT_STEP_NS 200000
#define LONGEST_WAIT_NS 2000000000 /* for room; gpuscope gives up a hook that lasts a second longer */

INLINE struct ring_record *record_at(__u64 position)
{
	return (struct ring_record *)((char *)self + self->ring_at +
				      ((position - self->base) & (self->ring_bytes - 1)));
}

INLINE __u64 taken(void)
{
	return __atomic_load_n(&self->tail, __ATOMIC_ACQUIRE);
}

/* Whether there is room up to `end`. Once gpuscope has not read for so long, nobody waits for it until it does. */
static __attribute__((noinline)) bool is_room_soon(__u64 end)
{
	struct process_head *head = (struct process_head *)process;
	__u64 round = __atomic_load_n(&head->rounds, __ATOMIC_RELAXED) + 1, since = read_clock(), waited = 0;
	struct time_of step = { 0, WAIT_STEP_NS };

	if (is_quiet || __atomic_load_n(&head->gave_up, __ATOMIC_RELAXED) == round)
		return false;
	while (end - taken() > self->ring_bytes && waited < LONGEST_WAIT_NS) {
		SYS2(nanosleep, &step, NULL);
		waited = read_clock() - since;
	}
	__sync_fetch_and_add(&head->waited, waited);
	__sync_fetch_and_add(&head->waits, 1);
	if (end - taken() <= self->ring_bytes)
		return true;
	if (__atomic_load_n(&head->rounds, __ATOMIC_RELAXED) + 1 == round)
		__atomic_store_n(&head->gave_up, round, __ATOMIC_RELAXED);
	return false;
}

INLINE bool is_room(__u32 stream, __u64 end)
{
	bool is_chatter = stream == RING_CALLS || stream == RING_RANGES;
	__u64 size = self->ring_bytes, most = is_chatter ? size - size / KEPT : size;

	if (!SELDOM(end - taken() > most))
		return true;
	return stream == RING_MEMORY && is_room_soon(end);
}

/* A ring begins anew when all that is behind it was read: as long as gpuscope keeps up, the same memory is written to, which the
 * processor has in its caches.
 */
INLINE void begin_anew(__u64 head)
{
	if (SELDOM(head - self->base >= ANEW_BYTES) && head == taken())
		self->base = head;
}

/* Where the next records come to lie: gpuscope has read there, and its processor has to give it back first. */
INLINE void fetch_ahead(const char *at)
{
	for (__u32 line = 0; line < LINES_AHEAD; line++)
		asm volatile("prefetchw %0" : : "m"(at[line * 64]));
}

/* Room for a record; NULL: there is none. It is nobody else's until it is submitted. */
static void *reserve(__u32 stream, __u32 bytes)
{
	__u64 whole = (sizeof(struct ring_record) + bytes + 15) & ~15ull, head = self->head,
	      size = self->ring_bytes;
	struct ring_record *record;
	__u64 left, filler;

	begin_anew(head);
	left = size - ((head - self->base) & (size - 1));
	filler = left < whole ? left : 0;
	if (SELDOM(!is_room(stream, head + filler + whole)))
		return NULL;
	if (SELDOM(filler)) {
		record = record_at(head);
		record->bytes = (__u32)(filler - sizeof(*record));
		record->stream = RING_FILLER;
		head += filler;
	}
	record = record_at(head);
	record->bytes = bytes;
	record->stream = stream;
	record->stamp = local()->now;
	local()->reserved = head + whole;
	fetch_ahead((const char *)record + whole);
	return record + 1;
}

INLINE void submit_record(void)
{
	__atomic_store_n(&self->head, local()->reserved, __ATOMIC_RELEASE);
}

static long output(__u32 stream, const void *from, __u32 bytes)
{
	void *record = reserve(stream, bytes);

	if (!record)
		return FULL;
	memcpy(record, from, bytes);
	submit_record();
	return 0;
}

#endif
