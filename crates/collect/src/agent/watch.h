/* Who is watched: in a process that carries the agent, every thread. In place of watch.bpf.h. */
#ifndef GPUSCOPE_WATCH_BPF_H
#define GPUSCOPE_WATCH_BPF_H

#include "state.bpf.h"

static __always_inline bool watched(__u32 tgid)
{
	return true;
}

static __always_inline bool watched_once_for_all(void)
{
	return true;
}

static __always_inline struct thread *thread_known(void)
{
	struct thread *thread = bpf_task_storage_get(&threads, NULL, 0, 0);

	return thread->ids ? thread : NULL;
}

/* Of struct rusage: context switches of a thread, those in which it waited, and others. */
#define RUSAGE_WORDS 18
#define RUSAGE_VOLUNTARY 16
#define RUSAGE_INVOLUNTARY 17
#define RUSAGE_OF_THREAD 1

static void note_switches(struct thread *thread)
{
	__u64 usage[RUSAGE_WORDS];

	if (failed_call(SYS2(getrusage, RUSAGE_OF_THREAD, usage)))
		return;
	thread->voluntary = usage[RUSAGE_VOLUNTARY];
	thread->involuntary = usage[RUSAGE_INVOLUNTARY];
}

/* A thread that calls for the first time. */
static __noinline struct thread *thread_made(__u64 ids)
{
	struct thread *thread = bpf_task_storage_get(&threads, NULL, 0, 0);
	struct notice *notice;

	thread->ids = ids;
	thread->image = ((struct process_head *)process)->image;
	note_switches(thread);
	notice = reserve(RING_NOTICES, sizeof(*notice));
	if (!notice) {
		__sync_fetch_and_add(&control.notices_lost, 1);
		return thread;
	}
	__builtin_memset(notice, 0, sizeof(*notice));
	notice->kind = NOTICE_THREAD;
	notice->tgid = ids >> 32;
	notice->tid = (__u32)ids;
	notice->at = local()->now;
	bpf_get_current_comm(notice->comm, sizeof(notice->comm));
	submit_record();
	return thread;
}

#endif
