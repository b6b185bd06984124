/* Functions of the kernel, and tracepoints. The kernel leaves out, and counts, what would run a program on a CPU that is
 * within the same one, or, where probes and tracepoints are used, within any. A trampoline's program (fentry, fexit)
 * can be interrupted on its CPU by that of another function, and by another thread. What such a program works on is
 * kernel_desk.bpf.h's, where its words lie kernel_place.bpf.h's.
 */
#ifndef GPUSCOPE_KERNEL_BPF_H
#define GPUSCOPE_KERNEL_BPF_H

#include "event.bpf.h"
#include "frame.bpf.h"
#include "kernel_desk.bpf.h"
#include "kernel_place.bpf.h"
#include "watch.bpf.h"

/* Open calls on behalf of nobody. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct kernel_call_key);
	__type(value, struct frame);
} kernel_calls SEC(".maps");

static __always_inline void finish_in_kernel(const struct spec *spec, struct frame *frame,
					     struct finished *call, __u32 row, struct aggregate_text *text)
{
	struct total_key key = { .tgid = call->tgid, .row = row };

	if (!(call->flags & EVENT_NO_ARGS)) {
		if (spec->values)
			call->unreadable = read_values(spec, frame);
		if (spec->scale)
			call->bytes = size_of_call(spec, frame);
	}
	count(spec, &key, call->duration, call->result, call->bytes);
	if (!spec->hook.flags || hook_passed_in_kernel(spec, frame, text, call, row))
		show(spec, frame, call, row);
}

/* Whose call this is; false: it is none of ours. */
static __always_inline bool kernel_admits(const struct spec *spec, __u64 *ids, struct thread **thread)
{
	*thread = NULL;
	*ids = 0;
	if (spec->ground & GROUND_ANY_TASK)
		return true;
	*thread = thread_known();
	*ids = *thread ? (*thread)->ids : bpf_get_current_pid_tgid();
	return (*thread && watched_once_for_all()) || watched(*ids >> 32);
}

/* A call that is seen once. */
static __always_inline void kernel_once(const struct spec *spec, struct desk *desk, struct thread *thread,
					__u64 ids, __u32 row, __u32 flags)
{
	struct finished call = { .tgid = ids >> 32, .tid = (__u32)ids, .flags = flags | EVENT_NO_RETURN };
	struct frame *frame = &desk->frame;

	frame->entered = bpf_ktime_get_ns();
	frame->row = row;
	frame->caller = 0;
	frame->depth = 0;
	if (thread)
		set_caller(thread, thread->depth, frame);
	finish_in_kernel(spec, frame, &call, row, &desk->text);
}

/* A call that will return. */
static __always_inline void kernel_opened(const struct spec *spec, struct frame *words, struct thread *thread,
					  __u64 sp, __u32 row, __u32 flags)
{
	struct kernel_call_key key = { .sp = sp, .row = row };
	struct frame *frame;

	words->entered = bpf_ktime_get_ns();
	words->row = row;
	words->pad = (__u16)flags;
	if (spec->ground & GROUND_ANY_TASK) {
		words->caller = 0;
		words->depth = 0;
		bpf_map_update_elem(&kernel_calls, &key, words, BPF_ANY);
		return;
	}
	frame = thread ? frame_pushed(thread, spec, sp, row, words->entered, true) : NULL;
	if (!frame)
		return;
	frame->pad = (__u16)flags;
	__builtin_memcpy(frame->word, words->word, sizeof(frame->word));
}

/* ---- what the three kinds of programs are given ---- */

enum kernel_way { BY_PROBE, BY_TRAMPOLINE, BY_TRACEPOINT };

/* A place on the stack that this call has alone while it is open. Entry and return of a trampoline get one address, that
 * of the saved arguments; the way through memory makes a number of it.
 */
static __always_inline __u64 place_of_call(void *ctx, struct desk *desk, enum kernel_way way)
{
	volatile __u64 *sp = &desk->frame.sp;

	if (way == BY_PROBE)
		return PT_REGS_SP((struct pt_regs *)ctx);
	*sp = (__u64)ctx;
	return *sp;
}

static __always_inline void probed_words(struct pt_regs *ctx, struct frame *frame)
{
	frame->word[WORD_VALUES] = PT_REGS_PARM1(ctx);
	frame->word[WORD_VALUES + 1] = PT_REGS_PARM2(ctx);
	frame->word[WORD_VALUES + 2] = PT_REGS_PARM3(ctx);
	frame->word[WORD_VALUES + 3] = PT_REGS_PARM4(ctx);
	frame->word[WORD_VALUES + 4] = PT_REGS_PARM5(ctx);
	frame->word[WORD_VALUES + 5] = PT_REGS_PARM6(ctx);
}

