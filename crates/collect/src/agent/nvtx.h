/* NVTX: what a program calls its own phases. At its first annotation NVTX loads the library that NVTX_INJECTION64_PATH names,
 * which is this one and loaded already, and asks it for the functions to call. Their prototypes, numbers and structures are
 * those of nvtx3's headers.
 */
#ifndef GPUSCOPE_AGENT_NVTX_H
#define GPUSCOPE_AGENT_NVTX_H

#include "ranges.h"

#define NOT_TRACKED (-2) /* NVTX_NO_PUSH_POP_TRACKING: what a program is told without a tool */
#define MOST_DOMAINS 1024
#define TEXTS_BYTES (4 << 20)

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

/* What stands for a domain: programs keep its address. The first one is the domain of all that names none. */
struct domain {
	__u32 bytes;
	__u32 is_named; /* its name is all there */
	__u8 name[RANGE_DOMAIN];
};

/* What stands for a text that was registered; of the text as much as there is. */
struct registered {
	__u32 bytes;
	__u32 flags;
	__u8 text[RANGE_NAME];
};

#define REGISTERED_HEAD offsetof(struct registered, text)

/* They are the process's own, and outlive any run that it is traced in. */
static struct domain domains[MOST_DOMAINS];
static __u32 domain_count = 1;
static char texts[TEXTS_BYTES] __attribute__((aligned(8)));
static __u64 texts_used;

/* ---- handles, which may be anything ---- */

static __u32 number_of(const struct domain *domain)
{
	__u64 apart = (__u64)domain - (__u64)domains;

	return apart < sizeof(domains) && !(apart % sizeof(*domain)) ? (__u32)(apart / sizeof(*domain)) : 0;
}

static struct copied copy_registered(__u8 *to, __u64 handle)
{
	__u64 apart = handle - (__u64)texts;
	const struct registered *known = (const struct registered *)handle;

	if (apart >= TEXTS_BYTES || apart % 8 || known->bytes > RANGE_NAME ||
	    known->bytes > TEXTS_BYTES - apart - REGISTERED_HEAD)
		return (struct copied){ 0, RANGE_UNREAD };
	copy_words(to, known->text, known->bytes);
	return (struct copied){ known->bytes, (__u8)known->flags };
}

/* ---- coming in ---- */

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

/* ---- what is told of a range ---- */

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

/* ---- ranges and marks ---- */

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

/* ---- domains and texts, which are made whether anybody traces or not ---- */

static struct copied copy_given(__u8 *to, __u32 most, bool wide, const void *from)
{
	return wide ? copy_wide(NULL, to, most, (__u64)from) : copy_text(NULL, to, most, (__u64)from);
}

static struct domain *domain_named(const struct domain *wanted)
{
	for (__u32 i = 1; i < MOST_DOMAINS && i < domain_count; i++)
		if (__atomic_load_n(&domains[i].is_named, __ATOMIC_ACQUIRE) &&
		    domains[i].bytes == wanted->bytes &&
		    !memcmp(domains[i].name, wanted->name, wanted->bytes))
			return &domains[i];
	return NULL;
}

/* The same name is the same domain, unless two threads make it at one moment: nobody waits for another. Those for which there is
 * no room are the last one together.
 */
static struct domain *create_domain(const void *name, bool wide)
{
	static const struct domain others = { .bytes = 15, .name = "(other domains)" };
	struct domain made = { 0 }, *domain;
	__u32 number;

	made.bytes = copy_given(made.name, RANGE_DOMAIN, wide, name).bytes;
	domain = domain_named(&made);
	if (domain)
		return domain;
	number = __sync_fetch_and_add(&domain_count, 1);
	if (number >= MOST_DOMAINS - 1) {
		__sync_fetch_and_sub(&domain_count, 1);
		number = MOST_DOMAINS - 1;
		made = others;
	}
	domain = &domains[number];
	domain->bytes = made.bytes;
	memcpy(domain->name, made.name, sizeof(made.name));
	__atomic_store_n(&domain->is_named, 1, __ATOMIC_RELEASE);
	return domain;
}

