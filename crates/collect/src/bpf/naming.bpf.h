/* Names of kernels: what a handle leads to, in the drivers that we know; else what the driver was asked for when it gave
 * the handle out; else the function of the host that is launched, which user space names. A name is sent when it is met
 * for the first time; afterwards only its number travels.
 */
#ifndef GPUSCOPE_NAMING_BPF_H
#define GPUSCOPE_NAMING_BPF_H

#include "capture.bpf.h"
#include "count.bpf.h"
#include "finished.bpf.h"
#include "watch.bpf.h"

#define NAME_OFFSET 8    /* in what a CUfunction or CUkernel points to; its tag is at 0 */
#define NAME_ELSEWHERE 1 /* in place of the address of a name that the handle does not lead to */
#define KNOWN_KERNELS 65536

struct kernel_scratch {
	struct kernel_event event;
	struct known_kernel stub;
	struct known_kernel met; /* by a launch, which has no room for it on its stack */
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
	__uint(max_entries, KNOWN_KERNELS);
	__type(key, struct kernel_key);
	__type(value, struct named_handle);
} named_handles SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct kernel_scratch);
} kernel_scratches SEC(".maps");

static __always_inline struct kernel_scratch *kernel_scratch(void)
{
	return bpf_task_storage_get(&kernel_scratches, bpf_get_current_task_btf(), 0,
				    BPF_LOCAL_STORAGE_GET_F_CREATE);
}

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

/* Whether a name of so many bytes with its NUL was read. */
static __always_inline int has_name(struct kernel_scratch *scratch, long bytes)
{
	if (bytes <= 1 || bytes > WIRE_KERNEL_NAME)
		return 0;
	scratch->event.length = (__u32)bytes - 1;
	return 1;
}

/* Fills `scratch` with the name at `address`, an argument. 0: there is none. */
static __always_inline int read_name(struct kernel_scratch *scratch, __u64 address)
{
	long bytes = bpf_probe_read_user_str(scratch->event.name, WIRE_KERNEL_NAME, (void *)address);

	return has_name(scratch, bytes);
}

/* Tells user space what the kernel is called whose name is in `scratch`; stubs and handles that were not read have none.
 */
static __always_inline bool announce_kernel(struct kernel_scratch *scratch, __u32 tgid, __u64 id,
					    __u64 handle, __u32 tag)
{
	__u32 length =
		tag == TAG_STUB || tag == TAG_UNREAD ? 0 : scratch->event.length & (WIRE_KERNEL_NAME - 1);

	scratch->event.kind = MEMORY_KERNEL;
	scratch->event.tgid = tgid;
	scratch->event.id = id;
	scratch->event.handle = handle;
	scratch->event.tag = tag;
	scratch->event.length = length;
	if (!bpf_ringbuf_output(&memory, &scratch->event, offsetof(struct kernel_event, name) + length,
				BPF_RB_NO_WAKEUP))
		return true;
	__sync_fetch_and_add(&control.kernels_lost, 1);
	return false;
}

/* Whether a name can begin with this; what comes after is looked at by user space. */
static __always_inline bool begins_name(char first)
{
	char letter = first | 32;

	return (letter >= 'a' && letter <= 'z') || first == '_' || first == '$' || first == '.' ||
	       first == '%' || first == '@';
}

/* Fills `scratch` with the name that the handle leads to. Not 0: why it leads to none. */
static __always_inline __u64 read_own_name(struct kernel_scratch *scratch, __u64 handle, __u64 name,
					   __u32 *tag)
{
	long bytes;

	if (name == NAME_ELSEWHERE || read_handle(tag, sizeof(*tag), (void *)handle))
		return KERNEL_UNREADABLE;
	if (*tag != TAG_FUNCTION && *tag != TAG_KERNEL)
		return KERNEL_FOREIGN;
	bytes = read_handle_str(scratch->event.name, WIRE_KERNEL_NAME, (void *)name);
	if (!has_name(scratch, bytes))
		return KERNEL_NO_NAME;
	return begins_name(scratch->event.name[0]) ? 0 : KERNEL_FOREIGN;
}

static __always_inline bool names_itself(struct kernel_scratch *scratch, __u64 handle)
{
	__u64 name;
	__u32 tag;

	return !read_handle(&name, sizeof(name), (void *)(handle + NAME_OFFSET)) &&
	       !read_own_name(scratch, handle, name, &tag);
}

