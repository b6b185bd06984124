/* Texts that make up paths. */
#ifndef GPUSCOPE_AGENT_PATH_H
#define GPUSCOPE_AGENT_PATH_H

#include "join.h"

INLINE char *append_text(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	*to = 0;
	return to;
}

/* A path, as far as there is room. */
INLINE void append_path(char *to, const char *from)
{
	for (__u32 i = 0; i < LONGEST_PATH && from[i]; i++) {
		to[i] = from[i];
		to[i + 1] = 0;
	}
}

INLINE bool begins_with(const char *text, const char *first)
{
	while (*first && *text == *first)
		text++, first++;
	return !*first;
}

static char *append_number(char *to, __u32 number)
{
	char digits[12];
	__u32 count = 0;

	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		*to++ = digits[--count];
	*to = 0;
	return to;
}

#endif
