/* Words of a row that lie wherever this kernel keeps them: read as `kernel_sites` says, which user space fills in, and
 * whether the row means a call with such words.
 */
#ifndef GPUSCOPE_KERNEL_PLACE_BPF_H
#define GPUSCOPE_KERNEL_PLACE_BPF_H

#include "capture.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WIRE_KERNEL_SITES + 1);
	__type(key, __u32);
	__type(value, struct kernel_site);
} kernel_sites SEC(".maps");

/* One place; false: it cannot be read. The bases lie where values behind pointers would. */
static __always_inline bool read_kernel_place(struct frame *frame, const struct kernel_place *place,
					      __u64 *found)
{
	__u64 base = word_at(frame, WORD_VALUES + (place->base & 7)), value = base;
	__u32 bytes = place->bytes;

	if (bytes < 1 || bytes > 8)
		bytes = 8;
	for (__u32 i = 0; i < WIRE_KERNEL_STEPS; i++) {
		__u64 address = value + place->offset[i];
		bool last = i + 1 == place->steps;

		if (i >= place->steps)
			break;
		value = address;
		if (last && (place->flags & KERNEL_ADDRESS))
			break;
		value = 0;
		if (bpf_probe_read_kernel(&value, last ? bytes : 8, (void *)address))
			return false;
	}
	value = narrow(value, bytes); /* the rest of an argument's register is anything */
	if (place->flags & KERNEL_IN_RECORD)
		value = base + (value & 0xffff);
	value = (value >> (place->shift & 63)) & place->mask;
	if (place->flags & KERNEL_SIGNED)
		value = (__s64)(value << (64 - bytes * 8)) >> (64 - bytes * 8);
	*found = value;
	return true;
}

/* Fills the first words of `frame`. 0: one cannot be read. */
__noinline int read_kernel_places(struct frame *frame, const struct kernel_site *site)
{
	int complete = 1;

	if (!frame || !site)
		return 0;
	for (__u32 i = 0; i < WIRE_PLACES; i++) {
		__u64 value = 0;

		if (i >= site->places)
			break;
		if (!read_kernel_place(frame, &site->place[i], &value))
			complete = 0;
		frame->word[i] = value;
	}
	return complete;
}

/* Whether the call is one of those that the row means. */
__noinline int is_meant(const struct frame *frame, const struct kernel_site *site)
{
	char text[WIRE_COMM] = {};
	__u64 value;

	if (!frame || !site)
		return 0;
	if (site->only >= WIRE_PLACES)
		return 1;
	value = word_at(frame, site->only);
	if (!site->only_bytes)
		return value == site->only_value;
	if (bpf_probe_read_kernel_str(text, sizeof(text), (void *)value) < 0)
		return 0;
	for (__u32 i = 0; i < WIRE_COMM; i++)
		if (i < site->only_bytes && text[i] != site->only_text[i])
			return 0;
	return 1;
}

/* Turns what the call was entered with into the row's words. False: the call is not meant. */
static __always_inline bool kernel_words(struct frame *frame, __u32 number, __u32 *flags)
{
	const struct kernel_site *site;

	if (!number)
		return true;
	site = bpf_map_lookup_elem(&kernel_sites, &number);
	if (!site)
		return false;
	if (!read_kernel_places(frame, site))
		*flags |= EVENT_NO_ARGS;
	return is_meant(frame, site);
}

#endif
