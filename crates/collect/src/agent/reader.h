/* Bytes of somebody's memory, read by the kernel for us, and the numbers that they stand for. */
#ifndef GPUSCOPE_AGENT_READER_H
#define GPUSCOPE_AGENT_READER_H

#include "memory.h"

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

#endif
