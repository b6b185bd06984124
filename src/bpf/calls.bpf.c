/* One generic body serves every function of the catalogue: the attach cookie is its row, `specs[row]` says
 * what to capture. It is compiled for the three ways of attaching that kernels offer (session, multi, perf
 * link); user space loads the best one. Counting is exact and happens here; events may be lost and are then
 * counted by row. Meaning is not this file's business: it copies words.
 */
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "wire.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid;
	int tgid;
	struct signal_struct *signal;
	char comm[WIRE_COMM];
} __attribute__((preserve_access_index));

/* Linux 7 gave both an argument; the loader takes the one that fits. */
extern bool bpf_session_is_return(void) __weak __ksym;
extern __u64 *bpf_session_cookie(void) __weak __ksym;
extern bool bpf_session_is_return___ctx(void *ctx) __weak __ksym;
extern __u64 *bpf_session_cookie___ctx(void *ctx) __weak __ksym;

/* An entry whose stack pointer lies this far above an open one's runs on another stack. */
#define STACK_SPAN (8ull << 20)
#define WAIT_NS (1000ull * 1000 * 1000)
#define ALIVE_NS (1000ull * 1000 * 1000)
#define MAX_SPINS (1 << 23)

/* Words of a call, numbered as in the catalogue's captures: registers, stack, values. */
#define WORDS (WIRE_REGS + WIRE_STACK + WIRE_VALUES)

struct frame {
	__u64 entered;
	__u64 sp;
	__u64 caller; /* `entered` of the streamed call around this one, 0: none */
	__u32 row;
	__u8 depth; /* streamed calls around this one */
	__u8 streamed;
	__u16 pad;
	__u64 word[WORDS];
};

struct thread {
	__u64 ids; /* as bpf_get_current_pid_tgid() gives them */
	__u32 depth;
	__u32 pad;
	struct frame frames[WIRE_FRAMES];
	struct frame spare; /* of a call that is not kept open */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct spec);
} specs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct total_key);
	__type(value, struct total);
} totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct failure_key);
	__type(value, __u64);
} failures SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct row_counter);
} row_counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u32);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} notices SEC(".maps");

const volatile struct options options;
struct control control;

/* keeps the types of both rings in the object's BTF, for the skeleton */
const struct call_event *call_event_type __attribute__((unused));
const struct notice *notice_type __attribute__((unused));

static const struct total NO_TOTAL;
static const __u64 ZERO;

/* ---- who is watched ---- */

/* Functions that are not inlined are global: the verifier looks at each once, not on every path to it. */

__noinline int comm_selected(void)
{
	char comm[WIRE_COMM] = {};

	bpf_get_current_comm(comm, sizeof(comm));
	for (__u32 i = 0; i < WIRE_COMMS; i++) {
		bool same = i < options.comms;

		for (int j = 0; j < WIRE_COMM; j++)
			if (j < options.comm_length[i] && comm[j] != options.comm[i][j])
				same = false;
		if (same)
			return true;
	}
	return false;
}

static __always_inline bool watched(__u32 tgid)
{
	if (options.only_targets && !bpf_map_lookup_elem(&targets, &tgid))
		return false;
	if (options.by_uid && (__u32)bpf_get_current_uid_gid() != options.uid)
		return false;
	if (options.by_cgroup && bpf_get_current_cgroup_id() != options.cgroup)
		return false;
	return !options.comms || comm_selected();
}

/* ---- notices ---- */

static __always_inline struct notice *notice_start(__u32 kind, __u32 tgid, __u32 tid)
{
	struct notice *notice = bpf_ringbuf_reserve(&notices, sizeof(*notice), 0);

	if (!notice) {
		__sync_fetch_and_add(&control.notices_lost, 1);
		return NULL;
	}
	__builtin_memset(notice, 0, sizeof(*notice));
	notice->kind = kind;
	notice->tgid = tgid;
	notice->tid = tid;
	notice->at = bpf_ktime_get_ns();
	bpf_get_current_comm(notice->comm, sizeof(notice->comm));
	return notice;
}

/* The state of a thread that calls for the first time; NULL: it is not watched, or there is no memory. */
static __noinline struct thread *thread_made(__u64 ids)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct notice *notice;

	if (!thread || thread->ids)
		return thread;
	thread->ids = ids;
	notice = notice_start(NOTICE_THREAD, ids >> 32, (__u32)ids);
	if (notice)
		bpf_ringbuf_submit(notice, BPF_RB_NO_WAKEUP);
	return thread;
}

