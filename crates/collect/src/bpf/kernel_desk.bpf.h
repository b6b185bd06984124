/* Room to work in that is larger than a stack: several desks for each CPU, because programs of the kernel's functions can
 * interrupt each other there. Without a free one a call is not seen, which is counted.
 */
#ifndef GPUSCOPE_KERNEL_DESK_BPF_H
#define GPUSCOPE_KERNEL_DESK_BPF_H

#include "state.bpf.h"

#define DESKS 8 /* of each CPU */

struct desk {
	struct frame frame;
	struct aggregate_text text;
};

struct desks {
	__u64 taken; /* bits */
	struct desk desk[DESKS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct desks);
} kernel_desks SEC(".maps");

/* The number of a desk that nobody uses now, until it is given back; DESKS: there is none. */
__noinline int take_desk(void)
{
	__u32 zero = 0;
	struct desks *desks = bpf_map_lookup_elem(&kernel_desks, &zero);

	for (__u32 i = 0; desks && i < DESKS; i++)
		if (!(__sync_fetch_and_or(&desks->taken, 1ull << i) & (1ull << i)))
			return i;
	__sync_fetch_and_add(&control.desks_missed, 1);
	return DESKS;
}

static __always_inline struct desk *desk_at(__u32 number)
{
	__u32 zero = 0;
	struct desks *desks = bpf_map_lookup_elem(&kernel_desks, &zero);

	return desks && number < DESKS ? &desks->desk[number & (DESKS - 1)] : NULL;
}

static __always_inline void give_back_desk(__u32 number)
{
	__u32 zero = 0;
	struct desks *desks = bpf_map_lookup_elem(&kernel_desks, &zero);

	if (desks && number < DESKS)
		__sync_fetch_and_and(&desks->taken, ~(1ull << (number & (DESKS - 1))));
}

#endif
