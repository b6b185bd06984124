/* System calls as they return: counted, shared out among the calls around them, and told as records. */
#ifndef GPUSCOPE_DRIVER_LEAVE_BPF_H
#define GPUSCOPE_DRIVER_LEAVE_BPF_H

#include "count.bpf.h"
#include "driver_asked.bpf.h"
#include "event.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} driver SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct share_key);
	__type(value, struct driver_share);
} driver_shares SEC(".maps");

const struct driver_event *driver_event_type __attribute__((unused));

struct syscall_left {
	__u64 common;
	__u64 nr;
	__u64 result;
};

static __always_inline void fill(struct driver_event *event, const struct thread *thread,
				 const struct asked *asked, __s64 result, __u64 duration)
{
	event->head.entered = asked->entered;
	event->head.duration = duration;
	event->head.caller = asked->caller;
	event->head.result = result;
	event->head.tgid = thread->ids >> 32;
	event->head.tid = (__u32)thread->ids;
	event->head.row = asked->row;
	event->head.depth = asked->depth;
	event->head.flags = 0;
	event->head.size = 0;
	event->head.unreadable = 0;
	event->call.file = asked->file;
	event->call.argument = asked->argument;
	event->call.word = asked->word;
	event->call.nr = asked->nr;
	event->call.bytes = asked->bytes;
	event->call.minor = asked->minor;
	event->call.family = asked->family;
	event->call.step = asked->step;
	event->call.wrapped = asked->wrapped;
	event->call.seen = asked->seen;
	event->call.pad = 0;
	event->call.behind = 0;
	__builtin_memcpy(event->call.before, asked->before, sizeof(event->call.before));
	__builtin_memset(event->call.after, 0, sizeof(event->call.after));
}

/* Adds the time to what the calls around it have spent in the driver. */
static __noinline int share(const struct thread *thread, __u64 duration)
{
	static const struct driver_share none;
	struct share_key key;
	__u32 depth;

	if (!thread)
		return 0;
	key.tgid = thread->ids >> 32;
	depth = open_calls(thread, thread->asked.sp);
	for (__u32 i = 0; i < WIRE_FRAMES; i++) {
		struct driver_share *sum;

		if (i >= depth)
			break;
		key.row = thread->frames[i].row;
		if (i && thread->frames[i - 1].row == key.row)
			continue;
		sum = bpf_map_lookup_elem(&driver_shares, &key);
		if (!sum) {
			bpf_map_update_elem(&driver_shares, &key, &none, BPF_NOEXIST);
			sum = bpf_map_lookup_elem(&driver_shares, &key);
		}
		if (!sum) {
			__sync_fetch_and_add(&control.shares_lost, 1);
			continue;
		}
		__sync_fetch_and_add(&sum->calls, 1);
		__sync_fetch_and_add(&sum->ns, duration);
	}
	return 0;
}

static __noinline int tell_asked(struct thread *thread, __s64 result, __u64 duration, __u32 hidden)
{
	struct driver_event *event;

	if (!thread)
		return 0;
	event = bpf_ringbuf_reserve(&driver, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&control.driver_lost, 1);
		return 0;
	}
	fill(event, thread, &thread->asked, result, duration);
	if (hidden)
		event->head.flags = EVENT_HIDDEN;
	if (thread->asked.step == STEP_IOCTL)
		read_after(event, &thread->asked);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline bool shown(const struct spec *spec, __s32 code, __u64 duration)
{
	return (spec->flags & SPEC_STREAM) && (!options.only_errors || code) && duration >= options.min_ns;
}

/* Whether what was opened, or was meant to be, is a device of the driver. */
static __noinline int opened(struct asked *asked, __s64 result)
{
	struct device device = {};

	if (!asked)
		return 0;
	if (!(asked->seen & SEEN_BEFORE)) {
		if (!read_path(asked))
			return 0;
		count_entered(asked);
	}
	if (result >= 0) {
		find_device(&device, result);
		set_device(asked, &device);
	}
	return 1;
}

static __always_inline int leave(__s64 result)
{
	struct thread *thread = thread_known();
	struct total_key key = {};
	struct answer answer = {};
	const struct spec *spec;
	struct asked *asked;
	__u64 duration;
	__u32 row;

	if (!thread || !thread->asked.entered)
		return 0;
	asked = &thread->asked;
	duration = bpf_ktime_get_ns() - asked->entered;
	if (asked->step == STEP_IOCTL && !(asked->seen & SEEN_BEFORE))
		read_again(asked);
	if (asked->step == STEP_OPEN && !opened(asked, result)) {
		asked->entered = 0;
		return 0;
	}
	if (asked->early || !counting()) {
		if (asked->early)
			count_before(asked->row);
		asked->entered = 0;
		return 0;
	}
	answer.code = result < 0 ? (__s32)result : 0;
	if (asked->step == STEP_IOCTL)
		read_answer(asked, result, &answer);
	row = asked->row;
	spec = bpf_map_lookup_elem(&specs, &row);
	if (spec) {
		key.tgid = thread->ids >> 32;
		key.row = row;
		key.variant = answer.variant;
		count(spec, &key, duration, (__u32)answer.code, 0);
		share(thread, duration);
		if (!options.driver_counted)
			tell_asked(thread, result, duration, !shown(spec, answer.code, duration));
	}
	asked->entered = 0;
	return 0;
}

SEC("tp/syscalls/sys_exit_ioctl")
int ioctl_left(struct syscall_left *ctx)
{
	return leave(ctx->result);
}

SEC("tp/syscalls/sys_exit_openat")
int openat_left(struct syscall_left *ctx)
{
	return leave(ctx->result);
}

SEC("tp/syscalls/sys_exit_open")
int open_left(struct syscall_left *ctx)
{
	return leave(ctx->result);
}

SEC("tp/syscalls/sys_exit_close")
int close_left(struct syscall_left *ctx)
{
	return leave(ctx->result);
}

SEC("tp/syscalls/sys_exit_mmap")
int mmap_left(struct syscall_left *ctx)
{
	return leave(ctx->result);
}

SEC("tp/syscalls/sys_exit_poll")
int poll_left(struct syscall_left *ctx)
{
	return leave(ctx->result);
}

SEC("tp/syscalls/sys_exit_ppoll")
int ppoll_left(struct syscall_left *ctx)
{
	return leave(ctx->result);
}

#endif
