/* Where the thread's own stack lies: as far as that is known, it is read as it is. */
#ifndef GPUSCOPE_AGENT_STACK_H
#define GPUSCOPE_AGENT_STACK_H

#include "areas.h"

/* The page that the stack pointer is on is there, from the pointer on, and perhaps more behind it. */
INLINE void know_pages_of_stack(__u64 sp, __u32 pages)
{
	local()->near[0] = sp;
	local()->near[1] = (sp & ~(ARENA_PAGE - 1ull)) + pages * ARENA_PAGE;
}

/* Learns where the thread's stack lies. To read the map of a process takes milliseconds where it is long. */
static void find_stack(__u64 sp)
{
	struct area area;

	if (find_area(sp, &area)) {
		local()->stack[0] = area.from;
		local()->stack[1] = area.to;
	}
}

/* How many of the words above the return address may be copied: the page that it lies on is there; whether the next one is,
 * the kernel says, and the process's map once.
 */
INLINE __u32 words_above(__u64 sp, __u32 words)
{
	__u64 from = sp + 8, next = (sp & ~(ARENA_PAGE - 1ull)) + ARENA_PAGE, left;

	if (!SELDOM(from + words * 8ull > next) || on_own_stack(from, words * 8ull))
		return words;
	if (!local()->stack[1])
		find_stack(sp);
	if (!on_own_stack(from, words * 8ull) && kernel_can_read(next))
		know_pages_of_stack(sp, 2);
	left = own_stack_from(from) / 8;
	return left < words ? (__u32)left : words;
}

#endif
