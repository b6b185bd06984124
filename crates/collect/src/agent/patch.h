/* Does to a file's code, where it is mapped, what its plan in the run says. Nobody runs that code yet: it is done after the
 * file was mapped and before the first of it is called. What is not as the plan says stays as it is, and is counted.
 */
#ifndef GPUSCOPE_AGENT_PATCH_H
#define GPUSCOPE_AGENT_PATCH_H

#include "clock.h"
#include "memory.h"

/* As enter.S reads it. */
struct hook {
	__u64 copy; /* the beginning of the function, elsewhere */
	__u64 address;
	__u64 cookie;
	__u32 words;
	__u32 returns;
	__u64 thunk; /* 0: it stays as it is */
};

extern void agent_call(void);
extern void agent_linker(void);

#define NEAR 0x7ff00000ull /* that a jump reaches, with something to spare */
#define JUMP_BYTES 5
#define THUNK_BYTES 32 /* the address of what follows, in a register, and a jump through memory */
#define STEPS 64

#define PROT_RW 3
#define PROT_RX 5
#define MAP_PRIVATE_ANON 0x22
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

INLINE bool is_sound(const struct arena_patch *patch)
{
	return patch->covered <= PATCH_ORIGINAL && patch->undo_bytes <= PATCH_UNDO &&
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

	if (!is_sound(patch) || !is_as_planned(patch, (const unsigned char *)entry))
		return false;
	hook->copy = move(room, patch, bias);
	if (!hook->copy)
		return false;
	hook->address = entry;
	hook->cookie = patch->cookie;
	hook->words = patch->stack_words;
	hook->returns = patch->returns;
	hook->thunk = (__u64)add_thunk(room, patch, hook);
	return true;
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

static bool redirect(const struct arena_call *call, const char *thunk, __u64 bias)
{
	__u64 at = call->at + bias;
	__s32 apart;

	if (*(const unsigned char *)at != 0xe8)
		return false;
	memcpy(&apart, (const void *)(at + 1), 4);
	if (at + JUMP_BYTES + (__u64)(__s64)apart != call->target + bias)
		return false;
	apart = (__s32)((__u64)thunk - (at + JUMP_BYTES));
	return write_code(at + 1, &apart, 4);
}

/* Where the patches of a plan begin and end, in a process. */
INLINE void reach_of(const struct arena_planned *plan, __u64 bias, __u64 *from, __u64 *to)
{
	const struct arena_patch *patch = (const struct arena_patch *)(run + plan->at);
	const struct arena_call *call = (const struct arena_call *)(patch + plan->patches);

	*from = ~0ull;
	*to = 0;
	for (__u64 i = 0; i < plan->patches; i++) {
		*from = patch[i].entry + bias < *from ? patch[i].entry + bias : *from;
		*to = patch[i].entry + bias > *to ? patch[i].entry + bias : *to;
	}
	for (__u64 i = 0; i < plan->calls; i++) {
		*from = call[i].at + bias < *from ? call[i].at + bias : *from;
		*to = call[i].at + bias > *to ? call[i].at + bias : *to;
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

/* Patches a file that is mapped `bias` away from its own addresses. */
static void patch_file(const struct arena_planned *plan, __u64 bias)
{
	struct process_head *head = (struct process_head *)process;
	const struct arena_patch *patch = (const struct arena_patch *)(run + plan->at);
	const struct arena_call *call;
	__u64 from, to, all, bytes, done = 0, entry = (__u64)agent_call;
	struct room room = { 0 };
	struct hook *hooks;
	char *calls;

	if (!lies_in_run(plan) || !(plan->patches + plan->calls))
		return;
	call = (const struct arena_call *)(patch + plan->patches);
	all = plan->patches + plan->calls;
	reach_of(plan, bias, &from, &to);
	bytes = plan->patches * sizeof(struct hook);
	room.bytes =
		(8 + all * (THUNK_BYTES + PATCH_UNDO + PATCH_COPY) + ARENA_PAGE - 1) & ~(ARENA_PAGE - 1ull);
	room.at = (char *)room_near(from, to, room.bytes);
	hooks = bytes ? (struct hook *)SYS6(mmap, 0, bytes, PROT_RW, MAP_PRIVATE_ANON, -1, 0) : NULL;
	if (!room.at || failed_call((long)hooks)) {
		__sync_fetch_and_add(&head->refused, plan->patches);
		return;
	}
	append(&room, &entry, sizeof(entry));
	for (__u64 i = 0; i < plan->patches; i++)
		prepare(&room, &patch[i], &hooks[i], bias);
	calls = room.at + room.used;
	for (__u64 i = 0; i < plan->calls; i++)
		prepare_call(&room, &call[i], bias);
	if (!SYS3(mprotect, room.at, room.bytes, PROT_RX)) {
		memory_file = SYS3(open, "/proc/self/mem", 02000002 /* O_RDWR | O_CLOEXEC */, 0);
		for (__u64 i = 0; i < plan->patches; i++)
			done += hooks[i].thunk && write_jump(&patch[i], &hooks[i]);
		for (__u64 i = 0; i < plan->calls; i++)
			redirect(&call[i], calls + i * CALL_THUNK, bias);
		if (memory_file >= 0)
			SYS1(close, memory_file);
		memory_file = -1;
	}
	__sync_fetch_and_add(&head->patched, done);
	__sync_fetch_and_add(&head->refused, plan->patches - done);
}

#endif
