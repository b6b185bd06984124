/* Does to a file's code, where it is mapped, what its plan in the run says. Nobody runs that code yet: it is done after the
 * file was mapped and before the first of it is called. What is not as the plan says stays as it is, and is counted.
 */
#ifndef GPUSCOPE_AGENT_PATCH_H
#define GPUSCOPE_AGENT_PATCH_H

#include "thunk.h"

static long memory_file = -1;

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

static bool write_jump(const struct arena_patch *patch, const struct hook *hook)
{
	unsigned char jump[JUMP_BYTES] = { 0xe9 };
	__u64 at = hook->address + patch->kept;
	__s32 apart = (__s32)(hook->thunk - (at + JUMP_BYTES));

	memcpy(jump + 1, &apart, 4);
	return write_code(at, jump, sizeof(jump));
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

INLINE bool lies_in_run(const struct arena_planned *plan)
{
	__u64 bytes = RUN_BYTES;

	return plan->at < bytes && plan->patches < bytes / sizeof(struct arena_patch) &&
	       plan->calls < bytes / sizeof(struct arena_call) &&
	       plan->patches * sizeof(struct arena_patch) + plan->calls * sizeof(struct arena_call) <=
		       bytes - plan->at;
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
	room.bytes = (sizeof(entries) + all * (THUNK_APART + THUNK_BYTES + PATCH_UNDO + PATCH_COPY) +
		      ARENA_PAGE - 1) &
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

#endif
