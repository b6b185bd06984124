/* Python frames of the current thread, read from the interpreter's memory.
 *
 * All of it is the program's memory and may hold anything: every read is checked, every list is followed for a
 * bounded time. What the words mean is said by `struct python`, which user space fills in for each process.
 */
#ifndef GPUSCOPE_PYTHON_BPF_H
#define GPUSCOPE_PYTHON_BPF_H

#include "state.bpf.h"
#include "site.h"

#define INTERPRETERS 8
#define THREADS 128
#define FRAMES_FOLLOWED 112 /* with those that are no function's */
#define CODE_RANGES 8

struct task_struct___thread {
	struct thread_struct thread;
} __attribute__((preserve_access_index));

struct code_range {
	__u64 start;
	__u64 bytes;
};

/* What a thread needs while its stack is read: too large for a program's stack, and a thread can lose its CPU to
 * another one in between.
 */
struct site_scratch {
	struct site_event event;
	struct code_range ranges[CODE_RANGES]; /* known to be code */
	__u64 thread;                          /* the PyThreadState that was this thread's last time */
	__u32 next_range;
	__u32 pad;
	__u64 window[PYTHON_WINDOW / 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct python);
} pythons SEC(".maps");

static __always_inline __u64 read_word(__u64 address)
{
	__u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)address);
	return word;
}

static __always_inline __u64 window_word(const struct site_scratch *scratch, __u32 offset)
{
	return scratch->window[(offset / 8) & (PYTHON_WINDOW / 8 - 1)];
}

static __always_inline __u8 window_byte(const struct site_scratch *scratch, __u32 offset)
{
	return window_word(scratch, offset) >> (offset % 8 * 8);
}

/* The frame that a thread runs now; 0: none. */
static __always_inline __u64 top_frame(const struct python *python, __u64 thread)
{
	__u64 top = read_word(thread + python->thread_frame);

	if (top && python->cframe_frame != PYTHON_ABSENT)
		top = read_word(top + python->cframe_frame);
	return top;
}

/* A thread can have a state for each interpreter: the one that runs something is meant. */
static __always_inline bool runs(const struct python *python, __u64 thread, __u64 self)
{
	return is_thread_of(self, read_word(thread + python->thread_id)) && top_frame(python, thread);
}

/* The thread's state among those of one interpreter; 0: none. */
__noinline __u64 thread_among(struct site_scratch *scratch, const struct python *python, __u64 thread,
			      __u64 self)
{
	if (!scratch || !python)
		return 0;
	for (int i = 0; i < THREADS; i++) {
		if (!thread)
			return 0;
		if (runs(python, thread, self))
			return thread;
		thread = read_word(thread + python->thread_next);
	}
	scratch->event.flags |= SITE_THREADS_FULL;
	return 0;
}

__noinline __u64 thread_search(struct site_scratch *scratch, const struct python *python, __u64 self)
{
	__u64 interpreter, thread;

	if (!scratch || !python)
		return 0;
	interpreter = read_word(python->runtime + python->interpreters_head);
	for (int i = 0; i < INTERPRETERS; i++) {
		if (!interpreter)
			return 0;
		thread = thread_among(scratch, python, read_word(interpreter + python->threads_head), self);
		if (thread)
			return thread;
		interpreter = read_word(interpreter + python->interpreter_next);
	}
	return 0;
}

/* The frame before was the first one of its native evaluation loop. */
static __always_inline void mark_entry(struct site_scratch *scratch)
{
	__u32 last = (__u32)scratch->event.python_count - 1;

	if (last < SITE_PYTHON)
		scratch->event.frames[last].code |= PYTHON_FRAME_ENTRY;
}

static __always_inline void keep_frame(struct site_scratch *scratch, const struct python *python)
{
	__u32 count = scratch->event.python_count;
	__u64 instruction = window_word(scratch, python->frame_instruction);

	if (count >= SITE_PYTHON)
		return;
	if (python->instruction_bytes == 4)
		instruction = (__u32)(instruction >> (python->frame_instruction % 8 * 8));
	scratch->event.frames[count].code =
		window_word(scratch, python->frame_code) & python->code_mask & ~7ull;
	scratch->event.frames[count].instruction = instruction;
	scratch->event.python_count = count + 1;
	if (python->entry == PYTHON_ENTRY_EACH ||
	    (python->entry == PYTHON_ENTRY_BYTE && window_byte(scratch, python->frame_entry)))
		mark_entry(scratch);
}

/* Keeps the frame at `at`; the one that called it, or 0. */
__noinline __u64 frame_at(struct site_scratch *scratch, const struct python *python, __u64 at)
{
	__u32 bytes;

	if (!scratch || !python)
		return 0;
	bytes = python->frame_bytes;
	if (bytes > PYTHON_WINDOW)
		bytes = PYTHON_WINDOW;
	if (bpf_probe_read_user(scratch->window, bytes, (void *)at)) {
		scratch->event.flags |= SITE_PYTHON_BROKEN;
		return 0;
	}
	if (python->frame_owner != PYTHON_ABSENT &&
	    window_byte(scratch, python->frame_owner) >= python->first_no_function)
		mark_entry(scratch);
	else
		keep_frame(scratch, python);
	return window_word(scratch, python->frame_previous);
}

__noinline int read_frames(struct site_scratch *scratch, const struct python *python, __u64 at)
{
	if (!scratch || !python)
		return 0;
	for (int i = 0; i < FRAMES_FOLLOWED; i++) {
		if (!at)
			return 0;
		if (scratch->event.python_count >= SITE_PYTHON)
			break;
		at = frame_at(scratch, python, at);
	}
	if (at)
		scratch->event.flags |= SITE_PYTHON_FULL;
	return 0;
}

static __always_inline __u64 thread_pointer(void)
{
	struct task_struct___thread *task = (void *)bpf_get_current_task_btf();

	return BPF_CORE_READ(task, THREAD_POINTER);
}

#ifdef GPUSCOPE_INSIDE
__u64 find_python_thread(struct site_scratch *scratch, const struct python *python, __u64 self);
void forget_python_thread(void);
#else
/* The state of the thread whose pointer is `self`; 0: it runs no Python code. */
static __always_inline __u64 find_python_thread(struct site_scratch *scratch, const struct python *python,
						__u64 self)
{
	/* its memory may have become another's */
	if (!scratch->thread || !runs(python, scratch->thread, self))
		scratch->thread = thread_search(scratch, python, self);
	return scratch->thread;
}

static __always_inline void forget_python_thread(void)
{
}
#endif

__noinline int python_stack(struct site_scratch *scratch, __u32 tgid)
{
	const struct python *python = bpf_map_lookup_elem(&pythons, &tgid);
	__u64 thread;

	if (!scratch || !python)
		return 0;
	scratch->event.python = PYTHON_THREAD;
	thread = find_python_thread(scratch, python, thread_pointer());
	if (thread) {
		scratch->event.python = PYTHON_FRAMES;
		scratch->event.flags &= ~SITE_THREADS_FULL;
		read_frames(scratch, python, top_frame(python, thread));
	}
	forget_python_thread();
	return 0;
}

#endif
