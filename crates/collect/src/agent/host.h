/* The few helpers of the kernel that the body of a call needs, for a process that carries the agent: what is a map there is
 * a table in shared memory here (table.h), a ring one of the thread's own (ring.h), a read of the program's memory a read.
 */
#ifndef GPUSCOPE_AGENT_HOST_H
#define GPUSCOPE_AGENT_HOST_H

#include "syscall.h"
#include "table.h"
#include "ring.h"
#include "thread.h"

#define GPUSCOPE_INSIDE 1
/* each lies on pages of its own, in place of which shared memory is mapped */
#define SHARED __attribute__((section("pages"), aligned(ARENA_PAGE)))
#define GIVEN volatile SHARED
#define ADD_OWN(at, number) (*(at) += (number))

#define SEC(name)
#define __uint(name, number) int(*name)[number]
#define __type(name, type) typeof(type) *name
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define __noinline __attribute__((noinline))
#define __weak __attribute__((weak))
#define __ksym
#define barrier_var(variable) asm volatile("" : "+r"(variable))

#define PT_REGS_PARM1(ctx) ((ctx)->rdi)
#define PT_REGS_PARM2(ctx) ((ctx)->rsi)
#define PT_REGS_PARM3(ctx) ((ctx)->rdx)
#define PT_REGS_PARM4(ctx) ((ctx)->rcx)
#define PT_REGS_PARM5(ctx) ((ctx)->r8)
#define PT_REGS_PARM6(ctx) ((ctx)->r9)
#define PT_REGS_RC(ctx) ((ctx)->rax)
#define PT_REGS_SP(ctx) ((ctx)->rsp)
#define PT_REGS_IP(ctx) ((ctx)->rip)

/* ---- maps: which table one is follows from what it holds, while this is compiled; `type` of others holds their number ---- */

struct aggregate;
struct aggregate_text;
struct failure_key;
struct flow;
struct known_kernel;
struct lane;
struct memory_loss;
struct named_handle;
struct probe_site;
struct python;
struct row_counter;
struct shape_key;
struct spec;
struct thread;
struct total;
struct work_loss;

/* clang-format off */
#define PLACE_OF(map)                                             \
	_Generic((map)->value,                                    \
		struct spec *: PLACE_SPECS,                       \
		struct probe_site *: PLACE_PROBE_SITES,           \
		struct row_counter *: OWN_ROWS,                   \
		struct total *: OWN_TOTALS,                       \
		struct flow *: PROCESS_FLOWS,                     \
		struct known_kernel *: PROCESS_KERNELS,           \
		struct named_handle *: PROCESS_NAMED_HANDLES,     \
		struct aggregate *: PROCESS_AGGREGATES,           \
		struct lane *: PROCESS_LANES,                     \
		struct work_loss *: PROCESS_WORK_LOSSES,          \
		struct memory_loss *: PROCESS_MEMORY_LOSSES,      \
		struct python *: PROCESS_PYTHONS,                 \
		__u64 *: _Generic((map)->key,                     \
			struct failure_key *: OWN_FAILURES,       \
			struct shape_key *: PROCESS_SHAPES,       \
			struct aggregate_text *: PROCESS_AGGREGATE_TEXTS, \
			default: PLACE_UNLISTED),                 \
		__u32 *: _Generic((map)->key,                     \
			__u64 *: PROCESS_KNOWN_SITES,             \
			__u32 *: PLACE_NOWHERE, /* targets */     \
			default: PLACE_UNLISTED))
/* clang-format on */
#define NUMBER_OF(map) ((__u32)(unsigned long)(map)->type)
#define OFFSET_OF(map) \
	_Generic((map)->value, struct thread * : (__u32)sizeof(struct local), default : NUMBER_OF(map))
#define LISTED(map) _Static_assert(PLACE_OF(map) != PLACE_UNLISTED, "a map without a table of its own")
#define bpf_map_lookup_elem(map, wanted)                                                 \
	((typeof((map)->value))({                                                        \
		LISTED(map);                                                             \
		find(PLACE_OF(map), wanted, sizeof(*(map)->key), sizeof(*(map)->value)); \
	}))
#define bpf_map_update_elem(map, wanted, new, how)                                                \
	({                                                                                        \
		LISTED(map);                                                                      \
		put(PLACE_OF(map), wanted, new, how, sizeof(*(map)->key), sizeof(*(map)->value)); \
	})
#define bpf_map_delete_elem(map, wanted)                                                 \
	({                                                                               \
		LISTED(map);                                                             \
		drop(PLACE_OF(map), wanted, sizeof(*(map)->key), sizeof(*(map)->value)); \
	})
#define bpf_task_storage_get(map, task, initial, flags) \
	((typeof((map)->value))((char *)self + BLOCK_LOCAL + OFFSET_OF(map)))

#define bpf_ringbuf_reserve(ring, bytes, flags) reserve(NUMBER_OF(ring), bytes)
#define bpf_ringbuf_submit(record, flags) ((void)(flags), submit_record())
#define bpf_ringbuf_query(ring, what) (self->head - __atomic_load_n(&self->tail, __ATOMIC_ACQUIRE))
#define bpf_ringbuf_output(ring, from, bytes, flags) output(NUMBER_OF(ring), from, bytes)

/* ---- who, when ---- */

/* read once when a hook is entered: all that is done there happens at that time */
#define bpf_ktime_get_ns() (local()->now)
#define bpf_get_current_pid_tgid() (local()->ids)
#define bpf_get_current_task_btf() NULL
#define bpf_get_current_comm(to, bytes) name_of_thread(to)
/* of all that is asked of a task, the body wants its thread pointer alone */
#define BPF_CORE_READ(task, field) (thread_pointer_of(task))
#define bpf_ksym_exists(symbol) false

#define bpf_loop(times, body, argument, flags)                     \
	do {                                                       \
		for (__u32 index_ = 0; index_ < (times); index_++) \
			if (body(index_, argument))                \
				break;                             \
	} while (0)

/* ---- the program's memory ---- */

#define bpf_probe_read_user(to, bytes, from) read_memory(to, bytes, from)
#define bpf_probe_read_user_str(to, bytes, from) read_string(to, bytes, from)
#define read_handle(to, bytes, from) read_by_handle(to, bytes, from)
#define read_handle_str(to, bytes, from) read_string_by_handle(to, bytes, from)
/* what a handle leads to stays there as long as it stands for the same */
#define HANDLES_ARE_DOUBTED true
#define bpf_probe_read_kernel(to, bytes, from) (-14)
#define bpf_probe_read_kernel_str(to, bytes, from) (-14)
#define bpf_get_stack(ctx, to, bytes, flags) walk_frames(ctx, to, bytes)
#define bpf_find_vma(task, address, each, found, flags) (-2)
/* a stack that was walked by rules leads through code; what else is to be said of it */
#define STACK_IS_CODE true
#define stack_flags() (local()->walked)
#define caller_at(sp) (local()->caller)

#endif
