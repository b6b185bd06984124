/* The memory plane: one record for each call that changes who holds memory, or a counted loss. */
#ifndef GPUSCOPE_MEMORY_BPF_H
#define GPUSCOPE_MEMORY_BPF_H

#include "capture.bpf.h"
#include "count.bpf.h"
#include "finished.bpf.h"
#include "site.bpf.h"

#define LARGE_BYTES_OF_MEMORY (1 << 20)

/* ---- the current context of a thread ---- */

static __always_inline __u64 current_context(const struct thread *thread)
{
	__u32 top = thread->contexts - 1;

	return top < CONTEXTS ? thread->context[top] : 0;
}

static __noinline int move_context(struct thread *thread, __u32 move, __u64 context)
{
	__u32 top;

	if (!thread)
		return 0;
	if (move == CONTEXT_DROP && current_context(thread) != context)
		return 0;
	if (move == CONTEXT_POP || move == CONTEXT_DROP) {
		thread->contexts -= thread->contexts > 0;
		return 0;
	}
	if (move == CONTEXT_PUSH || !thread->contexts)
		thread->contexts++;
	top = thread->contexts - 1;
	if (top < CONTEXTS)
		thread->context[top] = context;
	return 0;
}

/* ---- records ---- */

static __noinline int lose_memory_call(__u32 tgid, bool allocation, __u64 bytes)
{
	struct memory_loss *loss;
	__u32 key = tgid;

	__sync_fetch_and_add(&control.memory_lost, 1);
	loss = bpf_map_lookup_elem(&memory_losses, &key);
	if (!loss) {
		bpf_map_update_elem(&memory_losses, &key, &NO_LOSS, BPF_NOEXIST);
		loss = bpf_map_lookup_elem(&memory_losses, &key);
	}
	if (!loss)
		return 0;
	__sync_fetch_and_add(allocation ? &loss->allocations : &loss->others, 1);
	if (allocation)
		__sync_fetch_and_add(&loss->bytes, bytes);
	return 0;
}

static __always_inline __u8 unreadable_parts(const struct spec *spec, __u32 unreadable)
{
	__u8 bits = 0;

	for (__u32 i = 0; i < WIRE_PARTS && i < 8; i++) {
		__u32 value = (__u32)spec->part[i].word - WORD_VALUES;

		if (value < WIRE_VALUES && (unreadable >> value & 1))
			bits |= 1u << i;
	}
	return bits;
}

static __noinline int send_memory_call(const struct spec *spec, const struct frame *frame,
				       const struct finished *call)
{
	struct memory_call *record = bpf_ringbuf_reserve(&memory, sizeof(*record), 0);
	bool crowded;

	if (!record) {
		if (!refused(spec, call->result))
			lose_memory_call(call->tgid, spec->flags & SPEC_SITE, call->bytes);
		return 0;
	}
	record->kind = MEMORY_CALL;
	record->row = frame->row;
	record->entered = frame->entered;
	record->returned = frame->entered + call->duration;
	record->context = call->context;
	record->site = call->site;
	record->bytes = call->bytes;
	record->tgid = call->tgid;
	record->tid = call->tid;
	record->result = (__s32)call->result;
	record->unreadable = unreadable_parts(spec, call->unreadable);
	__builtin_memset(record->pad, 0, sizeof(record->pad));
	for (__u32 i = 0; i < WIRE_PARTS; i++)
		record->part[i] =
			i < spec->parts ? narrow(word_at(frame, spec->part[i].word), spec->part[i].bytes) : 0;
	crowded = !(record->entered & 31) &&
		  bpf_ringbuf_query(&memory, BPF_RB_AVAIL_DATA) > options.memory_soft_limit;
	bpf_ringbuf_submit(record, crowded ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	return 1;
}

static __always_inline bool touches_memory(const struct spec *spec)
{
	return (spec->flags & SPEC_MEMORY) || spec->context_move != CONTEXT_STAYS;
}

/* Tells of a call that has ended with its arguments known. */
static __always_inline void remember(void *ctx, const struct spec *spec, const struct frame *frame,
				     struct thread *thread, struct finished *call)
{
	if (spec->context_move != CONTEXT_STAYS && !refused(spec, call->result))
		move_context(thread, spec->context_move, word_at(frame, spec->part[0].word));
	if (!(spec->flags & SPEC_MEMORY))
		return;
	if ((spec->flags & SPEC_OUTER) && thread->remembered >= frame->entered)
		return;
	call->context = current_context(thread);
	/* before the record, so that user space knows the site when it comes */
	if ((spec->flags & SPEC_SITE) && !refused(spec, call->result))
		call->site = site_here(ctx, (__u64)call->tgid << 32 | call->tid, call->where,
				       call->bytes >= LARGE_BYTES_OF_MEMORY);
	send_memory_call(spec, frame, call);
	thread->remembered = frame->entered;
}

#endif
