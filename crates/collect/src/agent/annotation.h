/* What a program calls its own phases, as records: ranges that are pushed or started, marks, and names. */
#ifndef GPUSCOPE_AGENT_ANNOTATION_H
#define GPUSCOPE_AGENT_ANNOTATION_H

#include "domain.h"
#include "ranges.h"

#define NOT_TRACKED (-2) /* NVTX_NO_PUSH_POP_TRACKING: what a program is told without a tool */

enum message_type { MESSAGE_UNKNOWN, MESSAGE_ASCII, MESSAGE_WIDE, MESSAGE_REGISTERED };

/* nvtxEventAttributes_t */
struct attributes {
	__u16 version;
	__u16 size;
	__u32 category;
	__s32 color_type;
	__u32 color;
	__s32 payload_type;
	__s32 reserved;
	__u64 payload;
	__s32 message_type;
	__s32 pad;
	__u64 message;
};

/* Whether ranges are recorded; the thread works in its block then, until end(). */
static bool begin_range(__u64 sp)
{
	struct pt_regs regs; /* of which no more is looked at */

	regs.rsp = sp;
	if (door.wake && door.tgid == (membership.epoch & EPOCH_PROCESS))
		answer_door();
	if ((membership.epoch & DORMANT) || (run && !((struct run_head *)run)->ranges) || !begin(&regs))
		return false;
	if (is_left(local()->now)) {
		end();
		leave_tracing();
		return false;
	}
	if (!((struct run_head *)run)->ranges || !counting()) {
		end();
		return false;
	}
	return true;
}

/* Within a function that NVTX calls: what lies above is the caller's. */
#define BEGIN_RANGE() begin_range((__u64)__builtin_frame_address(0))

static void describe(struct open_range *range, __u32 domain, __u8 kind)
{
	const struct domain *of = &domains[domain];
	struct range_record *record = &range->record;

	*record = (struct range_record){ .begin = local()->now, .kind = kind, .domain = domain };
	record->tgid = (__u32)(local()->ids >> 32);
	record->tid = (__u32)local()->ids;
	record->domain_bytes = (__u8)of->bytes;
	copy_words(range->text + RANGE_NAME, of->name, of->bytes);
}

static void name_range(struct open_range *range, __s32 type, __u64 message)
{
	struct probed_pages *probed = &ranges_of_thread()->probed;
	struct copied copied = { 0, 0 };

	if (type == MESSAGE_ASCII)
		copied = copy_text(probed, range->text, RANGE_NAME, message);
	else if (type == MESSAGE_WIDE)
		copied = copy_wide(probed, range->text, RANGE_NAME, message);
	else if (type == MESSAGE_REGISTERED)
		copied = copy_registered(range->text, message);
	range->record.name_bytes = (__u16)copied.bytes;
	range->record.flags |= copied.flags;
}

static void read_attributes(struct open_range *range, const struct attributes *from)
{
	struct attributes given = { 0 };

	if (!copy_readable(&ranges_of_thread()->probed, &given, (__u64)from, sizeof(given))) {
		range->record.flags |= RANGE_UNREAD;
		return;
	}
	range->record.category = given.category;
	if (given.color_type == 1) {
		range->record.color = given.color;
		range->record.flags |= RANGE_COLOR;
	}
	name_range(range, given.message_type, given.message);
}

/* By attributes, or by a message alone. */
INLINE void tell_range(struct open_range *range, __s32 type, const void *said)
{
	if (type == MESSAGE_UNKNOWN)
		read_attributes(range, said);
	else
		name_range(range, type, (__u64)said);
}

#define ATTRIBUTES MESSAGE_UNKNOWN

static int push(const struct domain *domain, __s32 type, const void *said)
{
	struct open_ranges *open;
	struct open_range *range;
	__u32 number = number_of(domain);
	int level;

	if (!BEGIN_RANGE())
		return NOT_TRACKED;
	open = &ranges_of_thread()->open;
	range = next_pushed(open);
	if (range) {
		level = level_of(open, number);
		describe(range, number, RANGE_PUSHED);
		range->record.level = (__u16)level;
		tell_range(range, type, said);
		__atomic_store_n(&open->depth, open->depth + 1, __ATOMIC_RELEASE);
	} else {
		level = MOST_OPEN_RANGES + (int)open->beyond++;
	}
	end();
	return level;
}

static int pop(const struct domain *domain)
{
	int level;

	if (!BEGIN_RANGE())
		return NOT_TRACKED;
	level = pop_range(&ranges_of_thread()->open, number_of(domain));
	end();
	return level;
}

static void mark(const struct domain *domain, __s32 type, const void *said)
{
	struct open_range *range;
	__u32 number = number_of(domain);

	if (!BEGIN_RANGE())
		return;
	range = &ranges_of_thread()->scratch;
	describe(range, number, RANGE_MARK);
	range->record.level = level_of(&ranges_of_thread()->open, number);
	tell_range(range, type, said);
	submit_range(range, 0);
	end();
}

/* A thread or a category is called so from now on. */
static void call_so(const struct domain *domain, __u8 kind, __u32 number, __s32 type, const void *name)
{
	struct open_range *record;

	if (!BEGIN_RANGE())
		return;
	record = &ranges_of_thread()->scratch;
	describe(record, number_of(domain), kind);
	record->record.category = number;
	name_range(record, type, (__u64)name);
	submit_range(record, 0);
	end();
}

static __u64 start(const struct domain *domain, __s32 type, const void *said)
{
	struct started_range *started;
	__u64 id = 0;

	if (!BEGIN_RANGE())
		return 0;
	started = next_started(&id);
	if (started) {
		describe(&started->range, number_of(domain), RANGE_STARTED);
		tell_range(&started->range, type, said);
		__atomic_store_n(&started->id, id, __ATOMIC_RELEASE);
	} else {
		lose_range();
	}
	end();
	return id;
}

static void stop(__u64 id)
{
	if (!BEGIN_RANGE())
		return;
	end_started(id);
	end();
}

#endif
