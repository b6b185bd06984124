/* Words of a call: registers, stack, and what pointers point to. */
#ifndef GPUSCOPE_CAPTURE_BPF_H
#define GPUSCOPE_CAPTURE_BPF_H

#include "state.bpf.h"

/* What a pointer of the call points to. A function of the kernel is given pointers of programs, too; a program is
 * never believed a pointer into the kernel.
 */
static __always_inline long read_pointed(const struct spec *spec, void *to, __u32 bytes, __u64 address)
{
	if (SELDOM(spec->ground & GROUND_KERNEL) && address >> 63)
		return bpf_probe_read_kernel(to, bytes, (void *)address);
	return bpf_probe_read_user(to, bytes, (void *)address);
}

static __always_inline long read_text_pointed(const struct spec *spec, void *to, __u32 bytes, __u64 address)
{
	if ((spec->ground & GROUND_KERNEL) && address >> 63)
		return bpf_probe_read_kernel_str(to, bytes, (void *)address);
	return bpf_probe_read_user_str(to, bytes, (void *)address);
}

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
	save_more_registers(frame->word + WORD_STACK, ctx);
	if (bytes > MORE_REGS * 8)
		read_pointed(spec, frame->word + WORD_STACK + MORE_REGS, bytes - MORE_REGS * 8,
			     first_on_stack(ctx));
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
		if (!pointer || read_pointed(spec, &value, bytes, pointer + read->offset))
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

static __always_inline __u64 variant_of(const struct spec *spec, const struct frame *frame)
{
	__u32 first, second = 0;

	first = narrow(word_at(frame, spec->variant[0].word), spec->variant[0].bytes) & 15;
	if (spec->variant[1].word != WORD_NONE)
		second = narrow(word_at(frame, spec->variant[1].word), spec->variant[1].bytes) & 15;
	return 1 + first + (second << 4);
}

#endif
