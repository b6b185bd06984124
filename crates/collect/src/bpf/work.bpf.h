/* The work plane: what is put into streams, and what tells that it has been done. Of submissions only the first one
 * of a stream after something that may have told so: those that follow change nothing.
 */
#ifndef GPUSCOPE_WORK_BPF_H
#define GPUSCOPE_WORK_BPF_H

#include "work_record.bpf.h"

#define BLOCKED_NS 20000 /* shorter waits are not worth a stack */

static __always_inline bool worth_a_stack(const struct spec *spec, const struct finished *call)
{
	return (spec->work.flags & WORK_SITE) &&
	       ((spec->work.flags & WORK_EACH) || call->duration >= BLOCKED_NS);
}

static __always_inline void note_capture(struct flow *flow, __u8 flags)
{
	if (flags & WORK_BEGINS_CAPTURE)
		__sync_fetch_and_add(&flow->captures, 1);
	if ((flags & WORK_ENDS_CAPTURE) && flow->captures)
		__sync_fetch_and_add(&flow->captures, -1);
}

/* Whether a submission says nothing that is not known from an earlier one. */
static __always_inline bool says_nothing(const struct spec *spec, const struct flow *flow,
					 const struct lane *lane, const struct frame *frame, __u64 duration)
{
	return spec->work.step == WORK_SUBMIT && lane && lane->generation == flow->generation &&
	       lane->since <= frame->entered && !flow->captures && !(spec->work.flags & WORK_EACH) &&
	       duration < WIRE_SLOW_NS;
}

/* The kernel that a node of a graph launches. */
__noinline __u64 kernel_of_node(const struct spec *spec, const struct frame *frame, struct thread *thread)
{
	__u64 handle = 0, id = 0;

	if (!spec || !frame || !thread)
		return 0;
	for (__u32 i = 1; i < WIRE_WORK && !handle; i++)
		if (i == (__u32)spec->work.parts - 1 || i == (__u32)spec->work.parts - 2)
			read_part(frame, &spec->work.part[i], &handle);
	if (handle)
		kernel_of(thread, handle, &id);
	return id;
}

__noinline int tell(const struct spec *spec, const struct frame *frame, struct thread *thread,
		    const struct finished *call, __u64 variant)
{
	struct flow *flow;
	__u32 slot;
	struct told told = { .variant = variant };
	struct lane_key key = {};
	struct lane *lane = NULL;
	bool submits;

	if (!spec || !frame || !thread || !call)
		return 0;
	slot = call->tgid & (FLOWS - 1);
	flow = bpf_map_lookup_elem(&flows, &slot);
	if (!flow)
		return 0;
	submits = spec->work.step >= WORK_SUBMIT;
	note_capture(flow, spec->work.flags);
	if (!lane_of(&spec->work, frame, thread, call->context, &key))
		return lose_work(call->tgid, spec->work.step >= WORK_COPY, call->bytes);
	if (submits)
		lane = lane_made(&key);
	else if (spec->work.stream.bytes)
		lane = bpf_map_lookup_elem(&lanes, &key);
	if (lane)
		told.submitted = submits ? __sync_fetch_and_add(&lane->submitted, 1) + 1 : lane->submitted;
	if (says_nothing(spec, flow, lane, frame, call->duration))
		return 0;
	told.generation_now = flow->generation;
	told.generation = spec->work.flags & WORK_ANCHOR ? frame->generation : told.generation_now;
	told.lost = flow->lost;
	if (spec->work.step == WORK_BATCH)
		return tell_batch(spec, frame, call, &key, &told);
	if (!tell_work(spec, frame, call, &key, &told))
		return 0;
	if (spec->work.step == WORK_SUBMIT && lane) {
		lane->since = frame->entered;
		lane->generation = told.generation;
	}
	if (spec->work.flags & WORK_ENDS_LANE)
		bpf_map_delete_elem(&lanes, &key);
	return 0;
}

/* Tells of a call that has ended with its arguments known. A poll that found work unfinished has not succeeded. */
static __always_inline void work_ended(void *ctx, const struct spec *spec, const struct frame *frame,
				       struct thread *thread, struct finished *call, __u64 variant)
{
	/* a capture ends even where that fails */
	if ((__s32)call->result && !(spec->work.flags & WORK_ENDS_CAPTURE))
		return;
	call->context = current_context(thread);
	if (!call->site && worth_a_stack(spec, call))
		call->site = site_here(ctx, (__u64)call->tgid << 32 | call->tid, call->where, false);
	/* not in there, where it would take more stack than there is */
	if (spec->work.flags & WORK_KERNEL)
		variant = kernel_of_node(spec, frame, thread);
	tell(spec, frame, thread, call, variant);
}

#endif
