/* Does to a file's code, where it is mapped, what its plan in the run says. Nobody runs that code yet: it is done after the
 * file was mapped and before the first of it is called. What is not as the plan says stays as it is, and is counted.
 */
#ifndef GPUSCOPE_AGENT_PATCH_H
#define GPUSCOPE_AGENT_PATCH_H

#include "areas.h"
#include "clock.h"

enum hook_state {
	HOOK_PASSES,
	HOOK_TELLS,
	HOOK_COUNTS, /* nothing but the number of its calls is wanted */
};

/* As enter.S reads it. */
struct hook {
	__u64 copy; /* the beginning of the function, elsewhere */
	__u64 address;
	__u64 cookie;
	__u32 words;
	__u32 returns;
	__u64 thunk;     /* 0: it stays as it is */
	__u64 on;        /* enum hook_state */
	__u64 semaphore; /* 0: there is none, or it is not raised */
	__u64 plain;     /* where in a block its calls are counted in HOOK_COUNTS */
};

/* What was done to a file that is mapped. */
struct patched_file {
	struct arena_file file;
	__u64 bias;
	struct hook *hooks;
	__u64 count;
};

#define MOST_PATCHED 1024

static struct patched_file patched_files[MOST_PATCHED];
static __u32 patched_count;

extern void agent_call(void);
extern void agent_passed(void);
extern void agent_linker(void);

#define NEAR 0x7ff00000ull /* that a jump reaches, with something to spare */
#define JUMP_BYTES 5
#define THUNK_BYTES 32 /* the address of what follows, in a register, and a jump through memory */
#define PLACE_THUNK 33 /* and undoes nothing */
#define STEPS 64

#define PROT_RW 3
#define PROT_RX 5
#define MAP_PRIVATE_ANON 0x22
#define MAP_FIXED_ 0x10
#define MAP_SHARED_LAZY 0x4001 /* and without reserve */
#define MAP_NOREPLACE 0x100000

/* The code that patched functions of one file need, where their jumps reach it. */
struct room {
	char *at;
	__u64 bytes;
	__u64 used;
};

static long memory_file = -1;

INLINE bool is_near(__u64 one, __u64 other)
{
	__u64 apart = one > other ? one - other : other - one;

	return apart < NEAR;
}

INLINE __u64 map_near(__u64 hint, __u64 bytes, __u64 from, __u64 to)
{
	long at = SYS6(mmap, hint, bytes, PROT_RW, MAP_PRIVATE_ANON | (hint ? MAP_NOREPLACE : 0), -1, 0);

	if (failed_call(at))
		return 0;
	if (is_near((__u64)at, to) && is_near((__u64)at + bytes, from))
		return (__u64)at;
	SYS2(munmap, at, bytes);
	return 0;
}

/* What lies between areas. */
struct gap {
	__u64 from; /* what has to be reached */
	__u64 to;
	__u64 bytes;
	__u64 end; /* of the last area */
	__u64 at;  /* memory in it; 0: there is none */
};

static bool fits(const struct area *area, void *with)
{
	struct gap *gap = with;
	__u64 begin = gap->end;

	gap->end = area->to;
	if (area->from > begin && area->from - begin >= gap->bytes + ARENA_PAGE && begin >= LOWEST_ADDRESS &&
	    is_near(begin, gap->to) && is_near(begin + gap->bytes, gap->from))
		gap->at = map_near(begin, gap->bytes, gap->from, gap->to);
	return gap->at;
}

/* Memory near all that lies from `from` to `to`. */
static __u64 room_near(__u64 from, __u64 to, __u64 bytes)
{
	__u64 at = map_near(0, bytes, from, to);

	for (__u64 step = 1; !at && step <= STEPS; step++) {
		__u64 apart = step * (16 << 20) + bytes;

		if (from > apart)
			at = map_near((from - apart) & ~(ARENA_PAGE - 1ull), bytes, from, to);
		if (!at)
			at = map_near((to + apart) & ~(ARENA_PAGE - 1ull), bytes, from, to);
	}
	if (!at) {
		struct gap gap = { from, to, bytes, 0, 0 };

		look_at_areas(fits, &gap);
		at = gap.at;
	}
	return at;
}

/* Writes over code, which may not be written. */
static bool write_code(__u64 at, const void *bytes, __u32 count)
{
	__u64 page = at & ~(ARENA_PAGE - 1ull), end = (at + count + ARENA_PAGE - 1) & ~(ARENA_PAGE - 1ull);

	if (memory_file >= 0 && SYS4(pwrite64, memory_file, bytes, count, at) == (long)count)
		return true;
	if (SYS3(mprotect, page, end - page, PROT_RW))
		return false;
	memcpy((void *)at, bytes, count);
	return !SYS3(mprotect, page, end - page, PROT_RX);
}

