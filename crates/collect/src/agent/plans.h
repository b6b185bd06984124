/* What was planned for files when earlier programs loaded them, as it lies in memory: `struct kept_head`, then files and their patches. */
#ifndef GPUSCOPE_AGENT_PLANS_H
#define GPUSCOPE_AGENT_PLANS_H

#include "listed.h"

/* Of words: what was torn or damaged has another one. */
static __u64 digest_of(const char *at, __u64 bytes)
{
	__u64 digest = KEPT_BASIS;

	for (__u64 i = 0; i + sizeof(digest) <= bytes; i += sizeof(digest))
		digest = (digest ^ *(const __u64 *)(at + i)) * KEPT_PRIME;
	return digest;
}

/* Of the name of a file, without where it lies. */
static __u64 digest_of_name(const char *path)
{
	__u64 digest = KEPT_BASIS;

	for (; *path; path++)
		digest = *path == '/' ? KEPT_BASIS : (digest ^ (__u8)*path) * KEPT_PRIME;
	return digest;
}

INLINE bool is_same_file(const struct kept_file *kept, const struct found_file *found)
{
	return !memcmp(&kept->file, &found->file, sizeof(kept->file)) && kept->bytes == found->bytes &&
	       kept->written == found->written && kept->name == digest_of_name(found->path);
}

/* Finds where the patches of a file lie among `bytes` of plans; false: nobody has looked at it. */
static bool find_plan(const char *plans, __u64 bytes, const struct found_file *found,
		      struct arena_planned *plan)
{
	__u64 at = sizeof(struct kept_head);

	while (at + sizeof(struct kept_file) <= bytes) {
		const struct kept_file *kept = (const struct kept_file *)(plans + at);
		__u64 left = bytes - (at += sizeof(*kept));

		if (kept->patches > left / sizeof(struct arena_patch))
			return false;
		*plan = (struct arena_planned){ .at = at, .patches = kept->patches };
		if (is_same_file(kept, found))
			return true;
		at += kept->patches * sizeof(struct arena_patch);
	}
	return false;
}

#endif
