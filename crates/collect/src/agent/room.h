/* Memory for code, where the jumps of a file's patched functions reach it. */
#ifndef GPUSCOPE_AGENT_ROOM_H
#define GPUSCOPE_AGENT_ROOM_H

#include "areas.h"
#include "clock.h"

#define NEAR 0x7ff00000ull /* that a jump reaches, with something to spare */
#define STEPS 64

#define PROT_RW 3
#define PROT_RX 5
#define MAP_PRIVATE_ANON 0x22
#define MAP_FIXED_ 0x10
#define MAP_SHARED_LAZY 0x4001 /* and without reserve */
#define MAP_NOREPLACE 0x100000

/* The code that patched functions of one file need, where their jumps reach it. */
struct room {
	char *at;
	__u64 bytes;
	__u64 used;
};

INLINE bool is_near(__u64 one, __u64 other)
{
	__u64 apart = one > other ? one - other : other - one;

	return apart < NEAR;
}

INLINE __u64 map_near(__u64 hint, __u64 bytes, __u64 from, __u64 to)
{
	long at = SYS6(mmap, hint, bytes, PROT_RW, MAP_PRIVATE_ANON | (hint ? MAP_NOREPLACE : 0), -1, 0);

	if (failed_call(at))
		return 0;
	if (is_near((__u64)at, to) && is_near((__u64)at + bytes, from))
		return (__u64)at;
	SYS2(munmap, at, bytes);
	return 0;
}

/* What lies between areas. */
struct gap {
	__u64 from; /* what has to be reached */
	__u64 to;
	__u64 bytes;
	__u64 end; /* of the last area */
	__u64 at;  /* memory in it; 0: there is none */
};

static bool fits(const struct area *area, void *with)
{
	struct gap *gap = with;
	__u64 begin = gap->end;

	gap->end = area->to;
	if (area->from > begin && area->from - begin >= gap->bytes + ARENA_PAGE && begin >= LOWEST_ADDRESS &&
	    is_near(begin, gap->to) && is_near(begin + gap->bytes, gap->from))
		gap->at = map_near(begin, gap->bytes, gap->from, gap->to);
	return gap->at;
}

/* Memory near all that lies from `from` to `to`. */
static __u64 room_near(__u64 from, __u64 to, __u64 bytes)
{
	__u64 at = map_near(0, bytes, from, to);

	for (__u64 step = 1; !at && step <= STEPS; step++) {
		__u64 apart = step * (16 << 20) + bytes;

		if (from > apart)
			at = map_near((from - apart) & ~(ARENA_PAGE - 1ull), bytes, from, to);
		if (!at)
			at = map_near((to + apart) & ~(ARENA_PAGE - 1ull), bytes, from, to);
	}
	if (!at) {
		struct gap gap = { from, to, bytes, 0, 0 };

		look_at_areas(fits, &gap);
		at = gap.at;
	}
	return at;
}

INLINE char *append(struct room *room, const void *bytes, __u64 count)
{
	char *at = room->at + room->used;

	memcpy(at, bytes, count);
	room->used += count;
	return at;
}

#endif
