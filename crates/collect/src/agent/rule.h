/* How to go from a function to its caller: the unwind information (.eh_frame) that every module carries, read by the kernel for
 * us, since its module may go at any time. What does not occur in compiled code is not understood: then there is no rule.
 */
#ifndef GPUSCOPE_AGENT_RULE_H
#define GPUSCOPE_AGENT_RULE_H

#include "eh_frame.h"

enum rule_base {
	RULE_NONE,    /* nothing is known */
	RULE_STACK,   /* the frame ends at %rsp + frame */
	RULE_FRAME,   /* at %rbp + frame */
	RULE_THROUGH, /* where the word at %rbp + frame points to */
	RULE_END,     /* nobody has called it */
};

enum rule_saved {
	SAVED_NOWHERE,  /* %rbp is the caller's */
	SAVED_BELOW,    /* its value lies at the end of the frame + saved */
	SAVED_AT_FRAME, /* at %rbp + saved */
};

/* Of one return address. */
struct rule {
	__u64 pc;
	__s32 frame;
	__s16 saved;
	__u8 base;     /* enum rule_base */
	__u8 saved_in; /* enum rule_saved */
};

#define REGISTER_RBP 6
#define REGISTER_RSP 7
#define REGISTER_RIP 16
#define RULES_DEEP 4
#define INSTRUCTIONS_MOST 4096

/* A form that frames of functions with a realigned stack have: one word at a distance from %rbp (DW_OP_breg6), and where
 * `through`, what it points to (DW_OP_deref).
 */
static bool read_expression(struct reader *reader, bool through, __s64 *distance)
{
	__u64 bytes = next_unsigned(reader), begin = reader->at - (reader->have - reader->next), read;
	bool known = bytes && next_byte(reader) == 0x70 + REGISTER_RBP;

	if (!bytes)
		return false;
	if (known)
		*distance = next_signed(reader);
	read = reader->at - (reader->have - reader->next) - begin;
	if (known && through) {
		known = read + 1 == bytes && next_byte(reader) == 0x06;
		read++;
	}
	known = known && read == bytes;
	skip(reader, bytes - read);
	return known;
}

static void define_frame(struct rule *rule, __u64 from, __s64 distance)
{
	rule->base = from == REGISTER_RSP ? RULE_STACK : from == REGISTER_RBP ? RULE_FRAME : RULE_NONE;
	rule->frame = (__s32)distance;
	if (rule->frame != distance)
		rule->base = RULE_NONE;
}

static void define_saved(struct rule *rule, __u64 of, __s64 distance, __u8 in)
{
	if (of != REGISTER_RBP)
		return;
	rule->saved_in = in;
	rule->saved = (__s16)distance;
	if (rule->saved != distance)
		rule->base = RULE_NONE;
}

/* What holds no more, or again, of a register. */
static void restore_saved(struct rule *rule, __u64 of, const struct rule *first)
{
	if (of != REGISTER_RBP)
		return;
	rule->saved = first->saved;
	rule->saved_in = first->saved_in;
}

