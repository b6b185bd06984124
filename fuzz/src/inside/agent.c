/* What of the agent reads a program's memory or somebody's file, as functions that fuzz targets call: the agent itself needs a program around it. */
#include <linux/types.h>

#include "arena.h"
#include "host.h"
#include "memory.h"

#include "plans.h"
#include "rule.h"
#include "stack.h"
#include "text.h"

/* As far as the thread uses its block here. */
static char block[BLOCK_THREAD] __attribute__((aligned(64)));

static void forget(void)
{
	for (__u32 i = 0; i < sizeof(block); i++)
		block[i] = 0;
	self = (struct block *)block;
}

/* A text as annotations have it. `knows`: the thread remembers which pages are there. */
struct copied fuzz_copy_text(__u8 *to, __u32 most, __u64 from, bool wide, bool knows)
{
	struct probed_pages probed = { 0 }, *pages = knows ? &probed : NULL;

	forget();
	return wide ? copy_wide(pages, to, most, from) : copy_text(pages, to, most, from);
}

/* How the function that returns to `pc` is left, in a module whose unwind information begins at `index`. */
void fuzz_find_rule(__u64 index, __u64 pc, struct rule *rule)
{
	struct module module = { .from = 0, .to = ~0ull, .index = index };

	forget_modules();
	add_module(&module);
	find_rule(pc, rule);
}

/* How many words above the return address at `sp` may be copied. `pages`: so many are known to be there, from its own on. */
__u32 fuzz_words_above(__u64 sp, __u32 words, __u32 pages)
{
	forget();
	if (pages)
		know_pages_of_stack(sp, pages);
	return words_above(sp, words);
}

/* Where the patches of a file lie that is called `name` and otherwise as `like` says, among `bytes` of plans. */
bool fuzz_find_plan(const char *plans, __u64 bytes, const struct kept_file *like, const char *name,
		    struct arena_planned *plan)
{
	const struct found_file found = {
		.file = like->file, .bytes = like->bytes, .written = like->written, .path = name
	};

	return find_plan(plans, bytes, &found, plan);
}

/* What a file of that name is known by. */
__u64 fuzz_digest_of_name(const char *name)
{
	return digest_of_name(name);
}
