/* What a program asks of NVIDIA's kernel driver: system calls on its devices, ioctls above all. Base of it all are the
 * tracepoints of system calls, which need neither kprobes nor the driver's symbols. Layouts are user space's business:
 * `ioctl_plans` says what to copy.
 */
#ifndef GPUSCOPE_DRIVER_BPF_H
#define GPUSCOPE_DRIVER_BPF_H

#include "count.bpf.h"
#include "event.bpf.h"
#include "frame.bpf.h"
#include "watch.bpf.h"

#define FRONT_MAJOR 195
#define WRAPPER 211 /* a request whose argument names another one */
#define POLLED 8    /* descriptors of one poll that are looked at */
#define MOST_UVM 80
#define UVM_INITIALIZE 0x30000001
#define UVM_DEINITIALIZE 0x30000002

#define FRONT_MODULE "nvidia"
#define UVM_MODULE "nvidia_uvm"
#define DEVICES "/dev/nvidia"

struct module {
	char name[16];
} __attribute__((preserve_access_index));

struct file_operations {
	struct module *owner;
} __attribute__((preserve_access_index));

struct inode {
	__u32 i_rdev;
} __attribute__((preserve_access_index));

typedef struct {
	long counter;
} atomic_long;

typedef struct {
	atomic_long refcnt;
} file_reference;

struct file {
	struct inode *f_inode;
	const struct file_operations *f_op;
} __attribute__((preserve_access_index));

/* Linux 6.13 counts references from 0. */
struct file___from_0 {
	file_reference f_ref;
} __attribute__((preserve_access_index));

struct file___from_1 {
	atomic_long f_count;
} __attribute__((preserve_access_index));

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} __attribute__((preserve_access_index));

struct files_struct {
	struct fdtable *fdt;
} __attribute__((preserve_access_index));

struct task_struct___files {
	struct files_struct *files;
} __attribute__((preserve_access_index));

struct pt_regs___stack {
	unsigned long sp;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct ioctl_key);
	__type(value, struct ioctl_plan);
} ioctl_plans SEC(".maps");

/* What lies behind `pAllocParms`, by class. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct piece);
} ioctl_classes SEC(".maps");

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

struct syscall_entered {
	__u64 common;
	__u64 nr;
	__u64 args[6];
};

struct syscall_left {
	__u64 common;
	__u64 nr;
	__u64 result;
};

/* ---- which device ---- */

static __always_inline bool same_text(const char *text, const char *other, int bytes)
{
	for (int i = 0; i < bytes; i++)
		if (text[i] != other[i])
			return false;
	return true;
}

/* The numbers of UVM's devices are given out as the module loads, by the first program that needs it: until user space
 * knows them, they are told by their module.
 */
static __always_inline __u8 family_of(struct file *file, __u32 device)
{
	char name[16] = {};

	if (device >> 20 == FRONT_MAJOR)
		return FAMILY_FRONT;
	if (control.uvm_major && device >> 20 == control.uvm_major)
		return FAMILY_UVM;
	BPF_CORE_READ_INTO(&name, file, f_op, owner, name);
	if (same_text(name, UVM_MODULE, sizeof(UVM_MODULE)))
		return FAMILY_UVM;
	return same_text(name, FRONT_MODULE, sizeof(FRONT_MODULE)) ? FAMILY_CAPS : 0;
}

struct device {
	__u64 file;
	__u32 minor;
	__u32 family; /* enum driver_family, 0: none of the driver's */
};

/* Notes which device of the driver descriptor `fd` stands for; 0: none. */
static __noinline int find_device(struct device *found, __u32 fd)
{
	struct task_struct___files *task = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files, *file = NULL;
	__u32 device;

	if (!found || fd >= BPF_CORE_READ(table, max_fds))
		return 0;
	files = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	if (!file)
		return 0;
	device = BPF_CORE_READ(file, f_inode, i_rdev);
	if (!device)
		return 0;
	found->family = family_of(file, device);
	found->minor = device & 0xfffff;
	found->file = (__u64)file;
	return found->family;
}

