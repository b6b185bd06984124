/* The block of a thread: which one is its, and whether it may work there now. */
#ifndef GPUSCOPE_AGENT_BLOCK_H
#define GPUSCOPE_AGENT_BLOCK_H

#include "membership.h"
#include "ranges.h"
#include "stack.h"

#define NO_SUCH_THREAD (-3)
#define BLOCKS_LOOKED_AT 4
#define FEW_BLOCKS 16

static struct block *block_at(__u32 number)
{
	return (struct block *)(process + PROCESS_BLOCKS + (__u64)number * BLOCK_BYTES);
}

/* The block of a thread that has ended; NULL: among those that were looked at there is none. */
static struct block *inherited(__u32 tid, __u32 count)
{
	static __u32 cursor;

	for (__u32 i = 0; i < BLOCKS_LOOKED_AT && count > FEW_BLOCKS; i++) {
		__u32 number = __sync_fetch_and_add(&cursor, 1) % count;
		struct block *block = block_at(number);
		__u32 owner = __atomic_load_n(&block->owner, __ATOMIC_ACQUIRE);

		if (owner && SYS3(tgkill, epoch & EPOCH_PROCESS, owner, 0) == NO_SUCH_THREAD &&
		    __sync_bool_compare_and_swap(&block->owner, owner, tid)) {
			memset((char *)block + BLOCK_LOCAL, 0, BLOCK_ROWS - BLOCK_LOCAL);
			return block;
		}
	}
	return NULL;
}

static struct block *named(struct block *block, __u32 tid)
{
	struct local *own = (struct local *)((char *)block + BLOCK_LOCAL);

	own->ids = (__u64)((struct process_head *)process)->tgid << 32 | tid;
	block->pointer = 0;
	return block;
}

static struct block *claim(__u32 tid)
{
	struct process_head *head = (struct process_head *)process;
	__u32 count = __atomic_load_n(&head->blocks, __ATOMIC_ACQUIRE), number;
	struct block *block = inherited(tid, count < MOST_BLOCKS ? count : MOST_BLOCKS);

	if (block)
		return named(block, tid);
	number = __sync_fetch_and_add(&head->blocks, 1);
	if (number >= MOST_BLOCKS) {
		__sync_fetch_and_add(&head->blocks, -1);
		return NULL;
	}
	block = block_at(number);
	if (number < LARGE_RINGS) {
		block->ring_bytes = (__u32)head->large_ring;
		block->ring_at =
			(__u64)(process + PROCESS_LARGE_RINGS + number * (__u64)RING_MOST) - (__u64)block;
	} else {
		block->ring_bytes = RING_BYTES_OF_MANY;
		block->ring_at = BLOCK_RING;
	}
	__atomic_store_n(&block->owner, tid, __ATOMIC_RELEASE);
	return named(block, tid);
}

/* The thread calls for the first time in this process. */
static __noinline void begin_thread(void)
{
	__u32 tid;

	self = NULL;
	other = NULL;
	if (!membership.epoch)
		join_child();
	epoch = __atomic_load_n(&membership.epoch, __ATOMIC_ACQUIRE);
	if (!epoch || (epoch & DORMANT))
		return;
	if (is_quiet)
		return; /* who calls is not known: that it did is counted */
	tid = (__u32)SYS0(gettid);
	self = claim(tid);
	if (!self)
		return;
	self->pointer = thread_pointer_of(NULL);
	now_ns();
	hand_over_left();
}

static void note_open_calls(struct message *message)
{
	const struct thread *thread;

	if (!self || epoch != membership.epoch)
		return;
	thread = bpf_task_storage_get(&threads, NULL, 0, 0);
	for (__u32 i = 0; i < MESSAGE_OPEN && i < thread->depth; i++) {
		message->open_entered[i] = thread->frames[i].entered;
		message->open_row[i] = thread->frames[i].row;
	}
}

/* ---- in a hook ---- */

/* As the kernel has it. */
struct signal_stack {
	__u64 from;
	__u32 flags;
	__u32 pad;
	__u64 bytes;
};

#define ON_SIGNAL_STACK 1

/* Whether a stack that handlers run on is in use, and `sp` is not on it. False where that may not be asked. */
static __noinline bool is_below_handler(__u64 sp)
{
	struct signal_stack stack;

	if (SYS2(sigaltstack, 0, &stack))
		return false;
	return stack.flags & ON_SIGNAL_STACK && sp - stack.from >= stack.bytes;
}

/* Whether the call at `sp` comes out of a handler that has interrupted the hook which works in this block. A handler's stack
 * may lie anywhere.
 */
INLINE bool is_within(const struct block *block, __u64 sp)
{
	__u64 interrupted = ((const struct local *)((const char *)block + BLOCK_LOCAL))->sp;

	return SELDOM(block->busy) && (sp < interrupted || is_below_handler(interrupted));
}

/* Has the two blocks of the thread change places. A handler that comes between finds the same one twice, and uses neither. */
INLINE void change_places(void)
{
	struct block *block = other;

	__atomic_store_n(&other, self, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&self, block, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* A handler of a signal has interrupted a hook of this thread and calls. False: another one has interrupted that, too. */
static __noinline bool step_aside(__u64 sp)
{
	if (!other)
		other = claim((__u32)local()->ids);
	if (!other || other == self || is_within(other, sp))
		return false;
	change_places();
	local()->aside = true;
	return true;
}

/* Whether the thread may work in its block: a handler of a signal that has interrupted it there works in another one. Where
 * a handler has left by a jump, what it interrupted will not go on: it lies below on the same stack then.
 */
INLINE bool begin(const struct pt_regs *regs)
{
	struct local *own;

	if (SELDOM(epoch != membership.epoch) || SELDOM(!self)) {
		/* 0: of a forked child, by a thread whose parent had not called either */
		if (epoch != membership.epoch || !epoch)
			begin_thread();
		if (!self) {
			if (process && !(epoch & DORMANT))
				__sync_fetch_and_add(&((struct process_head *)process)->unseen, 1);
			return false;
		}
	}
	if (SELDOM(is_within(self, regs->rsp)) && !step_aside(regs->rsp)) {
		__sync_fetch_and_add(&((struct process_head *)process)->nested, 1);
		return false;
	}
	own = local();
	if (SELDOM(self->busy) && !own->aside)
		let_go_of_tables();
	own->sp = regs->rsp;
	if (SELDOM(!on_own_stack(regs->rsp, 8)))
		know_pages_of_stack(regs->rsp, 1);
	__atomic_store_n(&self->busy, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&self->busy, now_ns(), __ATOMIC_RELAXED);
	return true;
}

INLINE void end(void)
{
	struct block *done = self;

	if (SELDOM(local()->aside)) {
		local()->aside = false;
		change_places();
	}
	__atomic_store_n(&done->busy, 0, __ATOMIC_RELEASE);
}

#endif
