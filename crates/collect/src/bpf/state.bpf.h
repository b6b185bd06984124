/* What the programs remember: the maps and the state of a thread. */
#ifndef GPUSCOPE_STATE_BPF_H
#define GPUSCOPE_STATE_BPF_H

#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "registers.bpf.h"
#include "wire.h"

#ifndef GPUSCOPE_INSIDE
#define GIVEN const volatile /* by user space, before anything runs */
#define SHARED               /* with user space, which reads and writes it meanwhile */
/* to what only the current thread changes, in a process that carries the agent */
#define ADD_OWN(at, number) __sync_fetch_and_add(at, number)
/* what a native stack is known to be: addresses, some of which may be none of code */
#define STACK_IS_CODE false
#define stack_flags() 0
/* what a handle leads to, which may be any number */
#define read_handle(to, bytes, from) bpf_probe_read_user(to, bytes, from)
#define read_handle_str(to, bytes, from) bpf_probe_read_user_str(to, bytes, from)
#define HANDLES_ARE_DOUBTED false
/* what the agent lays aside: the kernel's programs are ordered by their verifier's needs */
#define SELDOM(condition) (condition)
#if defined(__TARGET_ARCH_arm64)
#define caller_at(place) (place)
#else
#define caller_at(place) read_word(place)
#endif
#endif

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid;
	int tgid;
	__u64 self_exec_id;
	__u64 start_boottime;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	unsigned long nvcsw;
	unsigned long nivcsw;
	int exit_code;
	struct signal_struct *signal;
	char comm[WIRE_COMM];
} __attribute__((preserve_access_index));

/* Linux 7 gave both an argument; the loader takes the one that fits. */
extern bool bpf_session_is_return(void) __weak __ksym;
extern __u64 *bpf_session_cookie(void) __weak __ksym;
extern bool bpf_session_is_return___ctx(void *ctx) __weak __ksym;
extern __u64 *bpf_session_cookie___ctx(void *ctx) __weak __ksym;

/* An entry whose stack pointer lies this far above an open one's runs on another stack. */
#define STACK_SPAN (8ull << 20)
#define KERNEL_STACK (16ull << 10)
#define ALIVE_NS (1000ull * 1000 * 1000)
#define MAX_SPINS (1 << 23)
#define CONTEXTS 8 /* of a thread's stack of contexts that are remembered */

/* Words of a call, numbered as in the catalogue's captures: registers, stack, values. */
#define WORDS (WIRE_REGS + WIRE_STACK + WIRE_VALUES)

enum frame_mark {
	FRAME_SUBMITS = 1, /* counted in the open calls of its process */
	FRAME_BEFORE = 2,  /* entered before calls counted */
};

struct frame {
	__u64 entered;
	__u64 sp;
	__u64 caller;     /* `entered` of the streamed call around this one, 0: none */
	__u64 generation; /* of an anchor: what it covers was told with a smaller one */
	__u32 row;
	__u8 depth; /* streamed calls around this one */
	__u8 streamed;
	__u8 marks; /* enum frame_mark */
	__u8 pad;
	__u64 word[WORDS];
};

/* A system call that a thread is in. */
struct asked {
	__u64 entered; /* 0: it is in none */
	__u64 file;
	__u64 argument;
	__u64 caller;
	__u64 sp; /* of the program */
	__u32 word;
	__u32 nr;
	__u32 bytes;
	__u32 minor;
	__u32 row;
	__u32 subject; /* the class or method that was asked for */
	__u8 family;
	__u8 step;
	__u8 wrapped;
	__u8 seen;
	__u8 depth;
	__u8 has_subject;
	__u8 early; /* entered before calls counted */
	__u8 pad;
	__u32 pad2;
	__u64 before[2][WIRE_PIECE / 8];
};

struct thread {
	__u64 ids;   /* as bpf_get_current_pid_tgid() gives them */
	__u64 image; /* tells one program in one process from any other */
	__u32 depth;
	__u32 contexts;   /* on the stack, as far as it was seen */
	__u64 remembered; /* when a memory call was last told of, CLOCK_MONOTONIC ns */
	__u64 context[CONTEXTS];
	__u64 stub;      /* of the runtime's launch that is open, 0: none */
	__u64 stub_sp;   /* where that returns to */
	__u64 launched;  /* the kernel that the driver has launched within it */
	__u64 top;       /* the highest stack pointer that a call was entered with */
	__u64 voluntary; /* context switches before its first call */
	__u64 involuntary;
	__u64 returned; /* when the last of its open calls did, CLOCK_MONOTONIC ns; 0: none has */
	__u64 ended_in; /* calls that it was in when it ended */
	struct frame frames[WIRE_FRAMES];
	struct frame spare;               /* of a call that is not kept open */
	__u64 registers[PLACE_REGISTERS]; /* at a static probe, numbered as in machine code */
	struct asked asked;
	struct aggregate_text text; /* that a call is summed up by */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct spec);
} specs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WIRE_PROBE_SITES + 1);
	__type(key, __u32);
	__type(value, struct probe_site);
} probe_sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct total_key);
	__type(value, struct total);
} totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct failure_key);
	__type(value, __u64);
} failures SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct row_counter);
} row_counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u32);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} notices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} memory SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct memory_loss);
} memory_losses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} work SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct lane_key);
	__type(value, struct lane);
} lanes SEC(".maps");

#define FLOWS 4096

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWS);
	__type(key, __u32);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct work_loss);
} work_losses SEC(".maps");

GIVEN struct options options;
SHARED struct control control;

/* keeps the types of both rings in the object's BTF, for the skeleton */
const struct thread *thread_type __attribute__((unused));
const struct call_event *call_event_type __attribute__((unused));
const struct notice *notice_type __attribute__((unused));
const struct memory_call *memory_call_type __attribute__((unused));

const struct work_call *work_call_type __attribute__((unused));
const struct kernel_event *kernel_event_type __attribute__((unused));
const struct kernel_key *kernel_key_type __attribute__((unused));
const struct known_kernel *known_kernel_type __attribute__((unused));
const struct shape_key *shape_key_type __attribute__((unused));
const struct named_handle *named_handle_type __attribute__((unused));

static __always_inline __u64 mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return hash ^ (hash >> 32);
}

/* Calls count from the moment on at which everything is attached, to the one at which all is about to be detached: those
 * that are entered and return in between.
 */
static __always_inline bool counting(void)
{
	return ((volatile struct control *)&control)->counting;
}

static const struct total NO_TOTAL;
static const struct memory_loss NO_LOSS;
static const struct work_loss NO_WORK_LOSS;
static const __u64 ZERO;

#endif
