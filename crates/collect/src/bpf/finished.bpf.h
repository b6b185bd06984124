/* A call that has ended, as far as it is known without its arguments. */
#ifndef GPUSCOPE_FINISHED_BPF_H
#define GPUSCOPE_FINISHED_BPF_H

#include "state.bpf.h"

struct finished {
	__u64 entered;
	__u64 duration;
	__u64 result;
	__u64 bytes;
	__u64 context;
	__u64 site;
	__u32 tgid;
	__u32 tid;
	__u32 unreadable;
	__u32 flags;
	__u32 where; /* of the function: SITE_AT_ENTRY, SITE_AT_PLACE, or 0 at its return */
	__u32 pad;
	__u64 operand; /* that is summed up */
	__u64 group;   /* by which */
};

#endif
