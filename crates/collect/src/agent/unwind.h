/* The native stack of a call, by the rules of the functions that are on it: with or without frame pointers. */
#ifndef GPUSCOPE_AGENT_UNWIND_H
#define GPUSCOPE_AGENT_UNWIND_H

#include "rule.h"
#include "stack.h"

#define RULE_SETS 1024 /* a power of two */
#define RULES_OF_SET 4

/* What a thread has learnt: a set for each address, in which the oldest goes. */
struct rules {
	__u32 learnt; /* at which change of the modules */
	__u32 turn;
	struct rule rule[RULE_SETS][RULES_OF_SET];
};

/* Where in a thread's block they lie. */
static __u32 rules_at;

struct walk {
	__u64 pc;
	__u64 sp;
	__u64 rbp;
	bool guessed; /* a step was not by a rule: what is taken for the stack may be anything */
};

extern void agent_call(void);
extern void agent_linker(void);

INLINE struct rules *rules_of_thread(void)
{
	struct rules *rules = (struct rules *)((char *)self + BLOCK_LOCAL + rules_at);
	__u32 now = __atomic_load_n(&modules_changed, __ATOMIC_ACQUIRE);

	if (rules->learnt != now) {
		memset(rules, 0, sizeof(*rules));
		rules->learnt = now;
	}
	return rules;
}

INLINE const struct rule *rule_for(struct rules *rules, __u64 pc)
{
	struct rule *set = rules->rule[(pc * 0x9e3779b97f4a7c15) >> 32 & (RULE_SETS - 1)], *rule;

	for (__u32 i = 0; i < RULES_OF_SET; i++)
		if (set[i].pc == pc)
			return &set[i];
	rule = &set[rules->turn++ & (RULES_OF_SET - 1)];
	find_rule(pc, rule);
	return rule;
}

/* A word of the thread's own stack; false: it lies elsewhere. */
INLINE bool stack_word(const struct walk *walk, __u64 at, __u64 *word)
{
	if (at & 7 || !on_own_stack(at, 8))
		return false;
	if (walk->guessed)
		return !read_by_kernel(word, 8, at);
	*word = *(const __u64 *)at;
	return true;
}

/* By frame pointers, where nothing else is known; what they lead to must be code. */
static bool step_by_frame(struct walk *walk)
{
	__u64 frame = walk->rbp;

	walk->guessed = true;
	if (frame < walk->sp || !stack_word(walk, frame, &walk->rbp) ||
	    !stack_word(walk, frame + 8, &walk->pc))
		return false;
	walk->sp = frame + 16;
	return module_at(walk->pc - 1) != NULL;
}

/* Goes to the caller; false: there is none, or it cannot be told. */
INLINE bool step(struct walk *walk, const struct rule *rule)
{
	__u64 end, saved = walk->rbp, at;

	if (rule->base == RULE_NONE)
		return step_by_frame(walk);
	if (rule->base == RULE_END)
		return false;
	end = (rule->base == RULE_STACK ? walk->sp : walk->rbp) + (__u64)(__s64)rule->frame;
	if (rule->base == RULE_THROUGH && !stack_word(walk, end, &end))
		return false;
	at = (rule->saved_in == SAVED_BELOW ? end : walk->rbp) + (__u64)(__s64)rule->saved;
	if (rule->saved_in != SAVED_NOWHERE && !stack_word(walk, at, &saved))
		return false;
	if (end <= walk->sp || !stack_word(walk, end - 8, &walk->pc))
		return false;
	walk->rbp = saved;
	walk->sp = end;
	return walk->pc;
}

INLINE bool is_ours(__u64 pc)
{
	return pc - (__u64)agent_call < (__u64)agent_linker - (__u64)agent_call;
}

/* Return addresses, innermost first; their bytes. */
long walk_frames(const struct pt_regs *regs, __u64 *to, __u32 bytes)
{
	/* what a call returns to lies behind it, as all other addresses here do behind what is meant */
	struct walk walk = { regs->rip + local()->at_place, regs->rsp, regs->rbp, false };
	struct rules *rules = rules_of_thread();
	__u32 count = 1, most = bytes / 8;

	to[0] = regs->rip;
	local()->walked = 0;
	if (!left_of(local()->stack, walk.sp))
		find_stack(walk.sp);
	local()->caller = 0;
	if (local()->at_entry) {
		if (!stack_word(&walk, walk.sp, &walk.pc))
			return 8;
		walk.sp += 8;
		if (!is_ours(walk.pc))
			to[count++] = walk.pc;
	}
	while (count < most) {
		const struct rule *rule = rule_for(rules, walk.pc);

		if (!step(&walk, rule)) {
			local()->walked = rule->base == RULE_END ? 0 : SITE_NATIVE_CUT;
			break;
		}
		if (!is_ours(walk.pc))
			to[count++] = walk.pc;
	}
	local()->caller = count > 1 ? to[1] : 0;
	return count * 8;
}

#endif
