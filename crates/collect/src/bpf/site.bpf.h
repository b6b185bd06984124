/* Call sites: where a call comes from, as one number. A stack that was not seen before is sent; afterwards only
 * its number travels.
 */
#ifndef GPUSCOPE_SITE_BPF_H
#define GPUSCOPE_SITE_BPF_H

#include "python.bpf.h"

#define KNOWN_SITES 65536
#define NS_PER_SECOND 1000000000ull
#define VM_EXEC 4
#define NO_VMA -2 /* ENOENT */

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, KNOWN_SITES);
	__type(key, __u64);
	__type(value, __u32); /* tgid */
} known_sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct site_scratch);
} site_scratches SEC(".maps");

GIVEN struct site_options site_options;
SHARED struct site_counters site_counters;

/* keeps the types in the object's BTF, for the skeleton */
const struct site_event *site_event_type __attribute__((unused));
const struct python *python_type __attribute__((unused));

static long note_range(struct task_struct *task, struct vm_area_struct *vma, struct code_range *range)
{
	if (!(vma->vm_flags & VM_EXEC))
		return 0;
	range->start = vma->vm_start;
	range->bytes = vma->vm_end - vma->vm_start;
	return 0;
}

/* Whether there is code at `address`. Code without frame pointers keeps anything in their register: what is then
 * taken for a stack differs from call to call, and would make a site of each.
 */
__noinline int is_code(struct site_scratch *scratch, __u64 address)
{
	struct code_range found = {};
	long error;

	if (!scratch)
		return 0;
	for (int i = 0; i < CODE_RANGES; i++)
		if (address - scratch->ranges[i].start < scratch->ranges[i].bytes)
			return 1;
	error = bpf_find_vma(bpf_get_current_task_btf(), address, note_range, &found, 0);
	if (found.bytes) {
		scratch->ranges[scratch->next_range & (CODE_RANGES - 1)] = found;
		scratch->next_range++;
		return 1;
	}
	return error && error != NO_VMA; /* the map is being changed: cannot be told now */
}

/* How many of `count` return addresses are some. */
__noinline __u32 checked(struct site_scratch *scratch, __u32 count)
{
	if (!scratch)
		return 0;
	for (__u32 i = 1; i < SITE_NATIVE; i++) {
		if (i >= count)
			return count;
		if (!is_code(scratch, scratch->event.native[i])) {
			scratch->event.flags |= SITE_NATIVE_CUT;
			return i;
		}
	}
	return count;
}

__noinline __u64 hash_native(const struct site_scratch *scratch, __u64 hash)
{
	if (!scratch)
		return 0;
	for (__u32 i = 0; i < SITE_NATIVE; i++) {
		if (i >= scratch->event.native_count)
			break;
		hash = mix(hash, scratch->event.native[i]);
	}
	return hash;
}

__noinline __u64 hash_python(const struct site_scratch *scratch, __u64 hash)
{
	if (!scratch)
		return 0;
	for (__u32 i = 0; i < SITE_PYTHON; i++) {
		if (i >= scratch->event.python_count)
			break;
		hash = mix(mix(hash, scratch->event.frames[i].code), scratch->event.frames[i].instruction);
	}
	return hash;
}

static __always_inline __u64 site_id(const struct site_scratch *scratch)
{
	__u64 id = hash_native(scratch, mix(scratch->event.tgid, scratch->event.flags));

	id = hash_python(scratch, id);
	return id < SITE_FIRST_ID ? id + SITE_FIRST_ID : id;
}

/* Remembers a site and tells user space about it. */
static __always_inline __u64 announce(struct site_scratch *scratch, __u64 id)
{
	__u32 tgid = scratch->event.tgid;
	long error = bpf_map_update_elem(&known_sites, &id, &tgid, BPF_NOEXIST);

	if (error == -17 /* EEXIST: another thread was faster */)
		return id;
	if (error) {
		__sync_fetch_and_add(&site_counters.full, 1);
		return SITE_UNKNOWN;
	}
	scratch->event.id = id;
	/* the process may end soon, and its names with it */
	if (bpf_ringbuf_output(&memory, &scratch->event, sizeof(scratch->event), BPF_RB_FORCE_WAKEUP)) {
		bpf_map_delete_elem(&known_sites, &id);
		__sync_fetch_and_add(&site_counters.lost, 1);
		return SITE_UNKNOWN;
	}
	__sync_fetch_and_add(&site_counters.sent, 1);
	return id;
}