/* NULL: there is no room for it. */
static const struct registered *register_text(const void *text, bool wide)
{
	struct registered made = { 0 };
	struct copied copied = copy_given(made.text, RANGE_NAME, wide, text);
	__u64 bytes = (REGISTERED_HEAD + copied.bytes + 7) & ~7ull, at;

	made.bytes = copied.bytes;
	made.flags = copied.flags;
	at = __sync_fetch_and_add(&texts_used, bytes);
	if (at > TEXTS_BYTES - sizeof(made)) {
		__sync_fetch_and_sub(&texts_used, bytes);
		return NULL;
	}
	memcpy(texts + at, &made, REGISTERED_HEAD + copied.bytes);
	return (const struct registered *)(texts + at);
}

/* ---- the functions that NVTX calls ---- */

static void mark_ex(const void *attributes)
{
	mark(domains, ATTRIBUTES, attributes);
}
static void mark_a(const char *message)
{
	mark(domains, MESSAGE_ASCII, message);
}
static void mark_w(const void *message)
{
	mark(domains, MESSAGE_WIDE, message);
}
static __u64 start_ex(const void *attributes)
{
	return start(domains, ATTRIBUTES, attributes);
}
static __u64 start_a(const char *message)
{
	return start(domains, MESSAGE_ASCII, message);
}
static __u64 start_w(const void *message)
{
	return start(domains, MESSAGE_WIDE, message);
}
static int push_ex(const void *attributes)
{
	return push(domains, ATTRIBUTES, attributes);
}
static int push_a(const char *message)
{
	return push(domains, MESSAGE_ASCII, message);
}
static int push_w(const void *message)
{
	return push(domains, MESSAGE_WIDE, message);
}
static int pop_default(void)
{
	return pop(domains);
}
static void mark_of(const struct domain *domain, const void *attributes)
{
	mark(domain, ATTRIBUTES, attributes);
}
static __u64 start_of(const struct domain *domain, const void *attributes)
{
	return start(domain, ATTRIBUTES, attributes);
}
static void stop_of(const struct domain *domain, __u64 id)
{
	stop(id);
}
static int push_of(const struct domain *domain, const void *attributes)
{
	return push(domain, ATTRIBUTES, attributes);
}
static const void *register_a(const void *domain, const char *text)
{
	return register_text(text, false);
}
static const void *register_w(const void *domain, const void *text)
{
	return register_text(text, true);
}
static void *create_a(const char *name)
{
	return create_domain(name, false);
}
static void *create_w(const void *name)
{
	return create_domain(name, true);
}

/* By NvtxCallbackIdCore and NvtxCallbackIdCore2. What is missing NVTX does not call. */
static const void *const of_core[] = {
	NULL, mark_ex, mark_a, mark_w, start_ex, start_a, start_w, stop, push_ex, push_a, push_w, pop_default,
};
static const void *const of_core2[] = {
	NULL, mark_of, start_of, stop_of,    push_of,    pop,      NULL,
	NULL, NULL,    NULL,     register_a, register_w, create_a, create_w,
};

#define CALLBACKS 1
#define MODULE_CORE 1
#define MODULE_CORE2 5

struct callbacks {
	__u64 bytes;
	int (*functions_of)(int module, const void ****table, unsigned *size);
};

static void subscribe(const struct callbacks *callbacks, int module, const void *const *functions,
		      __u32 count)
{
	const void ***table = NULL;
	unsigned size = 0;

	if (!callbacks->functions_of(module, &table, &size) || !table)
		return;
	for (__u32 i = 0; i < count && i < size; i++)
		if (functions[i] && table[i])
			*table[i] = functions[i];
}

/* 0: NVTX goes on as without a tool. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void *(*table)(__u32 id))
{
	const struct callbacks *callbacks = has_begun && table ? table(CALLBACKS) : NULL;

	if (!callbacks || callbacks->bytes < sizeof(*callbacks))
		return 0;
	subscribe(callbacks, MODULE_CORE, of_core, sizeof(of_core) / sizeof(*of_core));
	subscribe(callbacks, MODULE_CORE2, of_core2, sizeof(of_core2) / sizeof(*of_core2));
	return 1;
}

#endif
