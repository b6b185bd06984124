/* Words of a static probe, which lie wherever the compiler left them. */
#ifndef GPUSCOPE_PLACE_BPF_H
#define GPUSCOPE_PLACE_BPF_H

#include "state.bpf.h"

static __always_inline void copy_registers(struct thread *thread, const struct pt_regs *ctx)
{
	thread->registers[0] = ctx->rax;
	thread->registers[1] = ctx->rcx;
	thread->registers[2] = ctx->rdx;
	thread->registers[3] = ctx->rbx;
	thread->registers[4] = ctx->rsp;
	thread->registers[5] = ctx->rbp;
	thread->registers[6] = ctx->rsi;
	thread->registers[7] = ctx->rdi;
	thread->registers[8] = ctx->r8;
	thread->registers[9] = ctx->r9;
	thread->registers[10] = ctx->r10;
	thread->registers[11] = ctx->r11;
	thread->registers[12] = ctx->r12;
	thread->registers[13] = ctx->r13;
	thread->registers[14] = ctx->r14;
	thread->registers[15] = ctx->r15;
}

static __always_inline __u64 register_of(const struct thread *thread, __u32 number)
{
	return number < 16 ? thread->registers[number] : 0;
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
	copy_registers(thread, ctx);
	return read_places(thread, site);
}

#endif
