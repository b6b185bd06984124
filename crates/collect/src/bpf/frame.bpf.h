/* The open calls of a thread. */
#ifndef GPUSCOPE_FRAME_BPF_H
#define GPUSCOPE_FRAME_BPF_H

#include "capture.bpf.h"
#include "finished.bpf.h"

/* How far above an open call's stack pointer one of the same stack can lie. Stacks of the kernel, which lie close to
 * each other, are aligned to their size.
 */
static __always_inline __u64 stack_span(__u64 sp)
{
	return sp >> 63 ? sp & (KERNEL_STACK - 1) : STACK_SPAN;
}

/* So many more calls that put something into a stream are open, fewer if negative: as long as there is one, nobody
 * knows that the devices of the process have nothing to do.
 */
static __noinline int count_open(__u32 tgid, __s64 more)
{
	__u32 slot = tgid & (FLOWS - 1);
	struct flow *flow = bpf_map_lookup_elem(&flows, &slot);

	if (flow)
		__sync_fetch_and_add(&flow->open, more);
	return 0;
}

/* To be called when everything that the call did has been told. */
static __always_inline void left(const struct frame *frame, __u64 ids)
{
	if (frame && SELDOM(frame->marks & FRAME_SUBMITS))
		count_open(ids >> 32, -1);
}

/* The open calls of a thread that is no more, or has become another program. */
static __noinline int leave_all(struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
	__s64 open = 0;

	if (!thread)
		return 0;
	/* without a branch for each: the verifier would follow every number of them */
	for (__u32 i = 0; i < WIRE_FRAMES && i < thread->depth; i++)
		open += thread->frames[i].marks & FRAME_SUBMITS;
	thread->ended_in = thread->depth;
	thread->depth = 0;
	if (open)
		count_open(thread->ids >> 32, -open);
	return 0;
}

/* A call left by longjmp or an exception never returns: its frame lies below the new one's. */
__noinline int drop_abandoned(struct thread *thread, __u64 sp, __u32 row)
{
	if (!thread)
		return 0;
	for (int i = 0; i < WIRE_FRAMES; i++) {
		__u32 top = thread->depth - 1;
		struct frame *frame;

		if (top >= WIRE_FRAMES)
			return 0;
		frame = &thread->frames[top];
		if (frame->sp > sp || sp - frame->sp > stack_span(sp))
			return 0;
		if (frame->sp == sp && frame->row != row)
			return 0; /* a tail call: both return together */
		left(frame, thread->ids);
		thread->depth = top;
	}
	return 0;
}

/* Notes which streamed call `frame` lies in, given that `depth` calls are open. */
static __always_inline void set_caller(const struct thread *thread, __u32 depth, struct frame *frame)
{
	const struct frame *around;

	frame->caller = 0;
	frame->depth = 0;
	if (depth - 1 >= WIRE_FRAMES)
		return;
	around = &thread->frames[depth - 1];
	frame->caller = around->streamed ? around->entered : around->caller;
	frame->depth = around->depth + (around->streamed ? 1 : 0);
}

/* What is put into a stream from now on is told of, even if something was before. */
static __noinline __u64 next_generation(__u32 tgid)
{
	__u32 slot = tgid & (FLOWS - 1);
	struct flow *flow = bpf_map_lookup_elem(&flows, &slot);

	return flow ? __sync_fetch_and_add(&flow->generation, 1) + 1 : 0;
}

/* A new open call that returns to `sp`; NULL: too many are open, its return will count without arguments. `counts`: else
 * it was entered before calls counted, and no record of it will come.
 */
static __always_inline struct frame *frame_pushed(struct thread *thread, const struct spec *spec, __u64 sp,
						  __u32 row, __u64 now, bool counts)
{
	struct frame *frame;
	__u32 depth;

	if (SELDOM(sp > thread->top) && !(sp >> 63))
		thread->top = sp;
	depth = thread->depth;
	if (depth - 1 < WIRE_FRAMES && SELDOM(thread->frames[depth - 1].sp <= sp)) {
		drop_abandoned(thread, sp, row);
		depth = thread->depth;
	}
	if (SELDOM(depth >= WIRE_FRAMES))
		return NULL;
	thread->depth = depth + 1;
	frame = &thread->frames[depth];
	frame->entered = now;
	frame->sp = sp;
	frame->row = row;
	frame->streamed = counts && (spec->flags & SPEC_STREAM);
	frame->marks = counts ? 0 : FRAME_BEFORE;
	if (SELDOM(options.fleet) && spec->work.step >= WORK_SUBMIT)
		frame->marks |= FRAME_SUBMITS;
	if (SELDOM(frame->marks & FRAME_SUBMITS))
		count_open(thread->ids >> 32, 1);
	if (SELDOM(spec->work.flags & WORK_ANCHOR))
		frame->generation = next_generation(thread->ids >> 32);
	set_caller(thread, depth, frame);
	return frame;
}

static __always_inline void frame_open(struct thread *thread, struct pt_regs *ctx, const struct spec *spec,
				       __u32 row, __u64 now, bool counts)
{
	struct frame *frame = frame_pushed(thread, spec, PT_REGS_SP(ctx), row, now, counts);

	if (frame)
		save_words(frame, spec, ctx);
}

/* The index of the open call that returns to `sp`, or WIRE_FRAMES. Everything above it is abandoned. */
__noinline __u32 frame_close(struct thread *thread, __u64 sp, __u32 row)
{
	__s64 abandoned = 0;
	__u32 index;

	if (!thread)
		return WIRE_FRAMES;
	index = thread->depth;
	for (int i = 0; i < WIRE_FRAMES; i++) {
		index--;
		if (index >= WIRE_FRAMES)
			return WIRE_FRAMES;
		if (thread->frames[index].sp == sp && thread->frames[index].row == row) {
			thread->depth = index;
			if (abandoned)
				count_open(thread->ids >> 32, -abandoned);
			return index;
		}
		abandoned += thread->frames[index].marks & FRAME_SUBMITS;
	}
	return WIRE_FRAMES;
}

static __always_inline struct frame *spare_frame(struct thread *thread, __u32 row, __u64 entered)
{
	struct frame *frame = &thread->spare;

	frame->entered = entered;
	frame->row = row;
	set_caller(thread, thread->depth, frame);
	return frame;
}

/* The frame of the call that returns, or NULL. */
static __always_inline struct frame *frame_returned(struct thread *thread, __u64 sp, __u32 row)
{
	__u32 index = thread->depth - 1;

	if (index < WIRE_FRAMES && thread->frames[index].sp == sp && thread->frames[index].row == row)
		thread->depth = index;
	else
		index = frame_close(thread, sp, row);
	if (SELDOM(index >= WIRE_FRAMES))
		return NULL;
	return &thread->frames[index & (WIRE_FRAMES - 1)]; /* the mask is for the verifier */
}

/* The call is counted; its arguments are not known. */
static __always_inline void without_words(struct finished *call, __u32 row)
{
	struct row_counter *counter = bpf_map_lookup_elem(&row_counters, &row);

	call->flags |= EVENT_NO_ARGS;
	if (counter)
		ADD_OWN(&counter->no_frame, 1);
}

static __always_inline struct frame *frame_missing(struct thread *thread, __u32 row, __u64 entered,
						   struct finished *call)
{
	without_words(call, row);
	return spare_frame(thread, row, entered);
}

#endif
