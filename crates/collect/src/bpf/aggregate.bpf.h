/* What a user's row computes here: which of its calls count, and sums of these by groups. Sums are exact: threads that
 * meet a new group at the same time add to one entry, and what finds no room is counted.
 */
#ifndef GPUSCOPE_AGGREGATE_BPF_H
#define GPUSCOPE_AGGREGATE_BPF_H

#include "capture.bpf.h"
#include "count.bpf.h"
#include "finished.bpf.h"
#include "site.bpf.h"

#define MOST_RACES 64

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct aggregate_key);
	__type(value, struct aggregate);
} aggregates SEC(".maps");

/* Texts that calls are grouped by, and their numbers. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct aggregate_text);
	__type(value, __u64);
} aggregate_texts SEC(".maps");

SHARED struct aggregate_counters aggregate_counters;

static const struct aggregate NO_AGGREGATE;

/* keeps the types in the object's BTF, for the skeleton */
const struct aggregate_key *aggregate_key_type __attribute__((unused));
const struct aggregate *aggregate_type __attribute__((unused));
const struct spec_hook *spec_hook_type __attribute__((unused));

/* ---- operands and conditions ---- */

/* False: the word is not known. */
static __always_inline bool word_of(const struct spec_operand *from, const struct frame *frame,
				    const struct finished *call, __u64 *word)
{
	__u32 index = from->word;

	if (from->word == WORD_RESULT || from->word == WORD_DURATION) {
		*word = from->word == WORD_RESULT ? call->result : call->duration;
		return !(call->flags & EVENT_NO_RETURN);
	}
	if (!frame || (call->flags & EVENT_NO_ARGS))
		return false;
	if (from->word == WORD_BYTES) {
		*word = call->bytes;
		return true;
	}
	if (index >= WORDS)
		return false;
	/* keeps the address from being computed before the check, which Linux 6.1 does not see through */
	asm volatile("" : "+r"(index));
	*word = frame->word[index];
	return index < WORD_VALUES || !(call->unreadable >> (index - WORD_VALUES) & 1);
}

static __always_inline bool read_operand(const struct spec_operand *from, const struct frame *frame,
					 const struct finished *call, __u64 *number)
{
	__u32 shift = (64 - (__u32)from->bytes * 8) & 63;
	__u64 word;

	if (!word_of(from, frame, call, &word))
		return false;
	word <<= shift;
	*number = from->is_signed ? (__u64)((__s64)word >> shift) ^ SIGN_BIT : word >> shift;
	return true;
}

static __always_inline bool holds(const struct spec_test *test, __u64 number)
{
	bool is = number == test->value;

	if (test->kind == TEST_LESS)
		is = number < test->value;
	else if (test->kind == TEST_GREATER)
		is = number > test->value;
	else if (test->kind == TEST_BITS)
		is = number & test->value;
	return is != !!test->negate;
}

enum verdict { CALL_FAILS, CALL_PASSES, CALL_UNKNOWN };

/* Whether the call meets the row's conditions; if so, its operands are read. */
__noinline int judge(const struct spec *spec, const struct frame *frame, struct finished *call)
{
	__u64 number;

	if (!spec || !call)
		return CALL_UNKNOWN;
	for (__u32 i = 0; i < WIRE_TESTS; i++) {
		if (i >= spec->hook.tests)
			break;
		if (!read_operand(&spec->hook.test[i].of, frame, call, &number))
			return CALL_UNKNOWN;
		if (!holds(&spec->hook.test[i], number))
			return CALL_FAILS;
	}
	if (spec->hook.of.word != WORD_NONE && !read_operand(&spec->hook.of, frame, call, &call->operand))
		return CALL_UNKNOWN;
	if (spec->hook.by.word != WORD_NONE && !read_operand(&spec->hook.by, frame, call, &call->group))
		return CALL_UNKNOWN;
	return CALL_PASSES;
}

/* ---- groups ---- */

/* The number of a text; 0: there is no room for it. */
static __noinline __u64 number_of_text(const struct aggregate_text *text)
{
	__u64 number, *known = bpf_map_lookup_elem(&aggregate_texts, text);

	if (known)
		return *known;
	number = __sync_fetch_and_add(&aggregate_counters.texts, 1) + 1;
	bpf_map_update_elem(&aggregate_texts, text, &number, BPF_NOEXIST);
	known = bpf_map_lookup_elem(&aggregate_texts, text);
	if (!known)
		__sync_fetch_and_add(&aggregate_counters.full, 1);
	return known ? *known : 0;
}

