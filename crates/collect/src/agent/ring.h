/* The ring of a thread: records of all streams in the order in which it submits them. What finds no room is refused, and the
 * body counts it. */
#ifndef GPUSCOPE_AGENT_RING_H
#define GPUSCOPE_AGENT_RING_H

#include "arena.h"
#include "thread.h"

INLINE struct ring_record *record_at(__u64 position)
{
	return (struct ring_record *)((char *)self + BLOCK_RING + (position & (self->ring_bytes - 1)));
}

/* Room for a record; NULL: there is none. It is nobody else's until it is submitted. */
static void *reserve(__u32 stream, __u32 bytes)
{
	__u64 whole = (sizeof(struct ring_record) + bytes + 15) & ~15ull, head = self->head,
	      size = self->ring_bytes;
	__u64 left = size - (head & (size - 1)), filler = left < whole ? left : 0;
	struct ring_record *record;

	if (head + filler + whole - __atomic_load_n(&self->tail, __ATOMIC_ACQUIRE) > size)
		return NULL;
	if (filler) {
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
