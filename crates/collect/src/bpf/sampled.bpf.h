/* The stack that a thread was seen with last, of threads that call CUDA. When it is taken is sample.bpf.h's business. */
#ifndef GPUSCOPE_SAMPLED_BPF_H
#define GPUSCOPE_SAMPLED_BPF_H

#include "site.bpf.h"

/* Only the programs of sample.bpf.h write it, which run for their own thread with interrupts off: one at a time. */
struct sampled {
	__u64 sequence;  /* odd: it is being changed */
	__u64 off_since; /* when the thread left its CPU, 0: it is on one; CLOCK_MONOTONIC ns, as the others */
	__u64 next;      /* when stacks would be taken at their greatest rate, were each taken in its turn */
	__u64 left_with; /* when the stack was taken, if the thread left its CPU with it outside CUDA; else 0 */
	/* from here on it goes to user space */
	__u64 at; /* when the stack was taken, 0: none was; of a sample: when it ends */
	__u64 ns; /* of a sample: the time that it stands for */
	struct site_scratch stack;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sampled);
} sampled_threads SEC(".maps");

/* keeps the type in the object's BTF, for the skeleton */
const struct sampled *sampled_type __attribute__((unused));

/* Threads that may be sampled, by the lower bits of their ids: others, which are most, cost no look into a table. */
#define SAMPLED_SLOTS 4096
__u8 may_be_sampled[SAMPLED_SLOTS];

static __always_inline void begin_samples(struct task_struct *task)
{
	if (!options.samples)
		return;
	bpf_task_storage_get(&sampled_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	may_be_sampled[(__u32)task->pid & (SAMPLED_SLOTS - 1)] = 1;
}

#endif
