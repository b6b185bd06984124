/* Who is watched, and notices of what happens to threads. */
#ifndef GPUSCOPE_WATCH_BPF_H
#define GPUSCOPE_WATCH_BPF_H

#include "cgroup.bpf.h"
#include "sampled.bpf.h"
#include "state.bpf.h"

/* Global, as are others that are long or loop: the verifier looks at each once, not on every path to it. */
__noinline int comm_selected(void)
{
	char comm[WIRE_COMM] = {};

	bpf_get_current_comm(comm, sizeof(comm));
	for (__u32 i = 0; i < WIRE_COMMS; i++) {
		bool same = i < options.comms;

		for (int j = 0; j < WIRE_COMM; j++)
			if (j < options.comm_length[i] && comm[j] != options.comm[i][j])
				same = false;
		if (same)
			return true;
	}
	return false;
}

static __always_inline bool watched(__u32 tgid)
{
	if (options.only_targets && !bpf_map_lookup_elem(&targets, &tgid))
		return false;
	if (options.by_uid && (__u32)bpf_get_current_uid_gid() != options.uid)
		return false;
	if (options.by_cgroup && bpf_get_current_cgroup_id() != options.cgroup)
		return false;
	return !options.comms || comm_selected();
}

/* ---- notices ---- */

static __always_inline struct notice *notice_start(__u32 kind, __u32 tgid, __u32 tid)
{
	struct notice *notice = bpf_ringbuf_reserve(&notices, sizeof(*notice), 0);

	if (!notice) {
		__sync_fetch_and_add(&control.notices_lost, 1);
		return NULL;
	}
	__builtin_memset(notice, 0, sizeof(*notice));
	notice->kind = kind;
	notice->tgid = tgid;
	notice->tid = tid;
	notice->at = bpf_ktime_get_ns();
	bpf_get_current_comm(notice->comm, sizeof(notice->comm));
	return notice;
}

static __always_inline __u64 image_of(struct task_struct *task, __u32 tgid)
{
	__u64 started = BPF_CORE_READ(task, group_leader, start_boottime);

	return mix(mix(tgid, started), BPF_CORE_READ(task, self_exec_id));
}

/* The state of a thread that calls for the first time; NULL: it is not watched, or there is no memory. */
static __noinline struct thread *thread_made(__u64 ids)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct notice *notice;
	__u64 place;

	if (!thread || thread->ids)
		return thread;
	thread->ids = ids;
	thread->image = image_of(task, ids >> 32);
	thread->voluntary = BPF_CORE_READ(task, nvcsw);
	thread->involuntary = BPF_CORE_READ(task, nivcsw);
	begin_samples(task);
	/* before there is a notice: what is reserved in the ring holds up the others */
	place = options.fleet ? place_of(task) : 0;
	notice = notice_start(NOTICE_THREAD, ids >> 32, (__u32)ids);
	if (!notice)
		return thread;
	notice->place = place;
	bpf_ringbuf_submit(notice, BPF_RB_NO_WAKEUP);
	return thread;
}

static __always_inline struct thread *thread_known(void)
{
	return bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
}

/* Whether the state of a thread is enough to know that it is watched. */
static __always_inline bool watched_once_for_all(void)
{
	return !options.by_uid && !options.by_cgroup && !options.comms;
}

#endif
