/* The argument of an ioctl: what of it is read, before the driver has it and after. Layouts are user space's business:
 * `ioctl_plans` says what to copy.
 */
#ifndef GPUSCOPE_DRIVER_IOCTL_BPF_H
#define GPUSCOPE_DRIVER_IOCTL_BPF_H

#include "state.bpf.h"

#define WRAPPER 211 /* a request whose argument names another one */

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
	    bpf_probe_read_user(&pointer, 8, (void *)(event->call.argument + plan->pointer)))
		return;
	piece = bpf_map_lookup_elem(&ioctl_classes, &class);
	if (!piece || piece->length > 8 || !pointer)
		return;
	if (!bpf_probe_read_user(&event->call.behind, piece->length, (void *)(pointer + piece->offset)))
		event->call.seen |= SEEN_BEHIND;
}

static __noinline int read_after(struct driver_event *event, struct asked *asked)
{
	struct ioctl_plan *plan;

	if (!event || !asked)
		return 0;
	plan = plan_of(asked);
	if (!plan)
		return 0;
	if (read_pieces(event->call.after, plan->after, asked->argument))
		event->call.seen |= SEEN_AFTER;
	read_parameters(event, asked, plan);
	return 0;
}

#endif
