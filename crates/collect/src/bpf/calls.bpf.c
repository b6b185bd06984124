/* One generic body (call.bpf.h) serves every function of the catalogue: the attach cookie is its row, `specs[row]` says
 * what to capture. It is compiled for the three ways of attaching that kernels offer (session, multi, perf
 * link); user space loads the best one. Counting is exact and happens here; events may be lost and are then
 * counted by row. Meaning is not this file's business: it copies words.
 */
#include "call.bpf.h"
#include "driver.bpf.h"
#include "kernel.bpf.h"
#include "process.bpf.h"
#include "sample.bpf.h"
#include "xid.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct nowhere {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
};

/* programs of different attach types may not share one */
struct nowhere nowhere_session SEC(".maps");
struct nowhere nowhere SEC(".maps");

/* Since Linux 6.13 a function of a program that needs 64 bytes of stack or more gets them from one piece of
 * memory for each CPU. Programs at uprobes can be preempted, by another thread that runs into the same program
 * on that CPU; both would write there, and the kernel crashes. A program with a tail call keeps the stack of its
 * thread. This one is never made: the verifier removes it once it has decided about the stack.
 */
static __always_inline void keep_own_stack(void *ctx, void *nowhere)
{
	if (options.never)
		bpf_tail_call(ctx, nowhere, 0);
}

SEC("uprobe.session")
int call_session(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u32 row = (__u32)cookie;
	const struct spec *spec = bpf_map_lookup_elem(&specs, &row);
	bool counts = counting();
	struct thread *thread;
	__u64 ids, now;

	keep_own_stack(ctx, &nowhere_session);
	if (!spec)
		return 1;
	if (session_returns(ctx)) {
		at_return(spec, ctx, row, true);
		return 0;
	}
	if (!enter(row, cookie, &ids, &thread, counts))
		return 1;
	if (!(spec->flags & SPEC_RETURN)) {
		if (counts)
			at_entry_only(spec, ctx, row, ids, thread, 0);
		return 1; /* no return probe for this call */
	}
	now = bpf_ktime_get_ns();
	*session_cookie(ctx) = counts ? now : 0;
	if (thread && spec->launch.role == ROLE_STUB)
		enter_stub(thread, spec, ctx);
	if (thread && needs_frame(spec))
		frame_open(thread, ctx, spec, row, now, counts);
	return 0;
}

static __always_inline int entry_body(struct pt_regs *ctx)
{
	keep_own_stack(ctx, &nowhere);
	return enter_call(ctx, bpf_get_attach_cookie(ctx));
}

static __always_inline int return_body(struct pt_regs *ctx)
{
	keep_own_stack(ctx, &nowhere);
	return leave_call(ctx, bpf_get_attach_cookie(ctx));
}

SEC("uprobe.multi")
int call_entry_multi(struct pt_regs *ctx)
{
	return entry_body(ctx);
}

SEC("uprobe.multi")
int call_return_multi(struct pt_regs *ctx)
{
	return return_body(ctx);
}

SEC("uprobe")
int call_entry_single(struct pt_regs *ctx)
{
	return entry_body(ctx);
}

SEC("uretprobe")
int call_return_single(struct pt_regs *ctx)
{
	return return_body(ctx);
}

/* ---- the floor that our cost is measured against ---- */

SEC("uprobe.session")
int empty_session(struct pt_regs *ctx)
{
	return 0;
}

SEC("uprobe.multi")
int empty_entry(struct pt_regs *ctx)
{
	return 0;
}