/* Executes instructions until they speak of what lies behind `pc`. */
static bool execute(struct reader *reader, const struct common *common, __u64 at, __u64 pc, struct rule *rule)
{
	struct rule first = *rule, kept[RULES_DEEP];
	__u32 deep = 0;
	__s64 distance;
	__u64 of;

	for (__u32 i = 0; i < INSTRUCTIONS_MOST && !reader->broken; i++) {
		__u8 byte, low;

		if (reader->next == reader->have && reader->at >= reader->end)
			return true;
		byte = next_byte(reader);
		low = byte & 0x3f;
		switch (byte & 0xc0 ? byte & 0xc0 : byte) {
		case 0x00: /* nop */
		case 0x2d: /* GNU_window_save */
			break;
		case 0x40: /* advance_loc */
			at += low * common->code_unit;
			break;
		case 0x02: /* advance_loc1, 2, 4 */
		case 0x03:
		case 0x04:
			at += next_number(reader, 1u << (byte - 2)) * common->code_unit;
			break;
		case 0x80: /* offset */
			define_saved(rule, low, (__s64)next_unsigned(reader) * common->data_unit,
				     SAVED_BELOW);
			break;
		case 0x05: /* offset_extended */
			of = next_unsigned(reader);
			define_saved(rule, of, (__s64)next_unsigned(reader) * common->data_unit, SAVED_BELOW);
			break;
		case 0x11: /* offset_extended_sf */
			of = next_unsigned(reader);
			define_saved(rule, of, next_signed(reader) * common->data_unit, SAVED_BELOW);
			break;
		case 0xc0: /* restore */
			restore_saved(rule, low, &first);
			break;
		case 0x06: /* restore_extended */
			restore_saved(rule, next_unsigned(reader), &first);
			break;
		case 0x07: /* undefined */
			of = next_unsigned(reader);
			if (of == REGISTER_RIP)
				rule->base = RULE_END;
			break;
		case 0x08: /* same_value */
			define_saved(rule, next_unsigned(reader), 0, SAVED_NOWHERE);
			break;
		case 0x0a: /* remember_state */
			if (deep == RULES_DEEP)
				return false;
			kept[deep++] = *rule;
			break;
		case 0x0b: /* restore_state */
			if (!deep)
				return false;
			*rule = kept[--deep];
			break;
		case 0x0c: /* def_cfa */
			of = next_unsigned(reader);
			define_frame(rule, of, (__s64)next_unsigned(reader));
			break;
		case 0x12: /* def_cfa_sf */
			of = next_unsigned(reader);
			define_frame(rule, of, next_signed(reader) * common->data_unit);
			break;
		case 0x0d: /* def_cfa_register */
			define_frame(rule, next_unsigned(reader), rule->frame);
			break;
		case 0x0e: /* def_cfa_offset */
			rule->frame = (__s32)next_unsigned(reader);
			break;
		case 0x13: /* def_cfa_offset_sf */
			rule->frame = (__s32)(next_signed(reader) * common->data_unit);
			break;
		case 0x0f: /* def_cfa_expression */
			rule->base = RULE_NONE;
			if (read_expression(reader, true, &distance)) {
				rule->base = RULE_THROUGH;
				rule->frame = (__s32)distance;
			}
			break;
		case 0x10: /* expression */
			of = next_unsigned(reader);
			if (read_expression(reader, false, &distance))
				define_saved(rule, of, distance, SAVED_AT_FRAME);
			else if (of == REGISTER_RBP || of == REGISTER_RIP)
				return false;
			break;
		case 0x16: /* val_expression */
			next_unsigned(reader);
			skip(reader, next_unsigned(reader));
			break;
		case 0x2e: /* GNU_args_size */
			next_unsigned(reader);
			break;
		default:
			return false;
		}
		if (at > pc)
			return !reader->broken;
	}
	return false;
}

/* What the entry at `at` says of `pc`. */
static bool read_rule(__u64 at, __u64 pc, struct rule *rule)
{
	struct common common;
	struct reader reader;
	__u64 begin, bytes, place;
	__u32 back, wide;

	if (!begin_entry(&reader, at))
		return false;
	back = (__u32)next_number(&reader, 4);
	if (!back || !read_common(at + 4 - back, &common) || common.signal)
		return false;
	wide = encoded_bytes(common.encoding);
	if (wide != 4 && wide != 8)
		return false;
	place = at + 8;
	begin = next_number(&reader, wide);
	bytes = next_number(&reader, wide);
	if (common.encoding == (RELATIVE_TO_PLACE | ENCODED_SDATA4))
		begin = place + (__u64)(__s64)(__s32)begin;
	else if ((common.encoding & 0x70) == RELATIVE_TO_PLACE)
		begin += place;
	else if (common.encoding & 0xf0)
		return false;
	if (pc - begin >= bytes)
		return false;
	if (common.sized)
		skip(&reader, next_unsigned(&reader));
	return execute(&common.instructions, &common, 0, ~0ull, rule) &&
	       execute(&reader, &common, begin, pc, rule);
}

/* How the function that a return address lies in is left. */
static void find_rule(__u64 pc, struct rule *rule)
{
	const struct module *module = module_at(pc - 1);
	struct module found = module ? *module : (struct module){ 0 };
	__u64 entry = found.index ? entry_for(found.index, pc - 1) : 0;

	*rule = (struct rule){ .pc = pc };
	if (!entry || !read_rule(entry, pc - 1, rule))
		rule->base = RULE_NONE;
}

#endif