static __always_inline void set_device(struct asked *asked, const struct device *device)
{
	asked->family = device->family;
	asked->minor = device->minor;
	asked->file = device->file;
}

static __always_inline bool is_last(__u64 address)
{
	struct file___from_0 *from_0 = (void *)address;
	struct file___from_1 *from_1 = (void *)address;

	if (bpf_core_field_exists(from_0->f_ref))
		return BPF_CORE_READ(from_0, f_ref.refcnt.counter) == 0;
	return BPF_CORE_READ(from_1, f_count.counter) == 1;
}

/* ---- the argument ---- */

static __always_inline bool read_pieces(__u64 (*to)[WIRE_PIECE / 8], const struct piece *piece,
					__u64 argument)
{
	for (int i = 0; i < 2; i++) {
		__u32 length = piece[i].length;

		if (length > WIRE_PIECE)
			return false;
		if (length && bpf_probe_read_user(to[i], length, (void *)(argument + piece[i].offset)))
			return false;
	}
	return true;
}

static __always_inline struct ioctl_plan *plan_of(const struct asked *asked)
{
	bool uvm = asked->family == FAMILY_UVM;
	struct ioctl_key key = { .nr = asked->nr | (uvm ? UVM_REQUEST : 0), .size = uvm ? 0 : asked->bytes };
	struct ioctl_plan *plan = bpf_map_lookup_elem(&ioctl_plans, &key);

	if (plan)
		return plan;
	key.size = ANY_SIZE;
	return bpf_map_lookup_elem(&ioctl_plans, &key);
}

/* Number and size of the request; those of the one inside, where it is a wrapper that can be read by now. */
static __always_inline void take_apart(struct asked *asked)
{
	struct {
		__u32 nr, bytes;
		__u64 argument;
	} inside;

	if (asked->family == FAMILY_UVM) {
		asked->nr = asked->word;
		return;
	}
	if (asked->wrapped)
		return;
	asked->nr = asked->word & 0xff;
	asked->bytes = asked->word >> 16 & 0x3fff;
	if (asked->family != FAMILY_FRONT || asked->nr != WRAPPER ||
	    bpf_probe_read_user(&inside, sizeof(inside), (void *)asked->argument))
		return;
	asked->nr = inside.nr;
	asked->bytes = inside.bytes;
	asked->argument = inside.argument;
	asked->wrapped = 1;
}

/* At enter, where that is possible: the driver writes another class into some arguments. */
static __always_inline void read_subject(struct asked *asked, const struct ioctl_plan *plan)
{
	if (asked->has_subject || plan->subject == NO_OFFSET)
		return;
	asked->has_subject = !bpf_probe_read_user(&asked->subject, sizeof(asked->subject),
						  (void *)(asked->argument + plan->subject));
}

static __noinline int read_before(struct asked *asked)
{
	struct ioctl_plan *plan;

	if (!asked)
		return 0;
	take_apart(asked);
	plan = plan_of(asked);
	asked->row = options.driver_row[STEP_IOCTL];
	if (asked->family == FAMILY_UVM)
		asked->row = options.uvm_row;
	if (!plan)
		return 0;
	asked->row = plan->row;
	read_subject(asked, plan);
	if (read_pieces(asked->before, plan->before, asked->argument))
		asked->seen = SEEN_BEFORE;
	return 0;
}

/* ---- enter ---- */

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

static __always_inline void count_entered(__u32 row)
{
	struct row_counter *counter = bpf_map_lookup_elem(&row_counters, &row);

	if (counter)
		__sync_fetch_and_add(&counter->entered, 1);
}

