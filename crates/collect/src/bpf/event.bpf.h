/* The event plane: one record for a call, or a counted loss. */
#ifndef GPUSCOPE_EVENT_BPF_H
#define GPUSCOPE_EVENT_BPF_H

#include "aggregate.bpf.h"
#include "launch.bpf.h"
#include "memory.bpf.h"
#include "work.bpf.h"

#define MEDIUM_BYTES offsetof(struct call_event, block)
#define SMALL_BYTES offsetof(struct call_event, stack)

static __always_inline void fill_small(struct call_event *event, const struct frame *frame,
				       const struct finished *call, __u8 size)
{
	event->head.entered = frame->entered;
	event->head.duration = call->duration;
	event->head.caller = frame->caller;
	event->head.result = call->result;
	event->head.tgid = call->tgid;
	event->head.tid = call->tid;
	event->head.row = frame->row;
	event->head.depth = frame->depth;
	event->head.flags = (__u8)call->flags | (call->unreadable ? EVENT_UNREADABLE : 0);
	event->head.size = size;
	event->head.unreadable = (__u8)call->unreadable;
	__builtin_memcpy(event->regs, frame->word, sizeof(event->regs));
	__builtin_memcpy(event->near_values, frame->word + WORD_VALUES, sizeof(event->near_values));
}

static __always_inline void fill_medium(struct call_event *event, const struct frame *frame)
{
	__builtin_memcpy(event->stack, frame->word + WORD_STACK, sizeof(event->stack));
	__builtin_memcpy(event->far_values, frame->word + WORD_VALUES + 2, sizeof(event->far_values));
}

static __always_inline void fill_large(struct call_event *event, const struct spec *spec,
				       const struct frame *frame)
{
	__u32 bytes = (__u32)spec->block_qwords * 8;

	__builtin_memset(event->block, 0, sizeof(event->block));
	if (bytes > sizeof(event->block))
		bytes = sizeof(event->block);
	if (bytes) {
		__u64 pointer = word_at(frame, spec->block_word);

		if (!pointer || read_pointed(spec, event->block, bytes, pointer + spec->block_offset))
			event->head.unreadable |= UNREADABLE_BLOCK;
	}
	for (int i = 0; i < WIRE_TEXTS; i++) {
		event->text[i * WIRE_TEXT] = 0;
		if (i < spec->texts && read_text_pointed(spec, event->text + i * WIRE_TEXT, WIRE_TEXT,
							 word_at(frame, spec->text_word[i])) < 0)
			event->head.unreadable |= UNREADABLE_TEXT_1 >> i;
	}
}

/* One event in 32 looks whether the reader has to be woken. */
static __always_inline void submit(void *event, __u64 entered)
{
	bool crowded =
		!(entered & 31) && bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > options.ring_soft_limit;

	bpf_ringbuf_submit(event, crowded ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

static __noinline int send_more(const struct spec *spec, const struct frame *frame,
				const struct finished *call)
{
	struct call_event *event;

	if (spec->size == SIZE_MEDIUM) {
		event = bpf_ringbuf_reserve(&events, MEDIUM_BYTES, 0);
		if (!event)
			return 0;
		fill_small(event, frame, call, SIZE_MEDIUM);
		fill_medium(event, frame);
	} else {
		event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
		if (!event)
			return 0;
		fill_small(event, frame, call, SIZE_LARGE);
		fill_medium(event, frame);
		fill_large(event, spec, frame);
	}
	submit(event, frame->entered);
	return 1;
}

/* 1: sent, 0: the ring is full. */
static __always_inline int send(const struct spec *spec, const struct frame *frame,
				const struct finished *call)
{
	struct call_event *event;

	if (spec->size != SIZE_SMALL)
		return send_more(spec, frame, call);
	event = bpf_ringbuf_reserve(&events, SMALL_BYTES, 0);
	if (!event)
		return 0;
	fill_small(event, frame, call, SIZE_SMALL);
	submit(event, frame->entered);
	return 1;
}

static __always_inline bool wanted(const struct spec *spec, const struct finished *call)
{
	if (!(spec->flags & SPEC_STREAM))
		return false;
	if (SELDOM(options.only_errors) && !failed(spec, call->result))
		return false;
	return call->duration >= options.min_ns;
}

/* Sends the event that is wanted of a call, or counts its loss. */
static __always_inline void show(const struct spec *spec, const struct frame *frame,
				 const struct finished *call, __u32 row)
{
	struct row_counter *counter;

	if (!wanted(spec, call) || !SELDOM(!(frame && send(spec, frame, call))))
		return;
	__sync_fetch_and_add(&control.events_lost, 1);
	counter = bpf_map_lookup_elem(&row_counters, &row);
	if (counter)
		ADD_OWN(&counter->lost, 1);
}

/* `frame` NULL: the call is only counted, or there is no memory for its thread. */
static __always_inline void finish(void *ctx, const struct spec *spec, struct frame *frame,
				   struct thread *thread, struct finished *call, __u32 row)
{
	struct total_key key = { .tgid = call->tgid, .row = row };

	if (SELDOM(spec->flags & SPEC_UNLOAD) && !refused(spec, call->result))
		__sync_fetch_and_add(&control.unloads, 1);
	if (frame && !(call->flags & EVENT_NO_ARGS)) {
		if (spec->values)
			call->unreadable = read_values(spec, frame);
		if (spec->scale)
			call->bytes = size_of_call(spec, frame);
		if (spec->variant[0].word != WORD_NONE)
			key.variant = variant_of(spec, frame);
		if (thread && touches_memory(spec))
			remember(ctx, spec, frame, thread, call);
		if (thread && (spec->flags & SPEC_KERNEL))
			key.variant = launched(spec, frame, thread, call);
		if (thread && spec->work.step)
			work_ended(ctx, spec, frame, thread, call, key.variant);
	} else {
		if (spec->flags & SPEC_KERNEL)
			key.variant = KERNEL_NO_ARGS;
		if (spec->flags & SPEC_MEMORY)
			lose_memory_call(call->tgid, spec->flags & SPEC_SITE, 0);
		if (spec->work.step)
			lose_work(call->tgid, spec->work.step >= WORK_COPY, 0);
	}
	if (SELDOM(spec->launch.role > ROLE_LAUNCH))
		key.variant = follow_names(spec, frame, call, entered_with((struct pt_regs *)ctx));
	count(spec, &key, call->duration, call->result, call->bytes);
	if (!SELDOM(spec->hook.flags) || hook_passed(ctx, spec, frame, thread, call, row))
		show(spec, frame, call, row);
}

#endif
