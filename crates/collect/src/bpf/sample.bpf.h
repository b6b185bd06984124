/* Where threads that call CUDA are while they are outside of it for long, or in a call that does not return: their stacks
 * when they leave their CPU, and at the ticks of a clock while they are on it.
 *
 * The programs run within the scheduler and within interrupts: they allocate nothing, and touch no table that does.
 */
#ifndef GPUSCOPE_SAMPLE_BPF_H
#define GPUSCOPE_SAMPLE_BPF_H

#include <linux/bpf_perf_event.h>
#include "sampled.bpf.h"
#include "watch.bpf.h"

#define OUTSIDE_NS (1000ull * 1000)         /* outside CUDA for less, a tick is a look between calls */
#define HANGING_NS (500ull * 1000 * 1000)   /* in one call for so long, its stack is taken at ticks */
#define STACK_EVERY_NS (2ull * 1000 * 1000) /* of one thread, as it leaves its CPU */
#define STACKS_AT_ONCE 64
#define SHORTEST_OFF_NS (50ull * 1000)
#define OLDEST_NS (4ull * 1000 * 1000) /* the stack of who waits, where none was taken as it left its CPU */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} samples SEC(".maps");

/* When a thread beside Python was looked at last between calls, by the lower bits of its process's id: who is off its CPU then may wait
 * for that thread. */
#define LOOKED_SLOTS 1024
__u64 looked_at[LOOKED_SLOTS];

/* Whether one more stack may be taken at `now`: threads that never stay on their CPU for long would do nothing else. */
static __always_inline bool may_take(struct sampled *sampled, __u64 now)
{
	__u64 next = sampled->next > now ? sampled->next : now;

	if (next - now > STACKS_AT_ONCE * STACK_EVERY_NS)
		return false;
	sampled->next = next + STACK_EVERY_NS;
	return true;
}

/* Takes the stack of the current thread. */
static __always_inline void look_at_stack(void *ctx, struct sampled *sampled, __u64 ids, __u64 now,
					  __u32 flags)
{
	long bytes;

	__sync_fetch_and_add(&sampled->sequence, 1);
	bytes = bpf_get_stack(ctx, sampled->stack.event.native, sizeof(sampled->stack.event.native),
			      BPF_F_USER_STACK);
	if (bytes < 8) {
		bytes = 0;
		flags |= SITE_NATIVE_NONE;
	}
	fill_site(&sampled->stack, ids, (__u32)bytes, flags);
	sampled->stack.event.id = site_id(&sampled->stack);
	sampled->at = now;
	sampled->left_with = flags & SITE_ON_CPU ? 0 : now;
	__sync_fetch_and_add(&sampled->sequence, 1);
}

/* Tells of a thread outside CUDA: its last stack stands for `ns` up to `now`. */
static __always_inline void send_sample(struct sampled *sampled, __u64 now, __u64 ns)
{
	__u64 bytes = offsetof(struct sampled, stack.event.frames) - offsetof(struct sampled, at);
	__u64 frames = sampled->stack.event.python_count;

	if (frames > SITE_PYTHON)
		frames = SITE_PYTHON;
	__sync_fetch_and_add(&sampled->sequence, 1);
	sampled->at = now;
	sampled->ns = ns;
	__sync_fetch_and_add(&sampled->sequence, 1);
	bytes += frames * sizeof(struct python_frame);
	if (bpf_ringbuf_output(&samples, &sampled->at, bytes, BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&control.samples_lost, 1);
}

static __always_inline bool is_outside(const struct thread *thread)
{
	return !thread->depth && thread->returned;
}

static __always_inline bool is_outside_for_long(const struct thread *thread, __u64 now)
{
	return is_outside(thread) && now - thread->returned >= OUTSIDE_NS;
}

static __always_inline void switched_out(void *ctx, struct task_struct *task)
{
	struct sampled *sampled = bpf_task_storage_get(&sampled_threads, task, 0, 0);
	__u64 now = bpf_ktime_get_ns();

	if (!sampled)
		return;
	sampled->off_since = now;
	if (may_take(sampled, now))
		look_at_stack(ctx, sampled, bpf_get_current_pid_tgid(), now, SITE_AT_PLACE);
}

/* Tells of a thread that comes back, and had called a moment before it left its CPU at `since`, where it was. */
static __always_inline void send_waited(struct sampled *sampled, const struct thread *thread, __u32 tgid,
					__u64 since)
{
	__u64 looked = looked_at[tgid & (LOOKED_SLOTS - 1)];

	if (looked < since || !sampled->left_with || sampled->left_with + OLDEST_NS < looked)
		return;
	sampled->stack.event.flags |= SITE_WAITED;
	send_sample(sampled, looked, looked - thread->returned);
}

static __always_inline void switched_in(struct task_struct *task)
{
	struct sampled *sampled = bpf_task_storage_get(&sampled_threads, task, 0, 0);
	__u64 since, now = bpf_ktime_get_ns();
	struct thread *thread;

	if (!sampled || !sampled->off_since)
		return;
	since = sampled->off_since;
	sampled->off_since = 0;
	thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (!thread || !is_outside(thread)) {
		sampled->left_with = 0;
		return;
	}
	if (now - since < SHORTEST_OFF_NS)
		return;
	if (!is_outside_for_long(thread, now))
		send_waited(sampled, thread, task->tgid, since);
	else if (sampled->left_with == since) /* another stack would be another place */
		send_sample(sampled, now, now - since);
}

static __always_inline bool is_marked(const struct task_struct *task)
{
	return may_be_sampled[(__u32)task->pid & (SAMPLED_SLOTS - 1)];
}

SEC("tp_btf/sched_switch")
int thread_switched(__u64 *ctx)
{
	struct task_struct *previous = (void *)ctx[1], *next = (void *)ctx[2];

	if (is_marked(previous))
		switched_out(ctx, previous);
	if (is_marked(next))
		switched_in(next);
	return 0;
}

/* A clock that goes while its thread is on a CPU. */
SEC("perf_event")
int thread_ticked(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sampled *sampled = bpf_task_storage_get(&sampled_threads, task, 0, 0);
	struct thread *thread = thread_known();
	__u64 now = bpf_ktime_get_ns();
	__u32 flags = SITE_AT_PLACE | SITE_ON_CPU;
	bool outside, for_long;

	if (!sampled || !thread)
		return 0;
	outside = is_outside(thread);
	if (!outside && !(thread->depth && now - thread->frames[0].entered >= HANGING_NS))
		return 0;
	for_long = is_outside_for_long(thread, now);
	if (outside && !for_long)
		flags |= SITE_BETWEEN;
	look_at_stack(ctx, sampled, thread->ids, now, flags);
	if (flags & SITE_BETWEEN && sampled->stack.event.python == PYTHON_THREAD)
		looked_at[(thread->ids >> 32) & (LOOKED_SLOTS - 1)] = now;
	if (outside)
		send_sample(sampled, now, for_long ? ctx->sample_period : now - thread->returned);
	return 0;
}

#endif
