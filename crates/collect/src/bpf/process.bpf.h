/* Processes: their life, and the libraries that they map. */
#ifndef GPUSCOPE_PROCESS_BPF_H
#define GPUSCOPE_PROCESS_BPF_H

#include "files.bpf.h"
#include "frame.bpf.h"
#include "launch.bpf.h"
#include "site.bpf.h"
#include "watch.bpf.h"

struct wait {
	__u64 sequence;
	__u64 deadline;
	__u64 readable; /* an address of the program's own stack */
};

static __always_inline bool acknowledged(__u64 sequence)
{
	return ((volatile struct control *)&control)->acknowledged[sequence % WIRE_WAITS] >= sequence;
}

static long spin(__u64 index, struct wait *wait)
{
	__u8 byte;

	if (acknowledged(wait->sequence))
		return 1;
	/* of all helpers this one lets others run, on kernels that do not preempt a program */
	bpf_copy_from_user_task(&byte, 1, (void *)wait->readable, bpf_get_current_task_btf(), 0);
	return bpf_ktime_get_ns() > wait->deadline;
}

/* Names the calls that the thread of `notice` is in: what it waits for here is no time of theirs. */
static __always_inline void name_open_calls(struct notice *notice)
{
	struct thread *thread = thread_known();

	if (!thread)
		return;
	for (__u32 i = 0; i < WIRE_OPEN; i++) {
		if (i >= thread->depth)
			break;
		notice->open[i].entered = thread->frames[i].entered;
		notice->open[i].row = thread->frames[i].row;
	}
}

/* Of user space: it cannot wait for itself, nor for those that read for it. */
static __noinline bool is_own(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	for (int i = 0; i < 3 && task; i++) {
		if (BPF_CORE_READ(task, tgid) == (int)options.own)
			return true;
		task = BPF_CORE_READ(task, real_parent);
	}
	return false;
}

static __noinline __u32 waits(__u64 sequence)
{
	if (options.wait_for_new) {
		if (!can_look_at_files() || is_own())
			return WAITS_NOT;
		if (!maps_unknown_files(sequence))
			return WAITS_FOR_NONE;
	} else if (!options.wait_for_attach) {
		return WAITS_NOT;
	}
	return control.alive + ALIVE_NS >= bpf_ktime_get_ns() ? WAITS : WAITS_NOT;
}

/* When it was, CLOCK_MONOTONIC ns; 0: the ring has no room. A function of its own: what gives way to others while it runs
 * may have a small stack only.
 */
static __noinline __u64 tell_of_libraries(__u64 ids, __u64 sequence, __u32 how)
{
	struct notice *notice = notice_start(NOTICE_LIBRARY, ids >> 32, (__u32)ids);
	__u64 at;

	if (!notice)
		return 0;
	at = notice->at;
	notice->sequence = sequence;
	notice->waits = how;
	name_open_calls(notice);
	bpf_ringbuf_submit(notice, BPF_RB_FORCE_WAKEUP);
	return at;
}

/* The dynamic linker calls this hook after it has mapped libraries and before any of their code runs. The
 * thread waits here until user space has looked at them, for a bounded time and only while user space shows
 * signs of life. Is there something to attach to, user space arranges for the thread to stop once it leaves the
 * kernel, and acknowledges: waiting here burns a CPU. Sleepable, to be outside of an RCU read section.
 */
static __always_inline int library_body(struct pt_regs *ctx)
{
	__u64 ids = bpf_get_current_pid_tgid(), at;
	struct wait wait = {};
	__u32 how;

	if (!watched(ids >> 32))
		return 0;
	wait.sequence = __sync_fetch_and_add(&control.sequence, 1) + 1;
	/* before there is a notice: what is reserved in the ring holds up the others */
	how = waits(wait.sequence);
	at = tell_of_libraries(ids, wait.sequence, how);
	if (!at || how != WAITS)
		return 0;
	wait.deadline = at + WAIT_NS;
	wait.readable = PT_REGS_SP(ctx);
	bpf_loop(MAX_SPINS, spin, &wait, 0);
	if (!acknowledged(wait.sequence))
		__sync_fetch_and_add(&control.waits_expired, 1);
	return 0;
}

SEC("uprobe.multi.s")
int library_mapped_multi(struct pt_regs *ctx)
{
	return library_body(ctx);
}

SEC("uprobe.s")
int library_mapped_single(struct pt_regs *ctx)
{
	return library_body(ctx);
}

/* A child runs the interpreter of its parent, at the same address. */
static __always_inline void inherit_python(__u32 from, __u32 to)
{
	const struct python *python = bpf_map_lookup_elem(&pythons, &from);

	if (python)
		bpf_map_update_elem(&pythons, &to, python, BPF_ANY);
}

SEC("raw_tp/sched_process_fork")
int process_forked(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	__u32 from = BPF_CORE_READ(parent, tgid), to = BPF_CORE_READ(child, tgid), one = 1;
	struct notice *notice;

	if (from != to)
		inherit_python(from, to);
	if (from == to || !options.only_targets || !bpf_map_lookup_elem(&targets, &from))
		return 0;
	if (options.follow_forks)
		bpf_map_update_elem(&targets, &to, &one, BPF_ANY);
	notice = notice_start(NOTICE_FORK, to, to);
	if (!notice)
		return 0;
	notice->parent = from;
	bpf_ringbuf_submit(notice, BPF_RB_NO_WAKEUP);
	return 0;
}

/* The current thread has made its last call. */
static __always_inline void count_switches(void)
{
	struct thread *thread = thread_known();
	struct task_struct *task = bpf_get_current_task_btf();

	if (!thread || !thread->ids)
		return;
	__sync_fetch_and_add(&control.threads_ended, 1);
	__sync_fetch_and_add(&control.voluntary, BPF_CORE_READ(task, nvcsw) - thread->voluntary);
	__sync_fetch_and_add(&control.involuntary, BPF_CORE_READ(task, nivcsw) - thread->involuntary);
}

/* After execve nothing of the old image returns: its open calls are dropped with its thread storage. */
SEC("raw_tp/sched_process_exec")
int process_executed(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct notice *notice;

	leave_all(task);
	count_switches();
	bpf_task_storage_delete(&threads, task);
	bpf_task_storage_delete(&site_scratches, task);
	bpf_task_storage_delete(&sampled_threads, task);
	bpf_task_storage_delete(&kernel_scratches, task);
	bpf_map_delete_elem(&pythons, &tgid);
	if (options.only_targets && !bpf_map_lookup_elem(&targets, &tgid))
		return 0;
	notice = notice_start(NOTICE_EXEC, tgid, tgid);
	if (notice)
		bpf_ringbuf_submit(notice, BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* of `exit_code`, as in WTERMSIG */
#define EXIT_SIGNAL 0x7f

SEC("raw_tp/sched_process_exit")
int process_exited(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct notice *notice;

	leave_all(bpf_get_current_task_btf());
	count_switches();
	if (BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	bpf_map_delete_elem(&pythons, &tgid);
	if (options.only_targets && bpf_map_delete_elem(&targets, &tgid))
		return 0;
	notice = notice_start(NOTICE_EXIT, tgid, tgid);
	if (!notice)
		return 0;
	/* the last thread to end need not be the one that the process is named after */
	BPF_CORE_READ_STR_INTO(&notice->comm, task, group_leader, comm);
	notice->parent = BPF_CORE_READ(task, exit_code) & EXIT_SIGNAL;
	bpf_ringbuf_submit(notice, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
