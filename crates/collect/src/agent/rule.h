/* How to go from a function to its caller: the unwind information (.eh_frame) that every module carries, read by the kernel for
 * us, since its module may go at any time. What does not occur in compiled code is not understood: then there is no rule.
 */
#ifndef GPUSCOPE_AGENT_RULE_H
#define GPUSCOPE_AGENT_RULE_H

#include "modules.h"

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
#define BYTES_AHEAD 128

/* Bytes of somebody's memory, one after the other. */
struct reader {
	__u64 at;
	__u64 end;
	__u32 next;
	__u32 have;
	bool broken;
	__u8 bytes[BYTES_AHEAD];
};

static __u8 next_byte(struct reader *reader)
{
	__u64 left = reader->end - reader->at;

	if (reader->next == reader->have) {
		reader->have = left < BYTES_AHEAD ? (__u32)left : BYTES_AHEAD;
		reader->next = 0;
		if (reader->broken || !reader->have || reader->at >= reader->end ||
		    read_by_kernel(reader->bytes, reader->have, reader->at)) {
			reader->broken = true;
			reader->have = 0;
			return 0;
		}
		reader->at += reader->have;
	}
	return reader->bytes[reader->next++];
}

static __u64 next_number(struct reader *reader, __u32 bytes)
{
	__u64 number = 0;

	for (__u32 i = 0; i < bytes; i++)
		number |= (__u64)next_byte(reader) << 8 * i;
	return number;
}

/* LEB128. */
static __u64 next_unsigned(struct reader *reader)
{
	__u64 number = 0;

	for (__u32 shift = 0; shift < 64 && !reader->broken; shift += 7) {
		__u8 byte = next_byte(reader);

		number |= (__u64)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return number;
}

static __s64 next_signed(struct reader *reader)
{
	__u64 number = 0;

	for (__u32 shift = 0; shift < 64 && !reader->broken;) {
		__u8 byte = next_byte(reader);

		number |= (__u64)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80)) {
			if ((byte & 0x40) && shift < 64)
				number |= ~0ull << shift;
			break;
		}
	}
	return (__s64)number;
}

static void skip(struct reader *reader, __u64 bytes)
{
	for (__u64 i = 0; i < bytes && !reader->broken; i++)
		next_byte(reader);
}

/* ---- which entry is an address's ---- */

/* A table that the linker has sorted: of each function its address and its entry's, relative to the table. */
struct index_head {
	__u8 version;
	__u8 frames;
	__u8 count;
	__u8 table;
	__u32 to_frames;
	__u32 entries;
};

struct index_entry {
	__s32 function;
	__s32 frames;
};

#define ENCODED_SDATA4 0x0b
#define ENCODED_UDATA4 0x03
#define RELATIVE_TO_PLACE 0x10
#define RELATIVE_TO_TABLE 0x30

/* Where the entry (FDE) of the function lies that holds `pc`; 0: there is none. */
static __u64 entry_for(__u64 index, __u64 pc)
{
	struct index_head head;
	struct index_entry entry;
	__u32 low = 0, high;

	if (read_by_kernel(&head, sizeof(head), index) || head.version != 1 || head.count != ENCODED_UDATA4 ||
	    head.table != (RELATIVE_TO_TABLE | ENCODED_SDATA4))
		return 0;
	for (high = head.entries; low < high;) {
		__u32 middle = low + (high - low) / 2;

		if (read_by_kernel(&entry, sizeof(entry),
				   index + sizeof(head) + (__u64)middle * sizeof(entry)))
			return 0;
		if (index + (__u64)(__s64)entry.function <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low ||
	    read_by_kernel(&entry, sizeof(entry), index + sizeof(head) + (low - 1ull) * sizeof(entry)))
		return 0;
	return index + (__u64)(__s64)entry.frames;
}

/* ---- what an entry says ---- */

/* What all functions of a kind share (CIE). */
struct common {
	__u64 code_unit;
	__s64 data_unit;
	__u8 encoding; /* of addresses */
	bool sized;
	bool signal;
	struct reader instructions;
};

/* Bytes of an encoded address; 0: of another kind. */
static __u32 encoded_bytes(__u8 encoding)
{
	switch (encoding & 0x0f) {
	case 0x00:
	case 0x04:
	case 0x0c:
		return 8;
	case 0x02:
	case 0x0a:
		return 2;
	case ENCODED_UDATA4:
	case ENCODED_SDATA4:
		return 4;
	default:
		return 0;
	}
}

/* The bytes that follow the length of an entry. */
static bool begin_entry(struct reader *reader, __u64 at)
{
	__u32 length;

	if (read_by_kernel(&length, sizeof(length), at) || !length || length == ~0u)
		return false;
	*reader = (struct reader){ .at = at + 4, .end = at + 4 + length };
	return true;
}

static void read_augmentation(struct reader *reader, struct common *common, const char *letters)
{
	for (; *letters && !reader->broken; letters++) {
		if (*letters == 'z') {
			common->sized = true;
			next_unsigned(reader);
		} else if (*letters == 'R') {
			common->encoding = next_byte(reader);
		} else if (*letters == 'L') {
			next_byte(reader);
		} else if (*letters == 'P') {
			__u32 bytes = encoded_bytes(next_byte(reader));

			reader->broken |= !bytes;
			skip(reader, bytes);
		} else if (*letters == 'S') {
			common->signal = true;
		} else {
			reader->broken = true;
		}
	}
}

static bool read_common(__u64 at, struct common *common)
{
	struct reader *reader = &common->instructions;
	char letters[8] = "";
	__u8 version;

	common->encoding = 0;
	common->sized = common->signal = false;
	if (!begin_entry(reader, at) || next_number(reader, 4))
		return false;
	version = next_byte(reader);
	for (__u32 i = 0; i < sizeof(letters); i++) {
		letters[i] = (char)next_byte(reader);
		if (!letters[i])
			break;
	}
	if (letters[sizeof(letters) - 1] || (version != 1 && version != 3))
		return false;
	common->code_unit = next_unsigned(reader);
	common->data_unit = next_signed(reader);
	if (version == 1)
		next_byte(reader);
	else
		next_unsigned(reader);
	read_augmentation(reader, common, letters);
	return !reader->broken;
}

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
