/* Where a call's words lie when its function is entered and left, on each processor. Both hand over the same integers in the
 * same order; on aarch64 two more of them are in registers, and the return address is, too.
 */
#ifndef GPUSCOPE_REGISTERS_BPF_H
#define GPUSCOPE_REGISTERS_BPF_H

#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#if defined(__TARGET_ARCH_arm64)

/* registers that hold words which x86-64 has on the stack */
#define MORE_REGS 2
#define first_on_stack(ctx) PT_REGS_SP(ctx)
/* the stack pointer at the entry of the call that returns */
#define entered_with(ctx) PT_REGS_SP(ctx)
#define place_of_caller(ctx) PT_REGS_RET((struct pt_regs *)(ctx))
#define PLACE_REGISTERS 32 /* x0 .. x30 and the stack pointer */

static __always_inline void save_more_registers(__u64 *word, struct pt_regs *ctx)
{
	word[0] = PT_REGS_PARM7(ctx);
	word[1] = PT_REGS_PARM8(ctx);
}

static __always_inline void copy_registers(__u64 *registers, const struct pt_regs *ctx)
{
	const struct user_pt_regs *regs = (const struct user_pt_regs *)ctx;

#pragma unroll
	for (int i = 0; i < 31; i++)
		registers[i] = regs->regs[i];
	registers[31] = regs->sp;
}

/* glibc's `pthread_self` lies below what the thread pointer points to, by a size of its own for each version. */
#define THREAD_BELOW 4096
#define is_thread_of(pointer, thread) ((pointer) - (thread)-1 < THREAD_BELOW)

struct user_word {
	unsigned long tp_value;
} __attribute__((preserve_access_index));

struct thread_struct {
	struct user_word uw;
} __attribute__((preserve_access_index));

#define THREAD_POINTER thread.uw.tp_value

#else

#define MORE_REGS 0
#define first_on_stack(ctx) (PT_REGS_SP(ctx) + 8)
#define entered_with(ctx) (PT_REGS_SP(ctx) - 8)
#define place_of_caller(ctx) PT_REGS_SP(ctx)
#define save_more_registers(word, ctx) ((void)0)
#define PLACE_REGISTERS 16

static __always_inline void copy_registers(__u64 *registers, const struct pt_regs *ctx)
{
	registers[0] = ctx->rax;
	registers[1] = ctx->rcx;
	registers[2] = ctx->rdx;
	registers[3] = ctx->rbx;
	registers[4] = ctx->rsp;
	registers[5] = ctx->rbp;
	registers[6] = ctx->rsi;
	registers[7] = ctx->rdi;
	registers[8] = ctx->r8;
	registers[9] = ctx->r9;
	registers[10] = ctx->r10;
	registers[11] = ctx->r11;
	registers[12] = ctx->r12;
	registers[13] = ctx->r13;
	registers[14] = ctx->r14;
	registers[15] = ctx->r15;
}

#define is_thread_of(pointer, thread) ((thread) == (pointer))

struct thread_struct {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

#define THREAD_POINTER thread.fsbase

#endif

#endif
