/* Has calls of functions that are patched already recorded, and no longer. */
#ifndef GPUSCOPE_AGENT_SWITCH_H
#define GPUSCOPE_AGENT_SWITCH_H

#include "patch.h"

/* Whether the function goes to its hook still: another file may have come to where its file was. */
INLINE bool leads_to(const struct hook *hook, __u32 kept)
{
	const unsigned char *jump = (const unsigned char *)(hook->address + kept);
	__s32 apart;

	if (!hook->thunk || jump[0] != 0xe9)
		return false;
	memcpy(&apart, jump + 1, sizeof(apart));
	return hook->address + kept + JUMP_BYTES + (__u64)(__s64)apart == hook->thunk;
}

/* The hook of a function; `next`: where the one behind it lies, mostly that of the next function. */
static struct hook *hook_at(const struct patched_file *patched, __u64 address, __u64 *next)
{
	for (__u64 tried = 0; tried < patched->count; tried++) {
		struct hook *hook = &patched->hooks[(*next)++ % patched->count];

		if (hook->address == address)
			return hook;
	}
	return NULL;
}

/* Has calls of what is patched already recorded as a plan says. */
static void switch_on(const char *plans, const struct arena_planned *plan, const struct patched_file *patched)
{
	const struct arena_patch *wanted = (const struct arena_patch *)(plans + plan->at);
	__u64 done = 0, next = 0;

	if (!lies_in_run(plan))
		return;
	for (__u64 i = 0; i < plan->patches; i++) {
		struct hook *hook = hook_at(patched, wanted[i].entry + patched->bias, &next);

		if (!hook || !leads_to(hook, wanted[i].kept))
			continue;
		hook->cookie = wanted[i].cookie;
		hook->words = wanted[i].stack_words;
		hook->returns = wanted[i].returns;
		if (!hook->on)
			raise_semaphore(hook, 1);
		__atomic_store_n(&hook->on, HOOK_TELLS, __ATOMIC_RELEASE);
		done++;
	}
	count_patched(done, plan->patches - done);
}

static void switch_all_off(void)
{
	for (__u32 i = 0; i < patched_count; i++)
		for (__u64 k = 0; k < patched_files[i].count; k++)
			if (__atomic_exchange_n(&patched_files[i].hooks[k].on, HOOK_PASSES, __ATOMIC_ACQ_REL))
				raise_semaphore(&patched_files[i].hooks[k], -1);
}

#endif