/* `asked` has the device, the request and its argument. */
static __always_inline void begin(struct thread *thread, struct asked *asked, __u8 step)
{
	asked->step = step;
	asked->seen = 0;
	asked->wrapped = 0;
	asked->has_subject = 0;
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
	count_entered(thread->asked.row);
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

/* Whether the path at `argument` is that of a device; unreadable paths are none. */
static __always_inline bool read_path(struct asked *asked)
{
	if (bpf_probe_read_user_str(asked->before[0], WIRE_PIECE, (void *)asked->argument) < 0 ||
	    !same_text((char *)asked->before[0], DEVICES, sizeof(DEVICES) - 1))
		return false;
	asked->seen = SEEN_BEFORE;
	return true;
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
		count_entered(asked->row);
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

/* ---- exit ---- */

/* What is counted apart, as a variant of the totals, and the driver's answer. */
struct answer {
	__u64 variant;
	__s32 code;
	__u32 pad;
};

/* A wrapper that could not be read at enter; of the argument inside, what was before is not known. */
static __always_inline void read_again(struct asked *asked)
{
	read_before(asked);
	asked->seen = 0;
}

static __noinline int read_answer(struct asked *asked, __s64 result, struct answer *answer)
{
	struct ioctl_plan *plan;
	__u32 status = 0;

	if (!asked || !answer)
		return 0;
	plan = plan_of(asked);
	if (!plan) {
		answer->variant = DRIVER_SUBJECT | asked->nr;
		return 0;
	}
	read_subject(asked, plan);
	if (asked->has_subject)
		answer->variant = DRIVER_SUBJECT | asked->subject;
	if (result < 0 || plan->status == NO_OFFSET)
		return 0;
	bpf_probe_read_user(&status, 4, (void *)(asked->argument + plan->status));
	/* 0x1xxxx: a warning */
	answer->code = status >> 16 == 1 ? 0 : (__s32)status;
	return 0;
}

static __always_inline void read_parameters(struct driver_event *event, const struct asked *asked,
					    const struct ioctl_plan *plan)
{
	__u32 class = asked->subject;
	struct piece *piece;
	__u64 pointer;

	if (!asked->has_subject || plan->pointer == NO_OFFSET ||
	    bpf_probe_read_user(&pointer, 8, (void *)(event->argument + plan->pointer)))
		return;
	piece = bpf_map_lookup_elem(&ioctl_classes, &class);
	if (!piece || piece->length > 8 || !pointer)
		return;
	if (!bpf_probe_read_user(&event->behind, piece->length, (void *)(pointer + piece->offset)))
		event->seen |= SEEN_BEHIND;
}

static __noinline int read_after(struct driver_event *event, struct asked *asked)
{
	struct ioctl_plan *plan;

	if (!event || !asked)
		return 0;
	plan = plan_of(asked);
	if (!plan)
		return 0;
	if (read_pieces(event->after, plan->after, asked->argument))
		event->seen |= SEEN_AFTER;
	read_parameters(event, asked, plan);
	return 0;
}

static __always_inline void fill(struct driver_event *event, const struct thread *thread,
				 const struct asked *asked, __s64 result, __u64 duration)
{
	event->entered = asked->entered;
	event->duration = duration;
	event->caller = asked->caller;
	event->result = result;
	event->tgid = thread->ids >> 32;
	event->tid = (__u32)thread->ids;
	event->row = asked->row;
	event->depth = asked->depth;
	event->flags = 0;
	event->size = 0;
	event->unreadable = 0;
	event->file = asked->file;
	event->argument = asked->argument;
	event->word = asked->word;
	event->nr = asked->nr;
	event->bytes = asked->bytes;
	event->minor = asked->minor;
	event->family = asked->family;
	event->step = asked->step;
	event->wrapped = asked->wrapped;
	event->seen = asked->seen;
	event->pad = 0;
	event->behind = 0;
	__builtin_memcpy(event->before, asked->before, sizeof(event->before));
	__builtin_memset(event->after, 0, sizeof(event->after));
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
		event->flags = EVENT_HIDDEN;
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
		count_entered(asked->row);
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
