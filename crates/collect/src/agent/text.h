/* Texts that a program hands to an annotation: copied with an end, out of memory that may not be there. */
#ifndef GPUSCOPE_AGENT_TEXT_H
#define GPUSCOPE_AGENT_TEXT_H

#include "memory.h"
#include "modules.h"
#include "range.h"

#define PAGES_PROBED 32 /* a power of two */

/* Pages that were asked about: the number, shifted by one, and whether they are a module's, which stay as long as that. */
struct probed_pages {
	__u64 page[PAGES_PROBED];
	__u64 modules; /* how often these had changed then */
};

static bool is_page_there(struct probed_pages *probed, __u64 at)
{
	__u64 page = at / ARENA_PAGE, *known = &probed->page[page & (PAGES_PROBED - 1)];

	if (probed->modules != modules_changed) {
		for (__u32 i = 0; i < PAGES_PROBED; i++)
			probed->page[i] = 0;
		probed->modules = modules_changed;
	}
	if (*known == (page << 1 | 1))
		return true;
	if (!kernel_can_read(at))
		return false;
	if (*known != page << 1)
		*known = page << 1 | (module_at(at) != NULL);
	return true;
}

/* Bytes that can be read from `at` on, up to the end of its page; 0: none. `probed`: what the thread remembers; NULL: it is in no
 * hook, and has neither a stack that is known nor a memory.
 */
static __u32 readable(struct probed_pages *probed, __u64 at)
{
	__u64 left = ARENA_PAGE - (at & (ARENA_PAGE - 1));

	if (at < LOWEST_ADDRESS || at > HIGHEST_ADDRESS)
		return 0;
	if (!probed)
		return kernel_can_read(at) ? (__u32)left : 0;
	return on_own_stack(at, left) || is_page_there(probed, at) ? (__u32)left : 0;
}

/* False: some of it cannot be read. */
static bool copy_readable(struct probed_pages *probed, void *to, __u64 from, __u32 bytes)
{
	__u32 done = 0;

	while (done < bytes) {
		__u32 some = readable(probed, from + done);

		if (!some)
			return false;
		some = some < bytes - done ? some : bytes - done;
		copy_words((char *)to + done, (const void *)(from + done), some);
		done += some;
	}
	return true;
}

/* A text that was copied. */
struct copied {
	__u32 bytes;
	__u8 flags; /* enum range_flag */
};

static struct copied copy_text(struct probed_pages *probed, __u8 *to, __u32 most, __u64 from)
{
	__u32 have = 0;

	while (have < most) {
		__u32 some = readable(probed, from + have);
		const __u8 *at = (const __u8 *)(from + have);

		if (!some)
			return (struct copied){ have, RANGE_UNREAD };
		for (some = some < most - have ? some : most - have; some; some--, have++) {
			if (!*at)
				return (struct copied){ have, 0 };
			to[have] = *at++;
		}
	}
	return (struct copied){ have, RANGE_CUT };
}

/* Bytes of a character in UTF-8, which has four at most. What is none is U+FFFD. */
static __u32 encode(__u32 letter, __u8 *to)
{
	if (letter > 0x10ffff || (letter >= 0xd800 && letter < 0xe000))
		letter = 0xfffd;
	if (letter < 0x80) {
		to[0] = (__u8)letter;
		return 1;
	}
	if (letter < 0x800) {
		to[0] = (__u8)(0xc0 | letter >> 6);
		to[1] = (__u8)(0x80 | (letter & 0x3f));
		return 2;
	}
	if (letter < 0x10000) {
		to[0] = (__u8)(0xe0 | letter >> 12);
		to[1] = (__u8)(0x80 | (letter >> 6 & 0x3f));
		to[2] = (__u8)(0x80 | (letter & 0x3f));
		return 3;
	}
	to[0] = (__u8)(0xf0 | letter >> 18);
	to[1] = (__u8)(0x80 | (letter >> 12 & 0x3f));
	to[2] = (__u8)(0x80 | (letter >> 6 & 0x3f));
	to[3] = (__u8)(0x80 | (letter & 0x3f));
	return 4;
}

/* The same of wide characters, which have four bytes each. */
static struct copied copy_wide(struct probed_pages *probed, __u8 *to, __u32 most, __u64 from)
{
	__u32 have = 0, letter;

	while (have + 4 <= most) {
		if (!copy_readable(probed, &letter, from, sizeof(letter)))
			return (struct copied){ have, RANGE_UNREAD };
		if (!letter)
			return (struct copied){ have, 0 };
		have += encode(letter, to + have);
		from += sizeof(letter);
	}
	return (struct copied){ have, RANGE_CUT };
}

#endif
