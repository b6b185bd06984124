/* What is loaded into a program that is traced from inside: the body of a call (call.bpf.h), entered by patched functions.
 *
 * It needs no library and calls none. It allocates nothing, takes no lock that the program may hold, starts no thread, says
 * nothing, and touches none of the program's memory that may not be there. Where it cannot do its work it stays dormant, and
 * the program runs as without it.
 */
#include <linux/types.h>

#include "arena.h"
#include "host.h"
#include "memory.h"

#include "watch.h"
#include "call.bpf.h"
#include "interpreter.h"

#include "block.h"
#include "program.h"

#include "nvtx.h"

_Static_assert(__builtin_offsetof(struct hook, on) == 40 && __builtin_offsetof(struct hook, plain) == 56 &&
		       __builtin_offsetof(struct membership, epoch) == 0 && DORMANT == 0x80000000 &&
		       __builtin_offsetof(struct door, wake) == 12 && HOOK_PASSES == 0 && HOOK_COUNTS == 2,
	       "as enter.S has them");
_Static_assert(sizeof(struct options) <= ARENA_PAGE, "a page");
_Static_assert(sizeof(struct control) <= ARENA_PAGE, "a page");
_Static_assert(sizeof(struct process_head) <= ARENA_PAGE, "a page");

/* Whether nothing but its number is wanted of a call: neither when it was, nor what it was given. */
INLINE bool is_plain(const struct spec *spec)
{
	return spec && !(spec->flags & ~SPEC_FALLIBLE) && !spec->hook.flags && !needs_frame(spec);
}

/* Counts such a call, which takes no time that would have to be known. Nothing is written that a handler of a signal could
 * find half done. False: it is the thread's first one.
 */
INLINE bool count_plain(const struct hook *hook)
{
	__u64 row = (__u32)hook->cookie;

	if (epoch != membership.epoch || !self || row >= ARENA_ROWS ||
	    !is_plain(element(PLACE_SPECS, (__u32)row, sizeof(struct spec))) || !thread_known())
		return false;
	if (counting())
		asm volatile("incq %0" : "+m"(*(__u64 *)((char *)self + BLOCK_PLAIN + row * 8)));
	return true;
}

/* The same of a function, whose further calls its thunk counts by itself. */
INLINE bool count_plain_function(struct hook *hook)
{
	__u64 tells = HOOK_TELLS;

	if (hook->returns || !count_plain(hook))
		return false;
	hook->plain = BLOCK_PLAIN + (__u64)(__u32)hook->cookie * 8;
	__atomic_compare_exchange_n(&hook->on, &tells, HOOK_COUNTS, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
	return true;
}

/* 0: the call need not come back to `agent_leave`; else 1 and the words of the stack that the function may be given. */
int agent_enter(struct pt_regs *regs, struct hook *hook)
{
	__u32 words = 0;

	if (SELDOM(door.wake || !hook->on) && !passes_door(hook))
		return 0;
	if (count_plain_function(hook) || !begin(regs))
		return 0;
	if (is_left(local()->now)) {
		end();
		leave_tracing();
		return 0;
	}
	local()->trusted = 0;
	local()->at_entry = true;
	enter_call(regs, hook->cookie);
	if (hook->returns)
		words = 1 + words_above(regs->rsp, hook->words);
	end();
	return (int)words;
}

/* Whether the library has followed the pointers of a call that returns. */
INLINE bool has_followed(const struct spec *spec, const struct pt_regs *regs)
{
	return spec && (spec->flags & SPEC_FALLIBLE) && (spec->ground & GROUND_FOLLOWED) && !(__u32)regs->rax;
}

void agent_leave(struct pt_regs *regs, const struct hook *hook)
{
	const struct spec *spec = element(PLACE_SPECS, (__u32)hook->cookie, sizeof(*spec));

	if (!begin(regs))
		return;
	local()->trusted = has_followed(spec, regs);
	local()->at_entry = false;
	leave_call(regs, hook->cookie);
	end();
}

/* A thread passes a place within a function. */
void agent_place(struct pt_regs *regs, const struct hook *hook)
{
	if ((door.wake || !hook->on) && !passes_door(hook))
		return;
	if (count_plain(hook) || !begin(regs))
		return;
	if (is_left(local()->now)) {
		end();
		leave_tracing();
		return;
	}
	local()->trusted = 0;
	local()->at_entry = false;
	local()->at_place = true;
	enter_call(regs, hook->cookie);
	local()->at_place = false;
	end();
}
