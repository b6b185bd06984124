/* Which state of Python's a thread has, and what of the interpreter's memory may be read as it is.
 *
 * An interpreter keeps the state that is bound to a thread among the thread's own values (pthread_setspecific), and takes it
 * from there before it frees it. While it is there, the frames that it leads to are those that the thread itself runs: they
 * stay until the call that we are in has returned. So they are read directly, once the kernel has read their pages for us.
 */
#ifndef GPUSCOPE_AGENT_INTERPRETER_H
#define GPUSCOPE_AGENT_INTERPRETER_H

#include "python.bpf.h"
#include "memory.h"

/* of the C library's own structure of a thread: the values come first of what is large */
#define THREAD_BYTES 2048
/* a value's slot holds a number before it, which counts how often its key was given out */
#define SEQUENCES (1ull << 32)

/* How far behind the thread pointer the state lies; 0: not known. */
static __u32 state_at;

/* The state bound to this thread; 0: none, or it is not known where it would be. */
INLINE __u64 bound_state(__u64 thread_pointer)
{
	__u32 at = __atomic_load_n(&state_at, __ATOMIC_RELAXED);

	return at ? *(const __u64 *)(thread_pointer + at) : 0;
}

/* Learns where it lies, from a thread whose state was found. */
static void learn_bound_state(__u64 thread_pointer, __u64 state)
{
	for (__u32 at = 16; at < THREAD_BYTES; at += 8) {
		__u64 sequence = *(const __u64 *)(thread_pointer + at - 8);

		if (*(const __u64 *)(thread_pointer + at) == state && sequence && sequence < SEQUENCES) {
			__atomic_store_n(&state_at, at, __ATOMIC_RELAXED);
			return;
		}
	}
}

/* Whether no other interpreter is there whose state this thread could have. */
static bool is_only_interpreter(const struct python *python)
{
	__u64 interpreter = read_word(python->runtime + python->interpreters_head);

	return interpreter && !read_word(interpreter + python->interpreter_next);
}

__u64 find_python_thread(struct site_scratch *scratch, const struct python *python, __u64 pointer)
{
	__u64 bound = bound_state(pointer);

	if (bound) {
		local()->alive = true;
		if (runs(python, bound, pointer))
			return bound;
		local()->alive = false;
	}
	if (__atomic_load_n(&state_at, __ATOMIC_RELAXED) && is_only_interpreter(python))
		return 0;
	/* its memory may have become another's */
	if (!scratch->thread || !runs(python, scratch->thread, pointer))
		scratch->thread = thread_search(scratch, python, pointer);
	if (scratch->thread && !state_at)
		learn_bound_state(pointer, scratch->thread);
	return scratch->thread;
}

void forget_python_thread(void)
{
	local()->alive = false;
}

#endif