static __always_inline bool group_by_text(struct aggregate_text *text, struct finished *call, bool is_comm)
{
	long error;

	if (!text)
		return false;
	__builtin_memset(text, 0, sizeof(*text));
	if (is_comm)
		error = bpf_get_current_comm(text->text, WIRE_COMM);
	else
		error = bpf_probe_read_user_str(text->text, WIRE_TEXT, (void *)call->group);
	if (error < 0)
		return false;
	call->group = number_of_text(text);
	return true;
}

/* False: the group is not known. */
static __always_inline bool find_group(const struct spec *spec, struct aggregate_text *text,
				       struct finished *call)
{
	switch (spec->hook.group) {
	case GROUP_TEXT:
		return group_by_text(text, call, false);
	case GROUP_COMM:
		return group_by_text(text, call, true);
	case GROUP_THREAD:
		call->group = call->tid;
		return true;
	case GROUP_SITE:
		call->group = call->site;
		return true;
	default:
		return true;
	}
}

/* ---- sums ---- */

static __always_inline void raise(__u64 *largest, __u64 number)
{
	for (int i = 0; i < MOST_RACES; i++) {
		__u64 old = *(volatile __u64 *)largest;

		if (number <= old || __sync_val_compare_and_swap(largest, old, number) == old)
			return;
	}
	__sync_fetch_and_add(&aggregate_counters.races, 1);
}

static __noinline int raise_extremes(struct aggregate *sums, __u64 number)
{
	raise(&sums->largest, number);
	raise(&sums->smallest, ~number);
	return 0;
}

static __always_inline __u32 bucket_of_power(const struct spec_operand *of, __u64 number)
{
	if (of->is_signed) {
		if (!(number & SIGN_BIT))
			return BUCKET_BELOW;
		number ^= SIGN_BIT;
	}
	return number ? 1 + highest_bit(number) : 0;
}

static __noinline int add_to_sums(const struct spec *spec, const struct aggregate_key *key, __u64 number)
{
	struct aggregate *sums = bpf_map_lookup_elem(&aggregates, key);

	if (!sums) {
		bpf_map_update_elem(&aggregates, key, &NO_AGGREGATE, BPF_NOEXIST);
		sums = bpf_map_lookup_elem(&aggregates, key);
	}
	if (!sums) {
		__sync_fetch_and_add(&aggregate_counters.full, 1);
		return 0;
	}
	__sync_fetch_and_add(&sums->count, 1);
	if (key->bucket == BUCKET_UNKNOWN)
		return 0;
	if (spec->hook.flags & HOOK_SUM)
		__sync_fetch_and_add(&sums->sum, spec->hook.of.is_signed ? number ^ SIGN_BIT : number);
	if (spec->hook.flags & HOOK_EXTREMES)
		raise_extremes(sums, number);
	return 0;
}

/* `text`: memory that nobody else uses now. */
static __noinline int sum_up(const struct spec *spec, struct aggregate_text *text, struct finished *call,
			     __u32 row, bool known)
{
	struct aggregate_key key = { .tgid = call->tgid, .row = row };

	if (!known || !find_group(spec, text, call)) {
		key.bucket = BUCKET_UNKNOWN;
	} else {
		key.group = call->group;
		if (spec->hook.flags & HOOK_POWERS)
			key.bucket = bucket_of_power(&spec->hook.of, call->operand);
	}
	return add_to_sums(spec, &key, call->operand);
}

static __noinline int take_stack(void *ctx, struct frame *frame, struct finished *call)
{
	call->site = site_here(ctx, (__u64)call->tgid << 32 | call->tid, call->where, false);
	if (frame)
		frame->word[WORD_SITE] = call->site;
	return 0;
}

/* A call of a user's row has ended: sums it up. Whether it may become an event. */
static __always_inline bool hook_passed(void *ctx, const struct spec *spec, struct frame *frame,
					struct thread *thread, struct finished *call, __u32 row)
{
	int verdict = judge(spec, frame, call);

	if (verdict == CALL_FAILS)
		return false;
	if ((spec->hook.flags & HOOK_SITE) && verdict == CALL_PASSES)
		take_stack(ctx, frame, call);
	if (spec->hook.flags & HOOK_AGGREGATE)
		sum_up(spec, thread ? &thread->text : NULL, call, row, verdict == CALL_PASSES);
	return verdict == CALL_PASSES || !(spec->hook.flags & HOOK_TESTS);
}

/* The same in the kernel. */
static __always_inline bool hook_passed_in_kernel(const struct spec *spec, struct frame *frame,
						  struct aggregate_text *text, struct finished *call,
						  __u32 row)
{
	int verdict = judge(spec, frame, call);

	if (verdict == CALL_FAILS)
		return false;
	if (spec->hook.flags & HOOK_AGGREGATE)
		sum_up(spec, text, call, row, verdict == CALL_PASSES);
	return verdict == CALL_PASSES || !(spec->hook.flags & HOOK_TESTS);
}

#endif
