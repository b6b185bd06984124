/* The system call that a thread is within: `thread->asked`, from its entry to its return, and the calls around it. Which
 * system calls these are is said by driver_enter.bpf.h.
 */
#ifndef GPUSCOPE_DRIVER_ASKED_BPF_H
#define GPUSCOPE_DRIVER_ASKED_BPF_H

#include "driver_device.bpf.h"
#include "driver_ioctl.bpf.h"
#include "frame.bpf.h"
#include "watch.bpf.h"

#define DEVICES "/dev/nvidia"

struct pt_regs___stack {
	unsigned long sp;
} __attribute__((preserve_access_index));

/* Calls that were left without a return lie below the stack of the program. */
static __noinline __u32 open_calls(const struct thread *thread, __u64 sp)
{
	__u32 depth;

	if (!thread)
		return 0;
	depth = thread->depth;
	for (int i = 0; i < WIRE_FRAMES; i++) {
		__u64 top;

		if (depth - 1 >= WIRE_FRAMES)
			return 0;
		top = thread->frames[depth - 1].sp;
		if (top >= sp || sp - top > STACK_SPAN)
			return depth;
		depth--;
	}
	return 0;
}

static __always_inline __u64 stack_of_program(void)
{
	struct pt_regs___stack *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());

	return BPF_CORE_READ(regs, sp);
}

static __always_inline bool asks(void)
{
	return watched(bpf_get_current_pid_tgid() >> 32);
}

/* The thread that makes a system call on a device of the driver. */
static __always_inline struct thread *asking(void)
{
	struct thread *thread = thread_known();

	return thread ? thread : thread_made(bpf_get_current_pid_tgid());
}

static __always_inline void count_entered(const struct asked *asked)
{
	__u32 row = asked->row;
	struct row_counter *counter = bpf_map_lookup_elem(&row_counters, &row);

	if (counter && !asked->early)
		__sync_fetch_and_add(&counter->entered, 1);
}

/* `asked` has the device, the request and its argument. */
static __always_inline void begin(struct thread *thread, struct asked *asked, __u8 step)
{
	asked->step = step;
	asked->seen = 0;
	asked->wrapped = 0;
	asked->has_subject = 0;
	asked->early = !counting();
	asked->row = options.driver_row[step];
	asked->sp = stack_of_program();
	set_caller(thread, open_calls(thread, asked->sp), &thread->spare);
	asked->caller = thread->spare.caller;
	asked->depth = thread->spare.depth;
	if (step == STEP_IOCTL)
		read_before(asked);
	else if (step == STEP_CLOSE && is_last(asked->file))
		asked->seen = LAST_CLOSE;
	asked->entered = bpf_ktime_get_ns();
}

/* Whether the path at `argument` is that of a device; unreadable paths are none. */
static __always_inline bool read_path(struct asked *asked)
{
	if (bpf_probe_read_user_str(asked->before[0], WIRE_PIECE, (void *)asked->argument) < 0 ||
	    !same_text((char *)asked->before[0], DEVICES, sizeof(DEVICES) - 1))
		return false;
	asked->seen = SEEN_BEFORE;
	return true;
}

#endif