static __always_inline struct thread *thread_known(void)
{
	return bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
}

/* Whether the state of a thread is enough to know that it is watched. */
static __always_inline bool watched_once_for_all(void)
{
	return !options.by_uid && !options.by_cgroup && !options.comms;
}

/* ---- counting plane ---- */

/* The highest set bit, by the place where De Bruijn's sequence puts a number whose lower bits are filled up. */
static const __u8 HIGHEST_BIT[64] = {
	0,  47, 1,  56, 48, 27, 2,  60, 57, 49, 41, 37, 28, 16, 3,  61, 54, 58, 35, 52, 50, 42,
	21, 44, 38, 32, 29, 23, 17, 11, 4,  62, 46, 55, 26, 59, 40, 36, 15, 53, 34, 51, 20, 43,
	31, 22, 10, 45, 25, 39, 14, 33, 19, 30, 9,  24, 13, 18, 8,  12, 7,  6,  5,  63,
};

/* Without branches, which the verifier would have to follow. */
static __always_inline __u32 highest_bit(__u64 number)
{
	number |= number >> 1;
	number |= number >> 2;
	number |= number >> 4;
	number |= number >> 8;
	number |= number >> 16;
	number |= number >> 32;
	return HIGHEST_BIT[number * 0x03f79d71b4cb0a89 >> 58];
}

static __always_inline __u32 bucket_of(__u64 ns)
{
	__u32 log = highest_bit(ns), index;

	if (log < 5)
		return 0;
	index = (log - 5) * 4 + ((ns >> (log - 2)) & 3);
	return index < WIRE_BUCKETS ? index : WIRE_BUCKETS - 1;
}

/* The first call of a function in a process. */
static __noinline struct total *total_made(struct total_key *key)
{
	struct total *total;

	bpf_map_update_elem(&totals, key, &NO_TOTAL, BPF_NOEXIST);
	total = bpf_map_lookup_elem(&totals, key);
	if (total)
		return total;
	/* full: keep the function's total exact, give up the process */
	__sync_fetch_and_add(&control.totals_overflowed, 1);
	key->tgid = 0;
	bpf_map_update_elem(&totals, key, &NO_TOTAL, BPF_NOEXIST);
	return bpf_map_lookup_elem(&totals, key);
}

static __noinline int count_failure(__u32 tgid, __u32 row, __s32 code)
{
	struct failure_key key = { .tgid = tgid, .row = row, .code = code };
	__u64 *count = bpf_map_lookup_elem(&failures, &key);

	if (!count) {
		bpf_map_update_elem(&failures, &key, &ZERO, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&failures, &key);
	}
	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}

static __always_inline bool failed(const struct spec *spec, __u64 result)
{
	__s32 code = (__s32)result;

	return (spec->flags & SPEC_FALLIBLE) && code != 0 && code != spec->ok;
}

static __noinline int note_longest(struct total *total, __u64 duration)
{
	/* a lost race may keep the second largest; the retry makes that a race of three */
	for (int i = 0; i < 4; i++) {
		__u64 old = total->max_ns;

		if (duration <= old || __sync_val_compare_and_swap(&total->max_ns, old, duration) == old)
			break;
	}
	return 0;
}

static __always_inline void count(const struct spec *spec, struct total_key *key, __u64 duration,
				  __u64 result, __u64 bytes)
{
	struct total *total = bpf_map_lookup_elem(&totals, key);

	if (!total)
		total = total_made(key);
	if (!total)
		return;
	if (bytes && !failed(spec, result))
		__sync_fetch_and_add(&total->bytes, bytes);
	if (!(spec->flags & SPEC_RETURN)) {
		__sync_fetch_and_add(&total->untimed, 1);
		return;
	}
	__sync_fetch_and_add(&total->bucket[bucket_of(duration) & (WIRE_BUCKETS - 1)], 1);
	__sync_fetch_and_add(&total->total_ns, duration);
	if (duration > total->max_ns)
		note_longest(total, duration);
	if (failed(spec, result)) {
		__sync_fetch_and_add(&total->errors, 1);
		count_failure(key->tgid, key->row, (__s32)result);
	}
}

