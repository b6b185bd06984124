/* Words of a static probe, which lie wherever the compiler left them. */
#ifndef GPUSCOPE_PLACE_BPF_H
#define GPUSCOPE_PLACE_BPF_H

#include "state.bpf.h"

static __always_inline __u64 register_of(const struct thread *thread, __u32 number)
{
	return number < PLACE_REGISTERS ? thread->registers[number] : 0;
}

/* Fills the words of `thread->spare`. 0: one lies in memory that cannot be read. */
__noinline int read_places(struct thread *thread, const struct probe_site *site)
{
	if (!thread || !site)
		return 0;
	for (__u32 i = 0; i < WIRE_PLACES; i++) {
		const struct place *place = &site->place[i];
		__u32 bytes = place->bytes, shift;
		__u64 value;

		if (i >= site->places)
			break;
		if (bytes < 1 || bytes > 8)
			bytes = 8;
		value = place->offset + register_of(thread, place->base) +
			(register_of(thread, place->index) << (place->scale & 3));
		if (place->kind == PLACE_MEMORY) {
			__u64 address = value;

			value = 0;
			if (bpf_probe_read_user(&value, bytes, (void *)address))
				return 0;
		}
		shift = 64 - bytes * 8;
		value <<= shift;
		thread->spare.word[i] = place->is_signed ? (__u64)((__s64)value >> shift) : value >> shift;
	}
	return 1;
}

/* The words of static probe `number`; false: they are not known. */
static __always_inline bool save_places(struct thread *thread, const struct pt_regs *ctx, __u32 number)
{
	const struct probe_site *site = bpf_map_lookup_elem(&probe_sites, &number);

	if (!site)
		return false;
	copy_registers(thread->registers, ctx);
	return read_places(thread, site);
}

#endif