/* The id of what a function of the host launches; 0: none. The name is found by user space, whenever. */
__noinline __u64 meet_stub(struct thread *thread)
{
	struct kernel_key key = {};
	struct kernel_scratch *scratch;
	__u64 id;

	if (!thread || !thread->stub)
		return 0;
	key.image = thread->image;
	key.handle = thread->stub;
	id = mix(mix(thread->image, thread->stub), TAG_STUB);
	if (id < KERNEL_FIRST_ID)
		id += KERNEL_FIRST_ID;
	if (bpf_map_lookup_elem(&kernels, &key))
		return id;
	scratch = kernel_scratch();
	if (!scratch || !announce_kernel(scratch, thread->ids >> 32, id, thread->stub, TAG_STUB))
		return 0;
	__builtin_memset(&scratch->stub, 0, sizeof(scratch->stub));
	scratch->stub.name = NAME_ELSEWHERE;
	scratch->stub.tgid = thread->ids >> 32;
	scratch->stub.id = id;
	return bpf_map_update_elem(&kernels, &key, &scratch->stub, BPF_NOEXIST) ? KERNEL_FULL : id;
}

/* The id of a handle that leads to pages which are not there now: user space reads the name. 0: it cannot be told. */
static __noinline __u64 meet_unread(struct thread *thread, __u64 handle, __u64 name)
{
	struct kernel_scratch *scratch = kernel_scratch();
	__u64 id = mix(mix(mix(thread->image, handle), name), TAG_UNREAD);

	if (id < KERNEL_FIRST_ID)
		id += KERNEL_FIRST_ID;
	if (!scratch || !announce_kernel(scratch, thread->ids >> 32, id, handle, TAG_UNREAD))
		return 0;
	return id;
}

/* The id of the kernel of a handle that leads to no name; 0: it has none. */
static __always_inline __u64 named_otherwise(struct thread *thread, __u64 handle)
{
	struct kernel_key key = { .image = thread->image, .handle = handle };
	const struct named_handle *named = bpf_map_lookup_elem(&named_handles, &key);

	return named ? named->id : meet_stub(thread);
}

/* The id of what another handle stands for; 0: that is not known. */
static __always_inline __u64 same_as(const struct thread *thread, __u64 handle)
{
	struct kernel_key key = { .image = thread->image, .handle = handle };
	const struct named_handle *named = bpf_map_lookup_elem(&named_handles, &key);
	const struct known_kernel *known;

	if (named)
		return named->id;
	known = bpf_map_lookup_elem(&kernels, &key);
	return known ? known->id : 0;
}

/* The driver has given out a handle: what it was asked for. */
static __noinline int learn_handle(const struct spec *spec, const struct frame *frame,
				   const struct thread *thread)
{
	__u64 source = word_at(frame, spec->launch.name.word);
	struct named_handle named = { .tgid = thread->ids >> 32 };
	struct kernel_key key = { .image = thread->image };
	const struct named_handle *before;
	struct kernel_scratch *scratch = kernel_scratch();

	key.handle = word_at(frame, spec->launch.kernel.word);
	if (!scratch || !key.handle || names_itself(scratch, key.handle))
		return 0;
	before = bpf_map_lookup_elem(&named_handles, &key);
	if (spec->launch.role == ROLE_SAME) {
		named.id = same_as(thread, source);
	} else if (read_name(scratch, source)) {
		named.id = hash_name(scratch, thread->image);
		if ((!before || before->id != named.id) &&
		    !announce_kernel(scratch, named.tgid, named.id, key.handle, 0))
			named.id = 0;
	}
	if (named.id)
		bpf_map_update_elem(&named_handles, &key, &named, BPF_ANY);
	else if (before)
		bpf_map_delete_elem(&named_handles, &key);
	return 0;
}

/* ---- the runtime around the driver ---- */

static __always_inline void enter_stub(struct thread *thread, const struct spec *spec, struct pt_regs *ctx)
{
	__u64 first = PT_REGS_PARM1(ctx), second = PT_REGS_PARM2(ctx);

	/* the verifier takes no address within `ctx` that was chosen at run time */
	barrier_var(first);
	barrier_var(second);
	thread->stub = spec->launch.kernel.word ? second : first;
	thread->stub_sp = PT_REGS_SP(ctx);
	thread->launched = 0;
}

/* A launch by the runtime returns to `sp`: the id of what it has launched. `*counted`: by a launch of the driver. */
static __always_inline __u64 leave_stub(struct thread *thread, __u64 sp, bool *counted)
{
	__u64 id = thread->launched;

	*counted = id || thread->stub_sp != sp;
	if (!*counted)
		id = meet_stub(thread);
	thread->stub = 0;
	thread->launched = 0;
	return id;
}

/* What a call that has ended tells of kernels, other than by a launch of the driver; what it is counted under. */
__noinline __u64 follow_names(const struct spec *spec, struct frame *frame, const struct finished *call,
			      __u64 sp)
{
	struct thread *thread = thread_known();
	bool counted = true;
	__u64 id;

	if (!spec || !thread || !call)
		return 0;
	if (spec->launch.role == ROLE_STUB) {
		id = leave_stub(thread, sp, &counted);
		if (frame)
			frame->word[WORD_VALUES + 1] = id;
		return counted ? 0 : id;
	}
	if (frame && !(call->flags & EVENT_NO_ARGS) && !call->unreadable && !refused(spec, call->result))
		learn_handle(spec, frame, thread);
	return 0;
}

#endif
