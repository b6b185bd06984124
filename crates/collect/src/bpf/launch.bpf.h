/* Launches: which kernel, and in what shape. */
#ifndef GPUSCOPE_LAUNCH_BPF_H
#define GPUSCOPE_LAUNCH_BPF_H

#include "capture.bpf.h"
#include "count.bpf.h"
#include "finished.bpf.h"
#include "naming.bpf.h"

#define KNOWN_SHAPES 65536
#define MOST_THREADS (1ull << 48) /* of one launch */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, KNOWN_SHAPES);
	__type(key, struct shape_key);
	__type(value, __u64);
} shapes SEC(".maps");

/* Adds to the launches of a kernel in the shape of `key`. Static: Linux 6.1 takes no key from a global function's
 * argument.
 */
static __noinline int add_shape(const struct shape_key *key, __u64 launches)
{
	__u64 *count = bpf_map_lookup_elem(&shapes, key);

	if (!count) {
		bpf_map_update_elem(&shapes, key, &ZERO, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&shapes, key);
	}
	if (count)
		__sync_fetch_and_add(count, launches);
	else
		__sync_fetch_and_add(&control.shapes_lost, launches);
	return 0;
}

/* A handle goes to another kernel: what was counted of the old one must stay. The thread that removes the entry keeps
 * it, so it is counted once where several threads meet the new kernel at the same time.
 */
static __always_inline void forget(const struct kernel_key *handle, const struct known_kernel *old)
{
	struct shape_key key = { .kernel = old->id, .tgid = old->tgid };
	__u64 launches = old->shape_state == SHAPE_SET ? old->launches : 0;

	__builtin_memcpy(key.number, old->number, sizeof(key.number));
	if (!bpf_map_delete_elem(&kernels, handle) && launches)
		add_shape(&key, launches);
}

/* Remembers what the handle of `key` stands for from now on; its id, or KERNEL_FULL. An entry of the same kernel that
 * another thread was first to make stays: launches are counted in it.
 */
static __always_inline __u64 know(const struct kernel_key *key, const struct known_kernel *known)
{
	struct known_kernel *before = bpf_map_lookup_elem(&kernels, key);

	if (before && before->id != known->id)
		forget(key, before);
	if (!bpf_map_update_elem(&kernels, key, known, BPF_NOEXIST))
		return known->id;
	before = bpf_map_lookup_elem(&kernels, key);
	if (!before)
		return KERNEL_FULL;
	if (before->id == known->id) {
		before->name = known->name;
		before->unloads = known->unloads;
	}
	return known->id;
}

/* A handle that is not known yet, or that may stand for another kernel now: the id of its kernel. */
__noinline __u64 meet_kernel(struct thread *thread, __u64 handle, __u64 name)
{
	struct kernel_key key = { .handle = handle };
	struct kernel_scratch *scratch;
	struct known_kernel *known, *before;
	__u64 missing;
	__u32 tag = 0;

	if (!thread)
		return KERNEL_FULL;
	key.image = thread->image;
	scratch = kernel_scratch();
	if (!scratch)
		return KERNEL_FULL;
	known = &scratch->met;
	__builtin_memset(known, 0, sizeof(*known));
	known->name = name;
	known->unloads = control.unloads;
	known->tgid = thread->ids >> 32;
	missing = read_own_name(scratch, handle, name, &tag);
	if (missing) {
		if (HANDLES_ARE_DOUBTED)
			known->name = NAME_ELSEWHERE;
		known->id = named_otherwise(thread, handle);
		if (!known->id && missing != KERNEL_FOREIGN)
			known->id = meet_unread(thread, handle, name);
		return known->id ? know(&key, known) : missing;
	}
	known->id = hash_name(scratch, thread->image);
	before = bpf_map_lookup_elem(&kernels, &key);
	/* what could not be told is told at the next launch */
	if ((!before || before->id != known->id || !before->name) &&
	    !announce_kernel(scratch, known->tgid, known->id, handle, tag))
		known->name = 0;
	return know(&key, known);
}

/* The word of the handle that leads to its name. An agent asks the kernel for it once: an object of the driver's, by its tag,
 * stays as long as nothing was unloaded, and the driver follows it at each launch that succeeds; of another handle there is
 * nothing to look at again.
 */
static __always_inline __u64 name_word(const struct known_kernel *known, __u64 handle)
{
	bool is_met = HANDLES_ARE_DOUBTED && known && known->unloads == control.unloads;
	const void *at = (const void *)(handle + NAME_OFFSET);
	__u64 name;

	if (is_met && known->name == NAME_ELSEWHERE)
		return NAME_ELSEWHERE;
	if (is_met && known->name)
		return bpf_probe_read_user(&name, sizeof(name), at) ? NAME_ELSEWHERE : name;
	return read_handle(&name, sizeof(name), at) ? NAME_ELSEWHERE : name;
}

/* What is known of the kernel that `handle` stands for; NULL: `id` says why nothing is. A handle is given to another
 * kernel after its own was unloaded: then the address of the name is another one, or an unload was seen.
 */