/* ---- capture ---- */

static __always_inline void save_words(struct frame *frame, const struct spec *spec, struct pt_regs *ctx)
{
	__u32 bytes = (__u32)spec->stack_words * 8;

	frame->word[0] = PT_REGS_PARM1(ctx);
	frame->word[1] = PT_REGS_PARM2(ctx);
	frame->word[2] = PT_REGS_PARM3(ctx);
	frame->word[3] = PT_REGS_PARM4(ctx);
	frame->word[4] = PT_REGS_PARM5(ctx);
	frame->word[5] = PT_REGS_PARM6(ctx);
	if (!bytes)
		return;
	if (bytes > WIRE_STACK * 8)
		bytes = WIRE_STACK * 8;
	bpf_probe_read_user(frame->word + WORD_STACK, bytes, (void *)(PT_REGS_SP(ctx) + 8));
}

static __always_inline __u64 word_at(const struct frame *frame, __u32 index)
{
	return index < WORDS ? frame->word[index] : 0;
}

static __always_inline __u64 narrow(__u64 word, __u8 bytes)
{
	return bytes >= 8 ? word : word & ((1ull << (bytes * 8)) - 1);
}

/* Reads what pointers of the call point to; the bits of those that cannot be read. */
__noinline __u32 read_values(const struct spec *spec, struct frame *frame)
{
	__u32 unreadable = 0;

	if (!spec || !frame)
		return 0;
	for (__u32 i = 0; i < WIRE_VALUES; i++) {
		const struct spec_read *read = &spec->value[i];
		__u64 pointer, value = 0;
		__u32 bytes = read->bytes;

		if (i >= spec->values)
			break;
		pointer = word_at(frame, read->word);
		if (bytes > 8)
			bytes = 8;
		if (!pointer || bpf_probe_read_user(&value, bytes, (void *)(pointer + read->offset)))
			unreadable |= 1u << i;
		frame->word[WORD_VALUES + i] = value;
	}
	return unreadable;
}

__noinline __u64 size_of_call(const struct spec *spec, const struct frame *frame)
{
	__u64 bytes;

	if (!spec || !frame)
		return 0;
	bytes = spec->scale;
	for (__u32 i = 0; i < WIRE_FACTORS; i++) {
		if (i >= spec->factors)
			break;
		bytes *= narrow(word_at(frame, spec->factor[i].word), spec->factor[i].bytes);
	}
	return bytes;
}

static __always_inline __u32 variant_of(const struct spec *spec, const struct frame *frame)
{
	__u32 first, second = 0;

	first = narrow(word_at(frame, spec->variant[0].word), spec->variant[0].bytes) & 15;
	if (spec->variant[1].word != WORD_NONE)
		second = narrow(word_at(frame, spec->variant[1].word), spec->variant[1].bytes) & 15;
	return 1 + first + (second << 4);
}

/* ---- event plane ---- */

#define MEDIUM_BYTES offsetof(struct call_event, block)
#define SMALL_BYTES offsetof(struct call_event, stack)

struct finished {
	__u64 duration;
	__u64 result;
	__u32 tgid;
	__u32 tid;
	__u32 unreadable;
	__u32 flags;
};

static __always_inline void fill_small(struct call_event *event, const struct frame *frame,
				       const struct finished *call, __u8 size)
{
	event->entered = frame->entered;
	event->duration = call->duration;
	event->caller = frame->caller;
	event->result = call->result;
	event->tgid = call->tgid;
	event->tid = call->tid;
	event->row = frame->row;
	event->depth = frame->depth;
	event->flags = (__u8)call->flags | (call->unreadable ? EVENT_UNREADABLE : 0);
	event->size = size;
	event->unreadable = (__u8)call->unreadable;
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

		if (!pointer ||
		    bpf_probe_read_user(event->block, bytes, (void *)(pointer + spec->block_offset)))
			event->unreadable |= 128;
	}
	for (int i = 0; i < WIRE_TEXTS; i++) {
		event->text[i * WIRE_TEXT] = 0;
		if (i < spec->texts &&
		    bpf_probe_read_user_str(event->text + i * WIRE_TEXT, WIRE_TEXT,
					    (void *)word_at(frame, spec->text_word[i])) < 0)
			event->unreadable |= 64 >> i;
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
	if (options.only_errors && !failed(spec, call->result))
		return false;
	return call->duration >= options.min_ns;
}

