/* The counting plane: exact, whatever happens to events. */
#ifndef GPUSCOPE_COUNT_BPF_H
#define GPUSCOPE_COUNT_BPF_H

#include "state.bpf.h"

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

#define MOST_KERNEL_TOTALS 49152 /* of the table's entries, so that there is room for functions */
#define MOST_DRIVER_TOTALS 8192  /* of these, so that no program takes all by numbers that it makes up */

/* The first call of a function in a process, or the first launch of a kernel by it. */
static __noinline struct total *total_made(struct total_key *key)
{
	struct total *total;

	bool of_driver = key->variant >> 32 == DRIVER_SUBJECT >> 32;

	if (key->variant >= KERNEL_FIRST_ID &&
	    __sync_fetch_and_add(&control.kernel_totals, 1) >=
		    (of_driver ? MOST_DRIVER_TOTALS : MOST_KERNEL_TOTALS)) {
		__sync_fetch_and_add(&control.kernel_totals, -1);
		key->variant = of_driver ? 0 : KERNEL_FULL;
	}
	bpf_map_update_elem(&totals, key, &NO_TOTAL, BPF_NOEXIST);
	total = bpf_map_lookup_elem(&totals, key);
	if (!total && key->variant >= KERNEL_FIRST_ID) {
		/* there was no room for as many: the launches of all others count together */
		key->variant = of_driver ? 0 : KERNEL_FULL;
		bpf_map_update_elem(&totals, key, &NO_TOTAL, BPF_NOEXIST);
		total = bpf_map_lookup_elem(&totals, key);
	}
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
		ADD_OWN(count, 1);
	return 0;
}

/* A call has returned that was entered before calls counted. */
static __always_inline void count_before(__u32 row)
{
	struct row_counter *counter = bpf_map_lookup_elem(&row_counters, &row);

	if (counter && counting())
		ADD_OWN(&counter->before, 1);
}

static __always_inline void count_entry(__u32 row, __u64 cookie)
{
	struct row_counter *counter = bpf_map_lookup_elem(&row_counters, &row);

	if (!counter)
		return;
	ADD_OWN(&counter->entered, 1);
	if (SELDOM(cookie & COOKIE_STEPPED))
		ADD_OWN(&counter->stepped, 1);
	else if (SELDOM(cookie & COOKIE_NOP5))
		ADD_OWN(&counter->nop5, 1);
}

/* Whether a call had no effect: it failed, or its library is being unloaded. */
static __always_inline bool refused(const struct spec *spec, __u64 result)
{
	__s32 code = (__s32)result;

	return (spec->flags & SPEC_FALLIBLE) && SELDOM(code != 0) && code != spec->ok;
}

static __always_inline bool failed(const struct spec *spec, __u64 result)
{
	return refused(spec, result) && (__s32)result != spec->ended;
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

	if (SELDOM(!total))
		total = total_made(key);
	if (!total)
		return;
	if (bytes && !refused(spec, result))
		ADD_OWN(&total->bytes, bytes);
	if (SELDOM(!(spec->flags & SPEC_RETURN))) {
		ADD_OWN(&total->untimed, 1);
		return;
	}
	ADD_OWN(&total->bucket[bucket_of(duration) & (WIRE_BUCKETS - 1)], 1);
	ADD_OWN(&total->total_ns, duration);
	if (duration > total->max_ns)
		note_longest(total, duration);
	if (SELDOM(failed(spec, result))) {
		ADD_OWN(&total->errors, 1);
		count_failure(key->tgid, key->row, (__s32)result);
	}
}

#endif
