/* What is mapped in the process, as the kernel lists it. */
#ifndef GPUSCOPE_AGENT_AREAS_H
#define GPUSCOPE_AGENT_AREAS_H

#include "memory.h"

struct area {
	__u64 from;
	__u64 to;
	__u64 flags; /* 1: code */
};

INLINE const char *number_at(const char *text, __u64 *number)
{
	for (*number = 0;; text++) {
		if (*text >= '0' && *text <= '9')
			*number = *number << 4 | (__u64)(*text - '0');
		else if (*text >= 'a' && *text <= 'f')
			*number = *number << 4 | (__u64)(*text - 'a' + 10);
		else
			return text;
	}
}

/* Whether an area is the one that was looked for. */
typedef bool (*look_at_area)(const struct area *area, void *with);

/* Shows areas in the order of their addresses, until one is it. */
static bool look_at_areas(look_at_area look, void *with)
{
	struct area area, *found = &area;
	char text[LINE_BYTES * 2];
	long fd = SYS3(open, "/proc/self/maps", 02000000 /* O_CLOEXEC */, 0), read;
	__u32 have = 0;
	bool done = false, skips = false;

	if (failed_call(fd))
		return false;
	while (!done && (read = SYS3(read, fd, text + have, sizeof(text) - have)) > 0) {
		__u32 begin = 0;

		have += (__u32)read;
		for (__u32 i = 0; i < have && !done; i++) {
			if (text[i] != '\n')
				continue;
			if (!skips) {
				const char *next = number_at(text + begin, &found->from);

				next = number_at(next + 1, &found->to);
				found->flags = next[3] == 'x';
				done = look(found, with);
			}
			skips = false;
			begin = i + 1;
		}
		if (!begin && have == sizeof(text)) {
			/* a line without end: its beginning has said all */
			skips = true;
			have = 0;
			continue;
		}
		for (__u32 i = begin; i < have; i++)
			text[i - begin] = text[i];
		have -= begin;
	}
	SYS1(close, fd);
	return done;
}

struct area_at {
	__u64 address;
	struct area *found;
};

static bool lies_there(const struct area *area, void *with)
{
	struct area_at *wanted = with;

	*wanted->found = *area;
	return wanted->address >= area->from && wanted->address < area->to;
}

/* Finds the area that holds `address`. */
static bool find_area(__u64 address, struct area *found)
{
	struct area_at wanted = { address, found };

	return look_at_areas(lies_there, &wanted);
}

#endif