/* `frame` NULL: the call is only counted, or there is no memory for its thread. */
static __always_inline void finish(const struct spec *spec, struct frame *frame, struct finished *call,
				   __u32 row)
{
	struct total_key key = { .tgid = call->tgid, .row = row };
	struct row_counter *counter;
	__u64 bytes = 0;

	if (frame && !(call->flags & EVENT_NO_ARGS)) {
		if (spec->values)
			call->unreadable = read_values(spec, frame);
		if (spec->scale)
			bytes = size_of_call(spec, frame);
		if (spec->variant[0].word != WORD_NONE)
			key.variant = variant_of(spec, frame);
	}
	count(spec, &key, call->duration, call->result, bytes);
	if (!wanted(spec, call) || (frame && send(spec, frame, call)))
		return;
	__sync_fetch_and_add(&control.events_lost, 1);
	counter = bpf_map_lookup_elem(&row_counters, &row);
	if (counter)
		__sync_fetch_and_add(&counter->lost, 1);
}

/* ---- open calls of a thread ---- */

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
		if (frame->sp > sp || sp - frame->sp > STACK_SPAN)
			return 0;
		if (frame->sp == sp && frame->row != row)
			return 0; /* a tail call: both return together */
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

static __always_inline void frame_open(struct thread *thread, struct pt_regs *ctx, const struct spec *spec,
				       __u32 row, __u64 now)
{
	__u64 sp = PT_REGS_SP(ctx);
	struct frame *frame;
	__u32 depth;

	depth = thread->depth;
	if (depth - 1 < WIRE_FRAMES && thread->frames[depth - 1].sp <= sp) {
		drop_abandoned(thread, sp, row);
		depth = thread->depth;
	}
	if (depth >= WIRE_FRAMES)
		return; /* the return will count without arguments */
	thread->depth = depth + 1;
	frame = &thread->frames[depth];
	frame->entered = now;
	frame->sp = sp;
	frame->row = row;
	frame->streamed = !!(spec->flags & SPEC_STREAM);
	set_caller(thread, depth, frame);
	save_words(frame, spec, ctx);
}

/* The index of the open call that returns to `sp`, or WIRE_FRAMES. Everything above it is abandoned. */
__noinline __u32 frame_close(struct thread *thread, __u64 sp, __u32 row)
{
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
			return index;
		}
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
	return index < WIRE_FRAMES ? &thread->frames[index] : NULL;
}

/* Without its frame a call is counted; its arguments are not known. */
static __always_inline struct frame *frame_missing(struct thread *thread, __u32 row, __u64 entered,
						   struct finished *call)
{
	struct row_counter *counter = bpf_map_lookup_elem(&row_counters, &row);

	call->flags = EVENT_NO_ARGS;
	if (counter)
		__sync_fetch_and_add(&counter->no_frame, 1);
	return spare_frame(thread, row, entered);
}

static __always_inline __u64 *session_cookie(void *ctx)
{
	return bpf_ksym_exists(bpf_session_cookie) ? bpf_session_cookie() : bpf_session_cookie___ctx(ctx);
}

static __always_inline bool session_returns(void *ctx)
{
	return bpf_ksym_exists(bpf_session_is_return) ? bpf_session_is_return()
						      : bpf_session_is_return___ctx(ctx);
}

/* ---- the body ---- */

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} nowhere SEC(".maps");

/* Since Linux 6.13 a function of a program that needs 64 bytes of stack or more gets them from one piece of
 * memory for each CPU. Programs at uprobes can be preempted, by another thread that runs into the same program
 * on that CPU; both would write there, and the kernel crashes. A program with a tail call keeps the stack of its
 * thread. This one is never made: the verifier removes it once it has decided about the stack.
 */
static __always_inline void keep_own_stack(void *ctx)
{
	if (options.never)
		bpf_tail_call(ctx, &nowhere, 0);
}

/* Rows that are only counted, without a size or direction, need no frame: the session keeps the time. */
static __always_inline bool needs_frame(const struct spec *spec)
{
	return (spec->flags & SPEC_STREAM) || spec->scale || spec->variant[0].word != WORD_NONE;
}

