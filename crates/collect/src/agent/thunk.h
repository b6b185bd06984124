/* What the jump of a patched function leads to: what undoes its first instructions, tells of the call, and goes on with what was
 * moved.
 */
#ifndef GPUSCOPE_AGENT_THUNK_H
#define GPUSCOPE_AGENT_THUNK_H

#include "door.h"
#include "hook.h"

extern void agent_call(void);
extern void agent_passed(void);
extern void agent_linker(void);

/* of enter.S: the two pieces of a function's thunk, their entries, and what is to be filled in */
extern const char thunk_head[], thunk_head_end[], thunk_tail[], thunk_told[], thunk_tail_end[];
extern const char hole_membership[], hole_wake[], hole_told[], hole_counted[];
extern const char hole_counting[], hole_epoch[], hole_has_self[], hole_hook[], hole_self[], hole_moved[],
	hole_told_hook[], hole_agent[];

#define JUMP_BYTES 5
#define THUNK_BYTES 128
#define THUNK_APART 64 /* a line of the processor's caches: it begins with one */
#define PLACE_THUNK 33 /* and undoes nothing */

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

INLINE void fill(char *piece, const char *of, const char *hole, const void *value, __u64 bytes)
{
	memcpy(piece + (hole - of), value, bytes);
}

/* How far `to` lies behind a word that ends an instruction. */
INLINE void fill_distance(char *piece, const char *of, const char *hole, const void *to)
{
	__s32 apart = (__s32)((__s64)to - (__s64)(piece + (hole - of) + 4));

	fill(piece, of, hole, &apart, 4);
}

INLINE void fill_offset(char *piece, const char *of, const char *hole, const volatile void *to, __u64 from)
{
	__s32 apart = (__s32)((__s64)to - (__s64)from);

	fill(piece, of, hole, &apart, 4);
}

static void fill_head(char *head, char *tail)
{
	__u64 own = (__u64)&membership;

	fill(head, thunk_head, hole_membership, &own, 8);
	fill_offset(head, thunk_head, hole_wake, &door.wake, own);
	fill_distance(head, thunk_head, hole_told, tail + (thunk_told - thunk_tail));
	fill_distance(head, thunk_head, hole_counted, tail);
}

static void fill_tail(char *tail, const struct room *room, const struct hook *hook)
{
	__u64 pointer = thread_pointer_of(NULL);

	fill_offset(tail, thunk_tail, hole_counting, &control.counting, (__u64)&membership);
	fill_offset(tail, thunk_tail, hole_epoch, &epoch, pointer);
	fill_offset(tail, thunk_tail, hole_has_self, &self, pointer);
	fill(tail, thunk_tail, hole_hook, &hook, 8);
	fill_offset(tail, thunk_tail, hole_self, &self, pointer);
	fill_distance(tail, thunk_tail, hole_moved, (const void *)hook->copy);
	fill(tail, thunk_tail, hole_told_hook, &hook, 8);
	/* the room begins with the address of agent_call */
	fill_distance(tail, thunk_tail, hole_agent, room->at);
}

/* What undoes the first instruction, and goes on as enter.S says. */
static char *add_thunk(struct room *room, const struct arena_patch *patch, struct hook *hook, __u64 bias)
{
	char *thunk, *head, *tail;

	room->used = (room->used + THUNK_APART - 1) & ~(THUNK_APART - 1ull);
	thunk = append(room, patch->undo, patch->undo_bytes);
	head = append(room, thunk_head, (__u64)(thunk_head_end - thunk_head));
	hook->copy = move(room, patch, bias);
	tail = append(room, thunk_tail, (__u64)(thunk_tail_end - thunk_tail));
	fill_head(head, tail);
	fill_tail(tail, room, hook);
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
	char *thunk;

	if (!is_sound(patch) || !is_as_planned(patch, (const unsigned char *)entry))
		return false;
	if (patch->place) {
		thunk = add_place_thunk(room, hook);
		hook->copy = move(room, patch, bias);
	} else {
		thunk = add_thunk(room, patch, hook, bias);
	}
	if (!hook->copy)
		return false;
	hook->address = entry;
	hook->semaphore = patch->semaphore ? patch->semaphore + bias : 0;
	hook->cookie = patch->cookie;
	hook->words = patch->stack_words;
	hook->returns = patch->returns;
	hook->thunk = (__u64)thunk;
	return true;
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

#endif
