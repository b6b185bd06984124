/* Unwind information (.eh_frame): which entry is an address's, and what it shares with others of its kind. */
#ifndef GPUSCOPE_AGENT_EH_FRAME_H
#define GPUSCOPE_AGENT_EH_FRAME_H

#include "modules.h"
#include "reader.h"

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

#endif
