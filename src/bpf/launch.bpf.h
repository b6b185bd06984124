/* Launches: which kernel, by the name that its handle leads to, and in what shape. A name is sent when it is met for
 * the first time; afterwards only its number travels.
 */
#ifndef GPUSCOPE_LAUNCH_BPF_H
#define GPUSCOPE_LAUNCH_BPF_H

#include "capture.bpf.h"
#include "count.bpf.h"
#include "finished.bpf.h"

#define NAME_OFFSET 8 /* in what a CUfunction or CUkernel points to; its tag is at 0 */
#define TAG_FUNCTION 1
#define TAG_KERNEL 2
#define KNOWN_KERNELS 65536
#define KNOWN_SHAPES 65536
#define MOST_THREADS (1ull << 48) /* of one launch */

struct kernel_scratch {
	struct kernel_event event;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, KNOWN_KERNELS);
	__type(key, struct kernel_key);
	__type(value, struct known_kernel);
} kernels SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, KNOWN_SHAPES);
	__type(key, struct shape_key);
	__type(value, __u64);
} shapes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct kernel_scratch);
} kernel_scratches SEC(".maps");

/* ---- names ---- */

__noinline __u64 hash_name(const struct kernel_scratch *scratch, __u64 hash)
{
	__u32 bytes;

	if (!scratch)
		return 0;
	bytes = scratch->event.length;
	for (__u32 i = 0; i < WIRE_KERNEL_NAME / 8; i++) {
		__u64 word;

		if (i * 8 >= bytes)
			break;
		word = *(const __u64 *)(scratch->event.name + i * 8);
		if (bytes - i * 8 < 8)
			word &= (1ull << ((bytes - i * 8) * 8)) - 1;
		hash = mix(hash, word);
	}
	return hash < KERNEL_FIRST_ID ? hash + KERNEL_FIRST_ID : hash;
}

/* Fills `scratch` with the name at `address`. 0: there is none. */
static __always_inline int read_name(struct kernel_scratch *scratch, __u64 address)
{
	long bytes = bpf_probe_read_user_str(scratch->event.name, WIRE_KERNEL_NAME, (void *)address);

	if (bytes <= 1 || bytes > WIRE_KERNEL_NAME)
		return 0;
	scratch->event.length = (__u32)bytes - 1;
	return 1;
}

/* Tells user space what the kernel in `scratch` is called. */
static __always_inline bool announce_kernel(struct kernel_scratch *scratch)
{
	__u32 length = scratch->event.length & (WIRE_KERNEL_NAME - 1);

	if (!bpf_ringbuf_output(&memory, &scratch->event, offsetof(struct kernel_event, name) + length,
				BPF_RB_NO_WAKEUP))
		return true;
	__sync_fetch_and_add(&control.kernels_lost, 1);
	return false;
}

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

/* A handle goes to another kernel: what was counted of the old one must stay. */
static __always_inline void keep_shape(const struct known_kernel *old)
{
	struct shape_key key = { .kernel = old->id, .tgid = old->tgid };

	__builtin_memcpy(key.number, old->number, sizeof(key.number));
	if (old->shape_state == SHAPE_SET && old->launches)
		add_shape(&key, old->launches);
}

/* A handle that is not known yet, or that may stand for another kernel now: the id of its kernel. */
__noinline __u64 meet_kernel(struct thread *thread, __u64 handle, __u64 name)
{
	struct kernel_key key = { .handle = handle };
	struct known_kernel known = {};
	struct kernel_scratch *scratch;
	struct known_kernel *before;
	__u32 tag = 0;

	if (!thread)
		return KERNEL_FULL;
	known.unloads = control.unloads;
	known.tgid = thread->ids >> 32;
	key.image = thread->image;
	if (bpf_probe_read_user(&tag, sizeof(tag), (void *)handle))
		return KERNEL_UNREADABLE;
	if (tag != TAG_FUNCTION && tag != TAG_KERNEL)
		return KERNEL_FOREIGN;
	scratch = bpf_task_storage_get(&kernel_scratches, bpf_get_current_task_btf(), 0,
				       BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!scratch)
		return KERNEL_FULL;
	if (!read_name(scratch, name))
		return KERNEL_NO_NAME;
	known.id = hash_name(scratch, thread->image);
	before = bpf_map_lookup_elem(&kernels, &key);
	if (before && before->id == known.id && before->name) {
		before->name = name;
		before->unloads = known.unloads;
		return known.id;
	}
	scratch->event.kind = MEMORY_KERNEL;
	scratch->event.tgid = known.tgid;
	scratch->event.id = known.id;
	scratch->event.handle = handle;
	scratch->event.tag = tag;
	/* what could not be told is told at the next launch */
	known.name = announce_kernel(scratch) ? name : 0;
	if (before && before->id == known.id) {
		before->name = known.name;
		return known.id;
	}
	if (before)
		keep_shape(before);
	return bpf_map_update_elem(&kernels, &key, &known, BPF_ANY) ? KERNEL_FULL : known.id;
}

/* What is known of the kernel that `handle` stands for; NULL: `id` says why nothing is. A handle is given to another
 * kernel after its own was unloaded: then the address of the name is another one, or an unload was seen.
 */
static __always_inline struct known_kernel *kernel_of(struct thread *thread, __u64 handle, __u64 *id)
{
	struct kernel_key key = { .image = thread->image, .handle = handle };
	struct known_kernel *known;
	__u64 name;

	*id = KERNEL_UNREADABLE;
	if (bpf_probe_read_user(&name, sizeof(name), (void *)(handle + NAME_OFFSET)))
		return NULL;
	known = bpf_map_lookup_elem(&kernels, &key);
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

/* False: the call does not say. */
static __always_inline bool read_shape(const struct spec *spec, const struct frame *frame,
				       struct shape_key *key)
{
	const struct spec_launch *from = &spec->launch;
	__u32 first;

	if (from->shape_block != WORD_NONE)
		return !bpf_probe_read_user(key->number, sizeof(key->number),
					    (void *)(word_at(frame, from->shape_block) + from->shape_offset));
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

/* Counts the shape of a launch that has succeeded: its threads. */
static __always_inline __u64 count_shape(const struct spec *spec, const struct frame *frame,
					 struct known_kernel *known, struct shape_key *key)
{
	__u64 threads = 1;

	if (!read_shape(spec, frame, key))
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
	if (!failed(spec, call->result))
		call->bytes = count_shape(spec, frame, known, &key);
	return key.kernel;
}

#endif