static __always_inline void at_entry_only(const struct spec *spec, struct pt_regs *ctx, __u32 row, __u64 ids,
					  struct thread *thread)
{
	struct finished call = { .tgid = ids >> 32, .tid = (__u32)ids, .flags = EVENT_NO_RETURN };
	struct frame *frame = NULL;

	if (thread && needs_frame(spec)) {
		frame = spare_frame(thread, row, bpf_ktime_get_ns());
		save_words(frame, spec, ctx);
	}
	finish(spec, frame, &call, row);
}

/* When the call that returns was entered, which only a session keeps; else: now. */
static __always_inline __u64 entered_at(struct pt_regs *ctx, bool session, __u64 now)
{
	return session ? *session_cookie(ctx) : now;
}

static __always_inline void at_return(const struct spec *spec, struct pt_regs *ctx, __u32 row, bool session)
{
	struct thread *thread = needs_frame(spec) || !session ? thread_known() : NULL;
	__u64 now = bpf_ktime_get_ns(), ids = thread ? thread->ids : bpf_get_current_pid_tgid();
	struct finished call = { .result = PT_REGS_RC(ctx), .tgid = ids >> 32, .tid = (__u32)ids };
	struct frame *frame = thread ? frame_returned(thread, PT_REGS_SP(ctx) - 8, row) : NULL;

	if (!frame && thread)
		frame = frame_missing(thread, row, entered_at(ctx, session, now), &call);
	call.duration = now - (frame ? frame->entered : entered_at(ctx, session, now));
	finish(spec, frame, &call, row);
}

/* At entry: counts it and says whose it is. False: this call is none of ours. */
static __always_inline bool enter(__u32 row, __u64 *ids, struct thread **thread)
{
	struct row_counter *counter;

	*thread = thread_known();
	*ids = *thread ? (*thread)->ids : bpf_get_current_pid_tgid();
	if ((!*thread || !watched_once_for_all()) && !watched(*ids >> 32))
		return false;
	if (!*thread)
		*thread = thread_made(*ids);
	counter = bpf_map_lookup_elem(&row_counters, &row);
	if (counter)
		__sync_fetch_and_add(&counter->entered, 1);
	return true;
}

SEC("uprobe.session")
int call_session(struct pt_regs *ctx)
{
	__u32 row = (__u32)bpf_get_attach_cookie(ctx);
	const struct spec *spec = bpf_map_lookup_elem(&specs, &row);
	struct thread *thread;
	__u64 ids, now;

	keep_own_stack(ctx);
	if (!spec)
		return 1;
	if (session_returns(ctx)) {
		at_return(spec, ctx, row, true);
		return 0;
	}
	if (!enter(row, &ids, &thread))
		return 1;
	if (!(spec->flags & SPEC_RETURN)) {
		at_entry_only(spec, ctx, row, ids, thread);
		return 1; /* no return probe for this call */
	}
	now = bpf_ktime_get_ns();
	*session_cookie(ctx) = now;
	if (thread && needs_frame(spec))
		frame_open(thread, ctx, spec, row, now);
	return 0;
}

static __always_inline int entry_body(struct pt_regs *ctx)
{
	__u32 row = (__u32)bpf_get_attach_cookie(ctx);
	const struct spec *spec = bpf_map_lookup_elem(&specs, &row);
	struct thread *thread;
	__u64 ids;

	keep_own_stack(ctx);
	if (!spec || !enter(row, &ids, &thread))
		return 0;
	if (!(spec->flags & SPEC_RETURN))
		at_entry_only(spec, ctx, row, ids, thread);
	else if (thread)
		frame_open(thread, ctx, spec, row, bpf_ktime_get_ns());
	return 0;
}

static __always_inline int return_body(struct pt_regs *ctx)
{
	__u32 row = (__u32)bpf_get_attach_cookie(ctx);
	const struct spec *spec = bpf_map_lookup_elem(&specs, &row);

	keep_own_stack(ctx);
	if (spec && (spec->flags & SPEC_RETURN) && watched(bpf_get_current_pid_tgid() >> 32))
		at_return(spec, ctx, row, false);
	return 0;
}

SEC("uprobe.multi")
int call_entry_multi(struct pt_regs *ctx)
{
	return entry_body(ctx);
}

SEC("uprobe.multi")
int call_return_multi(struct pt_regs *ctx)
{
	return return_body(ctx);
}

SEC("uprobe")
int call_entry_single(struct pt_regs *ctx)
{
	return entry_body(ctx);
}