/* What is known of the stack of the current thread, without its number. `bytes`: of the native stack in `scratch`;
 * `flags`: what is known of it.
 */
__noinline int fill_site(struct site_scratch *scratch, __u64 ids, __u32 bytes, __u32 flags)
{
	__u32 count = bytes / 8;

	if (!scratch)
		return 0;
	scratch->event.kind = MEMORY_SITE;
	scratch->event.tgid = ids >> 32;
	scratch->event.tid = (__u32)ids;
	scratch->event.flags = flags | stack_flags() | (count >= SITE_NATIVE ? SITE_NATIVE_FULL : 0);
	scratch->event.python = PYTHON_NONE;
	scratch->event.python_count = 0;
	scratch->event.native_count = STACK_IS_CODE ? count : checked(scratch, count);
	if (site_options.python)
		python_stack(scratch, ids >> 32);
	return 0;
}

/* The same of a call, announced: the number of its site. */
__noinline __u64 site_of(struct site_scratch *scratch, __u64 ids, __u32 bytes, __u32 flags, __u64 place)
{
	__u64 id;

	if (!scratch)
		return SITE_UNKNOWN;
	/* newer kernels know that the caller has no frame of its own yet; user space drops it where it is twice */
	if (flags & SITE_AT_ENTRY)
		scratch->event.native[0] = caller_at(place);
	fill_site(scratch, ids, bytes, flags);
	id = site_id(scratch);
	if (bpf_map_lookup_elem(&known_sites, &id))
		return id;
	return announce(scratch, id);
}

/* A new second: how many of those who ask are served follows from how many asked in the last one. */
static __noinline int next_second(__u64 second)
{
	__u64 current = site_counters.second, asked = site_counters.asked,
	      budget = site_options.stacks_per_second;

	if (current == second ||
	    __sync_val_compare_and_swap(&site_counters.second, current, second) != current)
		return 0;
	site_counters.stride = budget && asked > budget ? asked / budget + 1 : 1;
	site_counters.asked = 0;
	site_counters.taken = 0;
	return 0;
}

/* Whether one more stack may be taken in this second. Large allocations are few, and come first. */
static __always_inline bool within_budget(bool large)
{
	__u64 budget = site_options.stacks_per_second, asked;

	next_second(bpf_ktime_get_ns() / NS_PER_SECOND);
	asked = __sync_fetch_and_add(&site_counters.asked, 1);
	if ((large || site_counters.stride < 2 || asked % site_counters.stride == 0) &&
	    __sync_fetch_and_add(&site_counters.taken, 1) < (large ? 2 * budget : budget))
		return true;
	__sync_fetch_and_add(&site_counters.unsampled, 1);
	return false;
}

/* Bytes of the native stack in `scratch`; 0: there is none. It passes through memory of the CPU, which another thread can
 * take in between: then it does not begin where this thread is.
 */
static __always_inline __u32 native_stack(struct pt_regs *ctx, struct site_scratch *scratch)
{
	for (int i = 0; i < 3; i++) {
		long bytes = bpf_get_stack(ctx, scratch->event.native, sizeof(scratch->event.native),
					   BPF_F_USER_STACK);

		if (bytes >= 8 && scratch->event.native[0] == PT_REGS_IP(ctx))
			return (__u32)bytes;
	}
	return 0;
}

/* The site of the call that is entered (SITE_AT_ENTRY), returns (0) or passes a static probe (SITE_AT_PLACE) now: its
 * id, or why it has none. At a return the registers are the caller's.
 */
static __always_inline __u64 site_here(struct pt_regs *ctx, __u64 ids, __u32 where, bool large)
{
	struct site_scratch *scratch;
	__u32 bytes;

	if (!within_budget(large))
		return SITE_UNSAMPLED;
	scratch = bpf_task_storage_get(&site_scratches, bpf_get_current_task_btf(), 0,
				       BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!scratch) {
		__sync_fetch_and_add(&site_counters.no_memory, 1);
		return SITE_UNKNOWN;
	}
	bytes = native_stack(ctx, scratch);
	if (!bytes) {
		scratch->event.native[0] = PT_REGS_IP(ctx);
		bytes = sizeof(scratch->event.native[0]);
		where |= SITE_NATIVE_NONE;
	}
	return site_of(scratch, ids, bytes, where, place_of_caller(ctx));
}

#endif