static __always_inline struct known_kernel *kernel_of(struct thread *thread, __u64 handle, __u64 *id)
{
	struct kernel_key key = { .image = thread->image, .handle = handle };
	struct known_kernel *known = bpf_map_lookup_elem(&kernels, &key);
	__u64 name = name_word(known, handle);

	if (!known || known->name != name || known->unloads != control.unloads) {
		*id = meet_kernel(thread, handle, name);
		return *id < KERNEL_FIRST_ID ? NULL : bpf_map_lookup_elem(&kernels, &key);
	}
	*id = known->id;
	return known;
}

/* ---- shapes ---- */

static __always_inline __u64 capped(__u64 number, __u64 times)
{
	if (times == 1)
		return number;
	return times && number > MOST_THREADS / times ? MOST_THREADS : number * times;
}

/* A shape in memory, and what follows. */
struct shape_block {
	__u32 number[WIRE_SHAPE];
	__u32 pad;
	__u64 stream;
};

#define WORD_SHAPE (WORD_STREAM - offsetof(struct shape_block, stream) / 8)

/* Goes through words of the frame that a launch does not use, to spare the stack; its stream stays there, in word
 * WORD_STREAM.
 */
static __always_inline bool read_block(const struct spec *spec, struct frame *frame, struct shape_key *key,
				       __u64 *stream)
{
	struct shape_block *block = (struct shape_block *)&frame->word[WORD_SHAPE];
	const struct spec_launch *from = &spec->launch;
	__u32 bytes = from->stream_in_block ? sizeof(*block) : sizeof(block->number);

	if (bpf_probe_read_user(block, bytes,
				(void *)(word_at(frame, from->shape_block) + from->shape_offset)))
		return false;
	__builtin_memcpy(key->number, block->number, sizeof(key->number));
	if (from->stream_in_block)
		*stream = block->stream;
	return true;
}

/* False: the call does not say. */
static __always_inline bool read_shape(const struct spec *spec, struct frame *frame, struct shape_key *key,
				       __u64 *stream)
{
	const struct spec_launch *from = &spec->launch;
	__u32 first;

	if (from->shape_block != WORD_NONE)
		return read_block(spec, frame, key, stream);
	first = from->shape_word;
	if (first > WORDS - WIRE_SHAPE)
		return false;
	for (__u32 i = 0; i < WIRE_SHAPE; i++)
		key->number[i] = (__u32)frame->word[first + i];
	return true;
}

static __always_inline bool same_shape(const struct known_kernel *known, const struct shape_key *key)
{
	__u32 differs = 0;

	for (int i = 0; i < WIRE_SHAPE; i++)
		differs |= known->number[i] ^ key->number[i];
	return !differs;
}

/* Whether the shape is the one that is counted beside the kernel. */
static __always_inline bool is_kept_shape(struct known_kernel *known, const struct shape_key *key)
{
	if (known->shape_state == SHAPE_SET)
		return same_shape(known, key);
	if (__sync_val_compare_and_swap(&known->shape_state, SHAPE_NONE, SHAPE_COMES) != SHAPE_NONE)
		return false;
	__builtin_memcpy(known->number, key->number, sizeof(key->number));
	__sync_val_compare_and_swap(&known->shape_state, SHAPE_COMES, SHAPE_SET);
	return true;
}

static __always_inline void note_stream(struct known_kernel *known, __u64 stream)
{
	if (known->stream == ~stream)
		return;
	if (__sync_val_compare_and_swap(&known->stream, 0, ~stream))
		known->streams = 2;
}

/* Counts the shape of a launch that has succeeded: its threads. */
static __always_inline __u64 count_shape(const struct spec *spec, struct frame *frame,
					 struct known_kernel *known, struct shape_key *key)
{
	__u64 threads = 1, stream = word_at(frame, spec->launch.stream.word);
	bool said = read_shape(spec, frame, key, &stream);

	if (known)
		note_stream(known, stream ? stream : spec->launch.null_stream);
	if (!said)
		return 0;
	for (__u32 i = 0; i < 6; i++)
		threads = capped(threads, key->number[i]);
	if (known && known->id == key->kernel && is_kept_shape(known, key))
		__sync_fetch_and_add(&known->launches, 1);
	else
		add_shape(key, 1);
	return threads;
}

/* The kernel that a call has launched which has ended, with its arguments known. */
__noinline __u64 launched(const struct spec *spec, struct frame *frame, struct thread *thread,
			  struct finished *call)
{
	struct known_kernel *known;
	struct shape_key key = {};

	if (!spec || !frame || !thread || !call)
		return KERNEL_NO_ARGS;
	known = kernel_of(thread, word_at(frame, spec->launch.kernel.word), &key.kernel);
	key.tgid = call->tgid;
	frame->word[WORD_VALUES + 1] = key.kernel;
	thread->launched = key.kernel;
	if (!refused(spec, call->result))
		call->bytes = count_shape(spec, frame, known, &key);
	return key.kernel;
}

#endif