SEC("uretprobe")
int call_return_single(struct pt_regs *ctx)
{
	return return_body(ctx);
}

/* ---- the floor that our cost is measured against ---- */

SEC("uprobe.session")
int empty_session(struct pt_regs *ctx)
{
	return 0;
}

SEC("uprobe.multi")
int empty_entry(struct pt_regs *ctx)
{
	return 0;
}

/* ---- processes ---- */

struct wait {
	__u64 sequence;
	__u64 deadline;
	__u64 readable; /* an address of the program's own stack */
};

static __always_inline bool acknowledged(__u64 sequence)
{
	return ((volatile struct control *)&control)->acknowledged[sequence % WIRE_WAITS] >= sequence;
}

static long spin(__u64 index, struct wait *wait)
{
	__u8 byte;

	if (acknowledged(wait->sequence))
		return 1;
	/* of all helpers this one lets others run, on kernels that do not preempt a program */
	bpf_copy_from_user_task(&byte, 1, (void *)wait->readable, bpf_get_current_task_btf(), 0);
	return bpf_ktime_get_ns() > wait->deadline;
}

/* The dynamic linker calls this hook after it has mapped libraries and before any of their code runs. The
 * thread waits here until user space has looked at them, for a bounded time and only while user space shows
 * signs of life. Is there something to attach to, user space arranges for the thread to stop once it leaves the
 * kernel, and acknowledges: waiting here burns a CPU. Sleepable, to be outside of an RCU read section.
 */
static __always_inline int library_body(struct pt_regs *ctx)
{
	__u64 ids = bpf_get_current_pid_tgid();
	struct notice *notice;
	struct wait wait = {};

	if (!watched(ids >> 32))
		return 0;
	notice = notice_start(NOTICE_LIBRARY, ids >> 32, (__u32)ids);
	if (!notice)
		return 0;
	wait.sequence = __sync_fetch_and_add(&control.sequence, 1) + 1;
	wait.deadline = notice->at + WAIT_NS;
	wait.readable = PT_REGS_SP(ctx);
	notice->sequence = wait.sequence;
	bpf_ringbuf_submit(notice, BPF_RB_FORCE_WAKEUP);
	if (!options.wait_for_attach || control.alive + ALIVE_NS < bpf_ktime_get_ns())
		return 0;
	bpf_loop(MAX_SPINS, spin, &wait, 0);
	if (!acknowledged(wait.sequence))
		__sync_fetch_and_add(&control.waits_expired, 1);
	return 0;
}

SEC("uprobe.multi.s")
int library_mapped_multi(struct pt_regs *ctx)
{
	return library_body(ctx);
}

SEC("uprobe.s")
int library_mapped_single(struct pt_regs *ctx)
{
	return library_body(ctx);
}

SEC("raw_tp/sched_process_fork")
int process_forked(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	__u32 from = BPF_CORE_READ(parent, tgid), to = BPF_CORE_READ(child, tgid), one = 1;
	struct notice *notice;

	if (from == to || !options.only_targets || !bpf_map_lookup_elem(&targets, &from))
		return 0;
	if (options.follow_forks)
		bpf_map_update_elem(&targets, &to, &one, BPF_ANY);
	notice = notice_start(NOTICE_FORK, to, to);
	if (!notice)
		return 0;
	notice->parent = from;
	bpf_ringbuf_submit(notice, BPF_RB_NO_WAKEUP);
	return 0;
}

/* After execve nothing of the old image returns: its open calls are dropped with its thread storage. */
SEC("raw_tp/sched_process_exec")
int process_executed(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct notice *notice;

	bpf_task_storage_delete(&threads, task);
	if (options.only_targets && !bpf_map_lookup_elem(&targets, &tgid))
		return 0;
	notice = notice_start(NOTICE_EXEC, tgid, tgid);
	if (notice)
		bpf_ringbuf_submit(notice, BPF_RB_FORCE_WAKEUP);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int process_exited(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct notice *notice;

	if (BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	if (options.only_targets && bpf_map_delete_elem(&targets, &tgid))
		return 0;
	notice = notice_start(NOTICE_EXIT, tgid, tgid);
	if (notice)
		bpf_ringbuf_submit(notice, BPF_RB_NO_WAKEUP);
	return 0;
}