INLINE char *append(struct room *room, const void *bytes, __u64 count)
{
	char *at = room->at + room->used;

	memcpy(at, bytes, count);
	room->used += count;
	return at;
}

/* Moves the beginning of a function; where it is now, 0: its jumps do not reach. */
static __u64 move(struct room *room, const struct arena_patch *patch, __u64 bias)
{
	char *copy = append(room, patch->copy, patch->copy_bytes);

	for (__u32 i = 0; i < patch->fixups && i < PATCH_FIXUPS; i++) {
		const struct patch_fixup *fixup = &patch->fixup[i];
		__s64 apart = (__s64)(fixup->target + bias - ((__u64)copy + fixup->next));
		__s32 field = (__s32)apart;

		if (apart != field || fixup->at + 4 > patch->copy_bytes)
			return 0;
		memcpy(copy + fixup->at, &field, 4);
	}
	return (__u64)copy;
}

/* What undoes the first instruction, and goes on with `agent_call`. */
static char *add_thunk(struct room *room, const struct arena_patch *patch, const struct hook *hook)
{
	unsigned char goes_on[16] = { 0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0x25 };
	char *thunk = append(room, patch->undo, patch->undo_bytes);
	/* the room begins with the address of agent_call */
	__s32 back = (__s32)(room->at - (room->at + room->used + sizeof(goes_on)));

	memcpy(goes_on + 2, &hook, 8);
	memcpy(goes_on + 12, &back, 4);
	append(room, goes_on, sizeof(goes_on));
	return thunk;
}

/* Tells of who passes a place within a function, and goes on with what was moved, which follows: all registers and flags, and
 * what the function keeps below its stack, stay.
 */
static char *add_place_thunk(struct room *room, const struct hook *hook)
{
	/* lea -0x80(%rsp),%rsp; push %r11; mov $hook,%r11; call *agent_passed; pop %r11; lea 0x80(%rsp),%rsp */
	unsigned char code[PLACE_THUNK] = { 0x48, 0x8d, 0x64, 0x24,        0x80, 0x41,
					    0x53, 0x49, 0xbb, [17] = 0xff, 0x15, [23] = 0x41,
					    0x5b, 0x48, 0x8d, 0xa4,        0x24, 0x80 };
	/* it lies behind that of agent_call */
	__s32 back = (__s32)(8 - (__s64)(room->used + 23));

	memcpy(code + 9, &hook, 8);
	memcpy(code + 19, &back, 4);
	return append(room, code, sizeof(code));
}

_Static_assert(PLACE_THUNK <= THUNK_BYTES + PATCH_UNDO, "there is room for it");

INLINE bool is_sound(const struct arena_patch *patch)
{
	return patch->covered <= PATCH_ORIGINAL && patch->undo_bytes <= (patch->place ? 0 : PATCH_UNDO) &&
	       patch->copy_bytes <= PATCH_COPY && patch->kept + JUMP_BYTES <= patch->covered &&
	       patch->fixups <= PATCH_FIXUPS;
}

/* The file's bytes; somebody's breakpoint may be at the first one. */
INLINE bool is_as_planned(const struct arena_patch *patch, const unsigned char *code)
{
	if (code[0] != patch->original[0] && (code[0] != 0xcc || !patch->kept))
		return false;
	return !memcmp(code + 1, patch->original + 1, (size_t)patch->covered - 1);
}

/* Makes what the jump of a function leads to. False: it cannot be patched. */
static bool prepare(struct room *room, const struct arena_patch *patch, struct hook *hook, __u64 bias)
{
	__u64 entry = patch->entry + bias;
	char *thunk = NULL;

	if (!is_sound(patch) || !is_as_planned(patch, (const unsigned char *)entry))
		return false;
	if (patch->place)
		thunk = add_place_thunk(room, hook);
	hook->copy = move(room, patch, bias);
	if (!hook->copy)
		return false;
	hook->address = entry;
	hook->semaphore = patch->semaphore ? patch->semaphore + bias : 0;
	hook->cookie = patch->cookie;
	hook->words = patch->stack_words;
	hook->returns = patch->returns;
	hook->thunk = (__u64)(patch->place ? thunk : add_thunk(room, patch, hook));
	return true;
}

/* The program skips a static probe while nobody has raised its semaphore. Its page may not be there to be written. */
static bool raise_semaphore(const struct hook *hook, __s16 by)
{
	struct io_vector ours, theirs = { (void *)hook->semaphore, sizeof(by) };
	__u16 count;

	if (!hook->semaphore)
		return true;
	if (read_by_kernel(&count, sizeof(count), hook->semaphore))
		return false;
	count = (__u16)(count + by);
	ours = (struct io_vector){ &count, sizeof(count) };
	return SYS6(process_vm_writev, SYS0(getpid), &ours, 1, &theirs, 1, 0) == sizeof(count);
}