/* Arguments that the function does not have are 0. */
static __always_inline void trampoline_words(void *ctx, const struct spec *spec, struct frame *frame,
					     __u32 number)
{
	__u32 to = number ? WORD_VALUES : 0;

	for (__u32 i = 0; i < WIRE_REGS; i++) {
		__u64 word = 0;

		bpf_get_func_arg(ctx, i, &word);
		frame->word[to + i] = word;
	}
	for (__u32 i = 0; i < WIRE_STACK && !number; i++) {
		__u64 word = 0;

		if (i >= spec->stack_words)
			break;
		bpf_get_func_arg(ctx, WIRE_REGS + i, &word);
		frame->word[WORD_STACK + i] = word;
	}
}

static __always_inline void entered_words(void *ctx, const struct spec *spec, struct frame *frame,
					  __u32 number, enum kernel_way way)
{
	if (way == BY_TRACEPOINT)
		frame->word[WORD_VALUES] = (__u64)ctx;
	else if (way == BY_TRAMPOLINE)
		trampoline_words(ctx, spec, frame, number);
	else if (number)
		probed_words(ctx, frame);
	else
		save_words(frame, spec, ctx);
}

static __always_inline int kernel_entry(void *ctx, enum kernel_way way)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), ids;
	__u32 row = (__u32)cookie, number = cookie >> 32, flags = 0, taken;
	const struct spec *spec = bpf_map_lookup_elem(&specs, &row);
	struct thread *thread;
	struct desk *desk;

	if (!spec || !counting() || !kernel_admits(spec, &ids, &thread))
		return 0;
	taken = take_desk();
	desk = desk_at(taken);
	if (!desk)
		return 0;
	entered_words(ctx, spec, &desk->frame, number, way);
	if (kernel_words(&desk->frame, number, &flags)) {
		count_entry(row, 0);
		if (!thread && !(spec->ground & GROUND_ANY_TASK))
			thread = thread_made(ids);
		if (way != BY_TRACEPOINT && (spec->flags & SPEC_RETURN))
			kernel_opened(spec, &desk->frame, thread, place_of_call(ctx, desk, way), row, flags);
		else
			kernel_once(spec, desk, thread, ids, row, flags);
	}
	give_back_desk(taken);
	return 0;
}

/* `desk` is for what the program needs now; the call's own words are where its entry left them. */
static __always_inline void kernel_closed(const struct spec *spec, struct desk *desk, struct thread *thread,
					  struct finished *call, __u64 sp, __u32 row)
{
	struct kernel_call_key key = { .sp = sp, .row = row };
	__u64 now = bpf_ktime_get_ns();
	struct frame *frame = NULL;

	if (spec->ground & GROUND_ANY_TASK)
		frame = bpf_map_lookup_elem(&kernel_calls, &key);
	else if (thread)
		frame = frame_returned(thread, sp, row);
	if (!frame)
		return; /* entered before we came, not meant, or nested too deeply: known by what was entered */
	call->flags = frame->pad;
	call->duration = now - frame->entered;
	finish_in_kernel(spec, frame, call, row, &desk->text);
	if (spec->ground & GROUND_ANY_TASK)
		bpf_map_delete_elem(&kernel_calls, &key);
}

static __always_inline int kernel_return(void *ctx, __u64 result, enum kernel_way way)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), ids;
	__u32 row = (__u32)cookie, taken;
	const struct spec *spec = bpf_map_lookup_elem(&specs, &row);
	struct finished call = { .result = result };
	struct thread *thread;
	struct desk *desk;

	if (!spec || !counting() || !(spec->flags & SPEC_RETURN) || !kernel_admits(spec, &ids, &thread))
		return 0;
	taken = take_desk();
	desk = desk_at(taken);
	if (!desk)
		return 0;
	call.tgid = ids >> 32;
	call.tid = (__u32)ids;
	kernel_closed(spec, desk, thread, &call, place_of_call(ctx, desk, way) - (way == BY_PROBE ? 8 : 0),
		      row);
	give_back_desk(taken);
	return 0;
}

SEC("kprobe")
int kernel_entered(struct pt_regs *ctx)
{
	return kernel_entry(ctx, BY_PROBE);
}

SEC("kretprobe")
int kernel_returned(struct pt_regs *ctx)
{
	return kernel_return(ctx, PT_REGS_RC(ctx), BY_PROBE);
}

SEC("tracepoint")
int kernel_passed(void *ctx)
{
	return kernel_entry(ctx, BY_TRACEPOINT);
}

/* Loaded once for each function. */
SEC("fentry")
int trampoline_entered(void *ctx)
{
	return kernel_entry(ctx, BY_TRAMPOLINE);
}

SEC("fexit")
int trampoline_returned(void *ctx)
{
	__u64 result = 0;

	bpf_get_func_ret(ctx, &result);
	return kernel_return(ctx, result, BY_TRAMPOLINE);
}

#endif
