/* System calls as they are entered, and which of them are on a device of the driver. What is told of them is told as they
 * return: driver_leave.bpf.h.
 */
#ifndef GPUSCOPE_DRIVER_ENTER_BPF_H
#define GPUSCOPE_DRIVER_ENTER_BPF_H

#include "driver_asked.bpf.h"

#define POLLED 8 /* descriptors of one poll that are looked at */
#define MOST_UVM 80
#define UVM_INITIALIZE 0x30000001
#define UVM_DEINITIALIZE 0x30000002

struct syscall_entered {
	__u64 common;
	__u64 nr;
	__u64 args[6];
};

/* Whether it is a device of the driver. */
static __always_inline int enter_by(__u32 fd, __u32 word, __u64 argument, __u8 step)
{
	struct device device = {};
	struct thread *thread;

	if (!asks() || !find_device(&device, fd))
		return 0;
	thread = asking();
	if (!thread)
		return 0;
	set_device(&thread->asked, &device);
	thread->asked.word = word;
	thread->asked.argument = argument;
	thread->asked.nr = 0;
	thread->asked.bytes = 0;
	begin(thread, &thread->asked, step);
	count_entered(&thread->asked);
	return 1;
}

/* Told without a look at the descriptor. Where few processes are watched, each call of theirs is looked at. */
static __always_inline bool may_be_ours(__u32 word)
{
	return options.only_targets || (word >> 8 & 0xff) == 'F' || word <= MOST_UVM ||
	       word == UVM_INITIALIZE || word == UVM_DEINITIALIZE;
}

SEC("tp/syscalls/sys_enter_ioctl")
int ioctl_entered(struct syscall_entered *ctx)
{
	__u32 word = ctx->args[1];

	if (may_be_ours(word))
		enter_by(ctx->args[0], word, ctx->args[2], STEP_IOCTL);
	return 0;
}

SEC("tp/syscalls/sys_enter_close")
int close_entered(struct syscall_entered *ctx)
{
	enter_by(ctx->args[0], 0, 0, STEP_CLOSE);
	return 0;
}

SEC("tp/syscalls/sys_enter_mmap")
int mmap_entered(struct syscall_entered *ctx)
{
	enter_by(ctx->args[4], 0, ctx->args[1], STEP_MMAP);
	return 0;
}

/* The descriptor comes with the return: until then the path has to do. A path whose page is not resident is read then. */
static __always_inline int open_body(__u64 path)
{
	char name[sizeof(DEVICES)] = {};
	struct thread *thread;
	struct asked *asked;

	if (!asks() || (!bpf_probe_read_user(name, sizeof(DEVICES) - 1, (void *)path) &&
			!same_text(name, DEVICES, sizeof(DEVICES) - 1)))
		return 0;
	thread = asking();
	if (!thread)
		return 0;
	asked = &thread->asked;
	asked->family = FAMILY_FRONT;
	asked->minor = 0;
	asked->file = 0;
	asked->argument = path;
	begin(thread, asked, STEP_OPEN);
	if (read_path(asked))
		count_entered(asked);
	return 0;
}

SEC("tp/syscalls/sys_enter_openat")
int openat_entered(struct syscall_entered *ctx)
{
	return open_body(ctx->args[1]);
}

SEC("tp/syscalls/sys_enter_open")
int open_entered(struct syscall_entered *ctx)
{
	return open_body(ctx->args[0]);
}

struct polled {
	__s32 fd;
	__u32 events;
};

static __always_inline int poll_body(__u64 descriptors, __u64 count, __u64 timeout)
{
	struct polled polled;

	if (!asks())
		return 0;
	for (__u32 i = 0; i < POLLED; i++) {
		__u64 at = descriptors + i * sizeof(polled);

		if (i >= count || bpf_probe_read_user(&polled, sizeof(polled), (void *)at))
			return 0;
		if (enter_by(polled.fd, 0, timeout, STEP_POLL))
			return 0;
	}
	return 0;
}

SEC("tp/syscalls/sys_enter_poll")
int poll_entered(struct syscall_entered *ctx)
{
	return poll_body(ctx->args[0], ctx->args[1], ctx->args[2]);
}

SEC("tp/syscalls/sys_enter_ppoll")
int ppoll_entered(struct syscall_entered *ctx)
{
	return poll_body(ctx->args[0], ctx->args[1], 0);
}

#endif