static bool write_jump(const struct arena_patch *patch, const struct hook *hook)
{
	unsigned char jump[JUMP_BYTES] = { 0xe9 };
	__u64 at = hook->address + patch->kept;
	__s32 apart = (__s32)(hook->thunk - (at + JUMP_BYTES));

	memcpy(jump + 1, &apart, 4);
	return write_code(at, jump, sizeof(jump));
}

#define CALL_THUNK 23

/* What the dynamic linker's call becomes: one of what tells us, which goes on to where it went. */
static void prepare_call(struct room *room, const struct arena_call *call, __u64 bias)
{
	/* mov $target, %r11; mov $agent_linker, %r10; jmp *%r10 */
	unsigned char thunk[CALL_THUNK] = { 0x49, 0xbb, [10] = 0x49, 0xba, [20] = 0x41, 0xff, 0xe2 };
	__u64 target = call->target + bias, ours = (__u64)agent_linker;

	memcpy(thunk + 2, &target, 8);
	memcpy(thunk + 12, &ours, 8);
	append(room, thunk, sizeof(thunk));
}

/* a call, and the jump that it becomes at the end of a function */
#define CALL 0xe8
#define JUMP 0xe9

/* Whether a call of the notification lies there; the plan may be another linker's. */
static bool is_call_of(const struct arena_call *call, __u64 bias, __u64 target)
{
	__u64 at = call->at + bias;
	unsigned char code[JUMP_BYTES];
	__s32 apart;

	if (call->target + bias != target || read_by_kernel(code, sizeof(code), at) ||
	    (code[0] != CALL && code[0] != JUMP))
		return false;
	memcpy(&apart, code + 1, 4);
	return at + JUMP_BYTES + (__u64)(__s64)apart == target;
}

static bool redirect(const struct arena_call *call, const char *thunk, __u64 bias)
{
	__u64 at = call->at + bias;
	__s32 apart;

	if (!is_call_of(call, bias, call->target + bias))
		return false;
	apart = (__s32)((__u64)thunk - (at + JUMP_BYTES));
	return write_code(at + 1, &apart, 4);
}

/* What is to be done to a file. */
struct work {
	const struct arena_patch *patch;
	__u64 patches;
	const struct arena_call *call;
	__u64 calls;
	__u64 bias; /* how far from its own addresses it is mapped */
	bool on;    /* its calls are recorded from now on */
};

/* Where the patches begin and end, in a process. */
INLINE void reach_of(const struct work *work, __u64 *from, __u64 *to)
{
	const struct arena_patch *patch = work->patch;
	const struct arena_call *call = work->call;

	*from = ~0ull;
	*to = 0;
	for (__u64 i = 0; i < work->patches; i++) {
		*from = patch[i].entry + work->bias < *from ? patch[i].entry + work->bias : *from;
		*to = patch[i].entry + work->bias > *to ? patch[i].entry + work->bias : *to;
	}
	for (__u64 i = 0; i < work->calls; i++) {
		*from = call[i].at + work->bias < *from ? call[i].at + work->bias : *from;
		*to = call[i].at + work->bias > *to ? call[i].at + work->bias : *to;
	}
}

INLINE bool lies_in_run(const struct arena_planned *plan)
{
	__u64 bytes = RUN_BYTES;

	return plan->at < bytes && plan->patches < bytes / sizeof(struct arena_patch) &&
	       plan->calls < bytes / sizeof(struct arena_call) &&
	       plan->patches * sizeof(struct arena_patch) + plan->calls * sizeof(struct arena_call) <=
		       bytes - plan->at;
}

/* Tells how many functions were patched, and how many were not. */
static void count_patched(__u64 done, __u64 refused);

static void remember_patched(const struct arena_file *file, __u64 bias, struct hook *hooks, __u64 count)
{
	if (!count || patched_count == MOST_PATCHED)
		return;
	patched_files[patched_count] = (struct patched_file){ *file, bias, hooks, count };
	__atomic_store_n(&patched_count, patched_count + 1, __ATOMIC_RELEASE);
}

/* Writes the jumps; how many functions were patched. */
static __u64 write_all(const struct work *work, const struct hook *hooks, const char *calls)
{
	__u64 done = 0;

	memory_file = SYS3(open, "/proc/self/mem", 02000002 /* O_RDWR | O_CLOEXEC */, 0);
	for (__u64 i = 0; i < work->patches; i++)
		done += hooks[i].thunk && write_jump(&work->patch[i], &hooks[i]) &&
			(!hooks[i].on || raise_semaphore(&hooks[i], 1));
	for (__u64 i = 0; i < work->calls; i++)
		redirect(&work->call[i], calls + i * CALL_THUNK, work->bias);
	if (memory_file >= 0)
		SYS1(close, memory_file);
	memory_file = -1;
	return done;
}

