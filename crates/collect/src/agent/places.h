/* Which ring, or place in a thread's block, is which map of the body; tables are known while this is compiled (host.h). */
#ifndef GPUSCOPE_AGENT_PLACES_H
#define GPUSCOPE_AGENT_PLACES_H

#include "host.h"
#include "call.bpf.h"
#include "unwind.h"

#define BIND(map, place) ((map).type = (void *)(unsigned long)(place))
#define AFTER(place, type) ((__u32)((place) + ((sizeof(type) + 63) & ~63ul)))

static void bind(void)
{
	__u32 at_thread = sizeof(struct local), at_kernel = AFTER(at_thread, struct thread),
	      at_site = AFTER(at_kernel, struct kernel_scratch);

	rules_at = AFTER(at_site, struct site_scratch);

	_Static_assert(BLOCK_LOCAL + sizeof(struct local) == BLOCK_THREAD, "one follows the other");
	_Static_assert(sizeof(struct local) + sizeof(struct thread) + sizeof(struct kernel_scratch) +
				       sizeof(struct site_scratch) + sizeof(struct rules) + 256 <
			       BLOCK_ROWS - BLOCK_LOCAL,
		       "they lie before the rows");
	BIND(kernel_scratches, at_kernel);
	BIND(site_scratches, at_site);
	BIND(events, RING_CALLS);
	BIND(memory, RING_MEMORY);
	BIND(work, RING_WORK);
}

#endif