static void patch(const struct work *work, const struct arena_file *file)
{
	__u64 from, to, all = work->patches + work->calls, done = 0;
	__u64 entries[] = { (__u64)agent_call, (__u64)agent_passed };
	__u64 bytes = work->patches * sizeof(struct hook);
	struct room room = { 0 };
	struct hook *hooks;
	char *calls;

	reach_of(work, &from, &to);
	room.bytes = (sizeof(entries) + all * (THUNK_BYTES + PATCH_UNDO + PATCH_COPY) + ARENA_PAGE - 1) &
		     ~(ARENA_PAGE - 1ull);
	room.at = (char *)room_near(from, to, room.bytes);
	hooks = bytes ? (struct hook *)SYS6(mmap, 0, bytes, PROT_RW, MAP_PRIVATE_ANON, -1, 0) : NULL;
	if (!room.at || failed_call((long)hooks)) {
		count_patched(0, work->patches);
		return;
	}
	append(&room, entries, sizeof(entries));
	for (__u64 i = 0; i < work->patches; i++) {
		prepare(&room, &work->patch[i], &hooks[i], work->bias);
		hooks[i].on = work->on ? HOOK_TELLS : HOOK_PASSES;
	}
	calls = room.at + room.used;
	for (__u64 i = 0; i < work->calls; i++)
		prepare_call(&room, &work->call[i], work->bias);
	if (!SYS3(mprotect, room.at, room.bytes, PROT_RX))
		done = write_all(work, hooks, calls);
	count_patched(done, work->patches - done);
	remember_patched(file, work->bias, hooks, done ? work->patches : 0);
}

/* Patches a file as its plan among `plans` says. */
static void patch_file(const char *plans, const struct arena_planned *plan, const struct arena_file *file,
		       __u64 bias, bool on)
{
	struct work work = { .patches = plan->patches, .calls = plan->calls, .bias = bias, .on = on };

	if (!lies_in_run(plan) || !(plan->patches + plan->calls))
		return;
	work.patch = (const struct arena_patch *)(plans + plan->at);
	work.call = (const struct arena_call *)(work.patch + plan->patches);
	patch(&work, file);
}

/* ---- switching ---- */

/* Whether the function goes to its hook still: another file may have come to where its file was. */
INLINE bool leads_to(const struct hook *hook, __u32 kept)
{
	const unsigned char *jump = (const unsigned char *)(hook->address + kept);
	__s32 apart;

	if (!hook->thunk || jump[0] != 0xe9)
		return false;
	memcpy(&apart, jump + 1, sizeof(apart));
	return hook->address + kept + JUMP_BYTES + (__u64)(__s64)apart == hook->thunk;
}

/* The hook of a function; `next`: where the one behind it lies, mostly that of the next function. */
static struct hook *hook_at(const struct patched_file *patched, __u64 address, __u64 *next)
{
	for (__u64 tried = 0; tried < patched->count; tried++) {
		struct hook *hook = &patched->hooks[(*next)++ % patched->count];

		if (hook->address == address)
			return hook;
	}
	return NULL;
}

/* Has calls of what is patched already recorded as a plan says. */
static void switch_on(const char *plans, const struct arena_planned *plan, const struct patched_file *patched)
{
	const struct arena_patch *wanted = (const struct arena_patch *)(plans + plan->at);
	__u64 done = 0, next = 0;

	if (!lies_in_run(plan))
		return;
	for (__u64 i = 0; i < plan->patches; i++) {
		struct hook *hook = hook_at(patched, wanted[i].entry + patched->bias, &next);

		if (!hook || !leads_to(hook, wanted[i].kept))
			continue;
		hook->cookie = wanted[i].cookie;
		hook->words = wanted[i].stack_words;
		hook->returns = wanted[i].returns;
		if (!hook->on)
			raise_semaphore(hook, 1);
		__atomic_store_n(&hook->on, HOOK_TELLS, __ATOMIC_RELEASE);
		done++;
	}
	count_patched(done, plan->patches - done);
}

static void switch_all_off(void)
{
	for (__u32 i = 0; i < patched_count; i++)
		for (__u64 k = 0; k < patched_files[i].count; k++)
			if (__atomic_exchange_n(&patched_files[i].hooks[k].on, HOOK_PASSES, __ATOMIC_ACQ_REL))
				raise_semaphore(&patched_files[i].hooks[k], -1);
}

#endif
