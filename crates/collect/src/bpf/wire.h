/* What crosses between the kernel programs and user space, and nothing else.
 *
 * `scripts/wire.py` writes the Rust side of it (`crates/core/src/wire/generated.rs`), where the comments become
 * documentation, and which does not compile where the two differ. All fields are little endian and naturally aligned; a
 * structure never has implicit padding.
 */
#ifndef GPUSCOPE_WIRE_H
#define GPUSCOPE_WIRE_H

#define WIRE_REGS 6            /* registers with arguments: rdi rsi rdx rcx r8 r9 */
#define WIRE_STACK 10          /* qwords at rsp+8 .. rsp+87 */
#define WIRE_VALUES 8          /* single words read through a pointer argument */
#define WIRE_BLOCK 26          /* qwords of one structure behind a pointer argument */
#define WIRE_TEXTS 2           /* C strings behind pointer arguments */
#define WIRE_TEXT 128          /* bytes kept of each, NUL included */
#define WIRE_FACTORS 4         /* factors whose product is the size in bytes of a call */
#define WIRE_FRAMES 16         /* open calls remembered for one thread */
#define WIRE_BUCKETS 128       /* four for each power of two of nanoseconds, from 32 ns to 68 s */
#define WIRE_COMM 16           /* bytes of a thread's name, NUL included */
#define WIRE_WAITS 64          /* library loads that can wait at the same time */
#define WIRE_PLACES 12         /* arguments of a static probe */
#define WIRE_PROBE_SITES 1024  /* static probes whose arguments lie in different places */
#define WIRE_KERNEL_STEPS 6    /* pointers that are followed to an argument in the kernel */
#define WIRE_KERNEL_SITES 1024 /* rows of the kernel whose arguments lie in different places */
#define WIRE_COMMS 4           /* thread names that --comm can select */
#define WIRE_PARTS 9           /* arguments that say what a call does to memory */
#define WIRE_WORK 8            /* arguments that say what a call has to do with work */
#define WIRE_BATCH 256         /* copies of one call that are told of one by one */
#define WIRE_SLOW_NS 100000    /* a submission that took as long may have waited for room, and is told of */
#define WIRE_PER_THREAD 2      /* stream: the default one of a thread, as the driver numbers it */
#define WIRE_SHAPE 7           /* grid x y z, block x y z, bytes of shared memory */
#define WIRE_XID_TEXT 472      /* bytes kept of the message of an Xid, NUL included */
#define WIRE_KERNEL_NAME 4096  /* bytes kept of the name of a kernel, NUL included */
#define WIRE_PIECE 64          /* bytes of one piece of an argument that the driver was given */
#define WIRE_CGROUP 1024       /* bytes of the names of cgroups */
#define WIRE_CGROUP_NAME 256   /* bytes of one, NUL included */
#define WIRE_CGROUP_DEPTH 16   /* of cgroups in each other */
#define WIRE_TESTS 2           /* conditions of one row */

/* How much of a call is captured; each size is a prefix of the next. */
enum wire_size { SIZE_SMALL, SIZE_MEDIUM, SIZE_LARGE };

enum spec_flag {
	SPEC_STREAM = 1,   /* send an event for each call, beside counting it */
	SPEC_RETURN = 2,   /* has a return probe: duration and result are known */
	SPEC_FALLIBLE = 4, /* the result is an error code: 0 or `ok` is success */
	SPEC_MEMORY = 8,   /* tell the memory ring */
	SPEC_SITE = 16,    /* and from where it is called */
	SPEC_OUTER = 32,   /* but not if a call inside this one has done so */
	SPEC_KERNEL =
		64, /* launches a kernel: its totals are kept by kernel, value 1 becomes the kernel's id */
	SPEC_UNLOAD = 128, /* handles of kernels may stand for others afterwards */
};

/* Where a row's function runs. */
enum spec_ground {
	GROUND_KERNEL = 1,   /* in the kernel: its pointers may be the kernel's */
	GROUND_ANY_TASK = 2, /* on behalf of nobody: whichever task is current says nothing */
	GROUND_FOLLOWED =
		4, /* a call that succeeds has followed the pointers that it was given, as CUDA's do */
};

/* What a call does to its thread's stack of contexts; the context is the first part of `memory`. */
enum context_move {
	CONTEXT_STAYS,
	CONTEXT_SET,
	CONTEXT_PUSH,
	CONTEXT_POP,
	CONTEXT_DROP, /* as a pop, if the context is the current one */
};

/* Index of a captured word: 0..5 registers, 6..15 stack, 16..23 values. */
#define WORD_STACK WIRE_REGS                 /* the first on the stack */
#define WORD_VALUES (WIRE_REGS + WIRE_STACK) /* the first of the values */
#define WORD_STREAM \
	(WORD_VALUES + 6) /* where a launch whose shape lies behind a pointer keeps the stream found there */
#define WORD_SITE (WORD_VALUES + WIRE_VALUES - 1) /* where a row asks for the stack of each call */
#define WORD_NONE 255                             /* no word */

/* Part of what a captured word is, or points to. */
struct spec_read {
	__u8 word;  /* the pointer */
	__u8 bytes; /* 1..8 */
	__u16 offset;
};

/* A number among the captured words. */
struct spec_factor {
	__u8 word; /* WORD_NONE: none */
	__u8 bytes;
};

/* What a row has to do with kernels. */
enum launch_role {
	ROLE_NONE,
	ROLE_LAUNCH, /* launches: its totals are kept by kernel */
	ROLE_STUB,   /* launches by a function of the host; the driver's launch, which counts, lies within */
	ROLE_NAME,   /* has given the handle to what `name` is called */
	ROLE_SAME,   /* has given the handle to what handle `name` stands for */
};

/* What of a launch says what runs, and in what shape. */
struct spec_launch {
	struct spec_factor kernel; /* the handle */
	struct spec_factor name;
	__u8 role;          /* enum launch_role */
	__u8 shape_block;   /* points to the numbers of the shape; WORD_NONE: they are words */
	__u8 shape_word;    /* the first of them, which follow each other; WORD_NONE: the call does not say */
	__u8 null_stream;   /* what stream 0 stands for */
	__u16 shape_offset; /* behind `shape_block` */
	__u16 stream_in_block; /* whether it lies behind the numbers there, and 4 bytes; else it is a word */
	struct spec_factor stream; /* word WORD_NONE: always stream 0 */
	__u16 pad;
};

/* What a call is to the stream that it names. */
enum work_step {
	WORK_NONE,
	WORK_TELL,   /* nothing: it is only told of */
	WORK_SUBMIT, /* something is put into it */
	WORK_COPY,   /* the same, and each is told of */
	WORK_BATCH,  /* several copies, each described by elements of arrays; the last part is their number */
};

enum work_flag {
	WORK_ANCHOR = 1,         /* afterwards earlier work may be known to be done */
	WORK_PER_THREAD = 2,     /* stream 0 is the thread's own */
	WORK_BEGINS_CAPTURE = 4, /* from now on work becomes nodes of a graph */
	WORK_ENDS_CAPTURE = 8,
	WORK_EACH = 16, /* tell of each submission */
	WORK_SITE = 32, /* and from where it is called */
	WORK_ENDS_LANE = 64,
	WORK_KERNEL = 128, /* its last part is a kernel, or, where that is 0, the one before */
};

/* `bytes` 0: nothing; `offset` READ_DIRECT: the word itself, else what it points to. */
#define READ_DIRECT 0xffff

/* What a call has to do with a stream. */
struct spec_work {
	__u8 step; /* enum work_step */
	__u8 flags;
	__u8 parts;
	__u8 stride; /* bytes from one element of an array to the next */
	struct spec_read stream;
	struct spec_read part[WIRE_WORK];
};

/* What stands for a captured word where a call is tested or summed up. */
#define WORD_UNKNOWN 254  /* nothing: what it needs is not seen */
#define WORD_RESULT 253   /* what the call returned */
#define WORD_DURATION 252 /* ns */
#define WORD_BYTES 251    /* its size */

/* Signed numbers cross with their highest bit flipped, so that all compare as unsigned ones. */
#define SIGN_BIT (1ull << 63)

/* A number of a call. */
struct spec_operand {
	__u8 word;  /* WORD_NONE: none */
	__u8 bytes; /* 1..8 */
	__u8 is_signed;
	__u8 pad;
};

enum test_kind { TEST_LESS, TEST_GREATER, TEST_EQUAL, TEST_BITS };

/* A condition. */
struct spec_test {
	__u64 value;
	struct spec_operand of;
	__u8 kind;   /* enum test_kind */
	__u8 negate; /* it has to be the other way */
	__u16 pad;
};

enum hook_flag {
	HOOK_AGGREGATE = 1,
	HOOK_SUM = 2,      /* of the operand */
	HOOK_EXTREMES = 4, /* the smallest and the largest */
	HOOK_POWERS = 8,   /* by powers of two of the operand */
	HOOK_SITE = 16,    /* take the stack; word WORD_SITE becomes its id */
	HOOK_TESTS = 32,
	HOOK_WORDS = 64, /* an operand is a captured word */
};

/* What calls are summed up by. */
enum hook_group { GROUP_NONE, GROUP_OPERAND, GROUP_TEXT, GROUP_THREAD, GROUP_COMM, GROUP_SITE };

/* What a user's row computes in the kernel. */
struct spec_hook {
	__u8 flags; /* enum hook_flag */
	__u8 tests;
	__u8 group; /* enum hook_group */
	__u8 pad;
	struct spec_operand of;
	struct spec_operand by;
	__u32 pad2;
	struct spec_test test[WIRE_TESTS]; /* all have to hold */
};

/* The sums of one group of calls. */
struct aggregate_key {
	__u32 tgid;
	__u32 row;
	__u64 group;  /* a number, or that of a text or stack */
	__u32 bucket; /* enum aggregate_bucket */
	__u32 pad;
};

/* 0: the operand is 0, or there is no histogram; 1 + n: it is 2^n or more, and less than 2^(n+1). */
enum aggregate_bucket { BUCKET_BELOW = 65, /* less than 0 */ BUCKET_UNKNOWN /* it could not be read */ };

struct aggregate {
	__u64 count;
	__u64 sum;
	__u64 largest;
	__u64 smallest; /* its complement */
};

/* A text that calls are summed up by. */
struct aggregate_text {
	char text[WIRE_TEXT];
};

struct aggregate_counters {
	__u64 texts; /* numbers given to them */
	__u64 full;  /* calls that found no room */
	__u64 races; /* calls whose operand may be missing among the extremes */
};

/* What to do at one row of the catalogue. */
struct spec {
	__u8 flags;
	__u8 size; /* enum wire_size */
	__u8 stack_words;
	__u8 values;
	__u8 texts;
	__u8 factors;
	__u8 block_word;
	__u8 block_qwords;
	__u16 block_offset;
	__u8 text_word[WIRE_TEXTS];
	struct spec_factor variant[2]; /* words that tell the copy direction */
	struct spec_factor factor[WIRE_FACTORS];
	struct spec_read value[WIRE_VALUES];
	__s32 ok;     /* one more result that is not a failure */
	__u32 ground; /* enum spec_ground */
	__u64 scale;  /* constant factor of the size; 0: the call has no size */
	struct spec_factor part[WIRE_PARTS];
	__u8 parts;
	__u8 context_move; /* enum context_move */
	__u8 keep_open;    /* remember its calls while they are open, even if they are only counted */
	__u8 pad[3];
	__s32 ended; /* another result that is no failure, of calls behind the end of the library */
	struct spec_launch launch;
	struct spec_work work;
	__u32 pad2;
	struct spec_hook hook;
};

enum place_kind { PLACE_VALUE, PLACE_MEMORY };

/* Where an argument of a static probe lies: `offset` plus registers, numbered as in machine code, is its value or
 * the value's address.
 */
struct place {
	__u64 offset;
	__u8 kind; /* enum place_kind */
	__u8 base; /* WORD_NONE: none */
	__u8 index;
	__u8 scale; /* the index is shifted left by this */
	__u8 bytes; /* 1..8 */
	__u8 is_signed;
	__u16 pad;
};

/* One static probe; its attach cookie numbers it from 1. */
struct probe_site {
	__u32 places;
	__u32 pad;
	struct place place[WIRE_PLACES];
};

enum kernel_place_flag {
	KERNEL_SIGNED = 1,
	KERNEL_ADDRESS = 2, /* where the last step leads, not what lies there */
	KERNEL_IN_RECORD =
		4 /* the value's lower half is an offset in the tracepoint's record, where a text lies */
};

/* An argument of a function of the kernel, a field of a tracepoint, or what is reached from there. */
struct kernel_place {
	__u8 base;   /* argument register; of a tracepoint always 0: its record */
	__u8 bytes;  /* 1..8 of the value */
	__u8 steps;  /* pointers followed; 0: the register itself */
	__u8 flags;  /* enum kernel_place_flag */
	__u32 shift; /* of a bit field: the value is shifted right by this */
	__u64 mask;  /* and then masked */
	__u32 offset[WIRE_KERNEL_STEPS];
};

/* Where arguments lie in the kernel, and which calls are meant; the upper half of the attach cookie numbers it from 1. */
struct kernel_site {
	__u32 places;
	__u32 only;       /* place that has to hold the value below; WORD_NONE: any call */
	__u32 only_bytes; /* of a text, with its NUL; 0: a number */
	__u32 pad;
	__u64 only_value;
	char only_text[WIRE_COMM];
	struct kernel_place place[WIRE_PLACES];
};

/* One open call on behalf of nobody: its return address lies there and nowhere else. */
struct kernel_call_key {
	__u64 sp;
	__u64 row;
};

enum event_flag {
	EVENT_NO_RETURN = 1,  /* seen at entry only: no duration, no result */
	EVENT_NO_ARGS = 2,    /* too deeply nested: arguments were not kept */
	EVENT_UNREADABLE = 4, /* at least one pointer could not be read */
	EVENT_HIDDEN = 8      /* not to be shown: it is none of those asked for */
};

/* What could not be read: bit n: value n; and these. */
enum call_unreadable {
	UNREADABLE_TEXT_2 = 32,
	UNREADABLE_TEXT_1 = 64,
	UNREADABLE_BLOCK = 128,
};

/* What every record of a call begins with. */
struct call_header {
	__u64 entered;  /* CLOCK_MONOTONIC ns */
	__u64 duration; /* ns */
	__u64 caller;   /* `entered` of the streamed call that encloses this one, 0: none */
	__u64 result;
	__u32 tgid;
	__u32 tid;
	__u32 row;
	__u8 depth;
	__u8 flags;      /* enum event_flag */
	__u8 size;       /* enum wire_size */
	__u8 unreadable; /* enum call_unreadable */
};

/* One completed call. */
struct call_event {
	struct call_header head;
	__u64 regs[WIRE_REGS];
	__u64 near_values[2];
	/* SIZE_SMALL ends here */
	__u64 stack[WIRE_STACK];
	__u64 far_values[WIRE_VALUES - 2];
	/* SIZE_MEDIUM ends here */
	__u64 block[WIRE_BLOCK];
	char text[WIRE_TEXTS * WIRE_TEXT];
	/* SIZE_LARGE ends here */
};

enum memory_kind { MEMORY_CALL = 1, MEMORY_SITE, MEMORY_KERNEL, WORK_CALL };

/* What one call did to memory. Rides in a ring of its own: a balance must not depend on chatter. */
struct memory_call {
	__u32 kind;
	__u32 row;
	__u64 entered;  /* CLOCK_MONOTONIC ns */
	__u64 returned; /* the same */
	__u64 context;  /* current one of the thread, 0: not known */
	__u64 site;     /* where it was called from, 0: not taken */
	__u64 bytes;    /* its size, where the row has one */
	__u32 tgid;
	__u32 tid;
	__s32 result;
	__u8 unreadable; /* bit n: a word that part n comes from could not be read */
	__u8 pad[3];
	__u64 part[WIRE_PARTS];
};

/* Memory calls of one process that found their ring full. */
struct memory_loss {
	__u64 allocations;
	__u64 bytes; /* of these */
	__u64 others;
};

/* A stream. Default streams belong to a context, or to a thread in one. */
struct lane_key {
	__u64 image; /* of the process */
	__u64 context;
	__u64 stream;
	__u32 tgid;
	__u32 tid;
};

/* What was put into it. */
struct lane {
	__u64 submitted;  /* calls that put something into it */
	__u64 generation; /* of the last one that was told of */
	__u64 since;      /* when that was entered, CLOCK_MONOTONIC ns */
};

/* Of the processes whose numbers end alike: what is shared by mistake costs a record more. */
struct flow {
	__u64 generation; /* calls after which earlier work may be known to be done */
	__u64 captures;   /* that are open */
	__u64 lost;       /* records, so far */
	__u64 open;       /* calls that put something into a stream and have not returned */
};

/* What one call has to do with the work of a device. Only those that succeeded. */
struct work_call {
	__u32 kind;
	__u32 row;
	__u64 entered;        /* CLOCK_MONOTONIC ns */
	__u64 returned;       /* the same */
	__u64 context;        /* current one of the thread, 0: not known */
	__u64 stream;         /* 0: the default one, 2: the thread's own */
	__u64 site;           /* where it was called from, 0: not taken */
	__u64 bytes;          /* its size, where the row has one */
	__u64 submitted;      /* of its stream, this call included */
	__u64 generation;     /* of an anchor: at its entry; else at its return */
	__u64 generation_now; /* at its return */
	__u64 lost;           /* records of the process, so far; changes more often than need be */
	__u64 kernel;         /* that is launched */
	__u64 variant;        /* as in the totals: of a copy, its direction */
	__u32 tgid;
	__u32 tid;
	__u32 unreadable; /* bit n: part n */
	__u32 copies;     /* of a batch: in all; in each of its records */
	__u64 part[WIRE_WORK];
};

/* Work calls of one process that found their ring full. */
struct work_loss {
	__u64 copies;
	__u64 bytes; /* of these */
	__u64 others;
};

/* What stands in place of a kernel's id: why it has none. */
enum kernel_unknown {
	KERNEL_NO_ARGS = 1,     /* the arguments of the call were not kept */
	KERNEL_UNREADABLE,      /* the handle could not be read */
	KERNEL_FOREIGN,         /* what it points to does not look like a kernel of a driver that we know */
	KERNEL_NO_NAME,         /* the name could not be read, or is empty */
	KERNEL_FULL,            /* no room for one more kernel */
	KERNEL_FIRST_ID = 4096, /* ids begin here */
};

/* What the handle of a kernel is. */
enum kernel_tag {
	TAG_FUNCTION = 1, /* a `CUfunction` */
	TAG_KERNEL,       /* a `CUkernel` */
	TAG_STUB,         /* a function of the host that launches it: told to user space, which names it */
	TAG_UNREAD,       /* user space reads where the handle leads, which waits for pages */
};

/* A kernel that is launched for the first time through this handle. The id follows from process image and name. */
struct kernel_event {
	__u32 kind;
	__u32 tgid;
	__u64 id;
	__u64 handle;
	__u32 tag;    /* enum kernel_tag; 0: another handle */
	__u32 length; /* of the name, without NUL; WIRE_KERNEL_NAME - 1: it may be longer */
	char name[WIRE_KERNEL_NAME];
};

/* Most kernels are launched in one shape alone: the first that was seen needs no look into another table. */
enum shape_state { SHAPE_NONE, SHAPE_COMES, SHAPE_SET };

/* A handle of a kernel in one program of one process, and what it stands for. */
struct kernel_key {
	__u64 image;
	__u64 handle;
};

struct known_kernel {
	__u64 name;    /* address, or what lies in its place; 0: to be told again */
	__u64 unloads; /* when it was last looked at */
	__u64 id;
	__u64 launches;    /* in the one shape that is counted here; others have entries of their own */
	__u64 shape_state; /* enum shape_state */
	__u64 stream;      /* the complement of the first; 0: none yet */
	__u64 streams;     /* 2: there were others */
	__u32 tgid;
	__u32 number[WIRE_SHAPE];
};

/* What the driver was asked for by name when it gave out a handle. */
struct named_handle {
	__u64 id;
	__u32 tgid;
	__u32 pad;
};

/* How often a kernel was launched in one shape. */
struct shape_key {
	__u64 kernel;
	__u32 tgid;
	__u32 number[WIRE_SHAPE];
};

/* The counting plane: exact totals for one function in one process. */
struct total_key {
	__u32 tgid; /* 0: processes beyond the table's capacity, together */
	__u32 row;
	__u64 variant; /* 0, 1 + the row's direction words, or the kernel that is launched */
};

/* Their sums. */
struct total {
	__u64 untimed; /* calls seen at entry only; all others are in a bucket */
	__u64 errors;
	__u64 total_ns;
	__u64 max_ns;
	__u64 bytes; /* of a launch: threads */
	__u64 bucket[WIRE_BUCKETS];
};

/* How calls failed. */
struct failure_key {
	__u32 tgid;
	__u32 row;
	__s32 code;
	__u32 pad;
};

/* Per row and CPU. Calls entered and not in a total have not returned to their caller. */
struct row_counter {
	__u64 entered;
	__u64 lost;     /* events that found the ring full */
	__u64 no_frame; /* completed without arguments: nested too deeply, no memory for the thread, unreadable */
	__u64 stepped; /* of the entered ones: at a site whose instruction is single-stepped */
	__u64 nop5;    /* the same: at a nop of five bytes */
	__u64 before; /* calls that returned, and were entered before calls counted; not among the entered ones */
};

/* The attach cookie: the row, from bit 32 on the number of a static probe, and from bit 48 on how the kernel runs the
 * instruction there.
 */
#define COOKIE_STEPPED (1ull << 48)
#define COOKIE_NOP5 (1ull << 49)

/* ---- system calls on the devices of NVIDIA's kernel driver ---- */

enum driver_step { STEP_IOCTL = 1, STEP_OPEN, STEP_CLOSE, STEP_MMAP, STEP_POLL };

/* Whose device it is; the minor number tells which. */
enum driver_family { FAMILY_FRONT = 1, FAMILY_UVM, FAMILY_CAPS };

#define UVM_REQUEST (1u << 31) /* in a key: the number is one of UVM's */
#define ANY_SIZE 0xffffffff    /* in a key: where no other size fits */
#define NO_OFFSET 0xffff
#define DRIVER_SUBJECT (1ull << 32) /* variant: the lower half is the class or method that a call is about */

/* Of the argument of a call to the driver. */
struct piece {
	__u16 offset;
	__u16 length; /* 0: nothing */
};

/* A number of the front end or, with UVM_REQUEST, of UVM. */
struct ioctl_key {
	__u32 nr;
	__u32 size;
};

/* What is copied of an argument of that number and size. */
struct ioctl_plan {
	struct piece before[2]; /* at enter */
	struct piece after[2];  /* at exit */
	__u16 status;           /* offset of the driver's answer, or NO_OFFSET; as are the others */
	__u16 subject;          /* the class or method, which is counted apart */
	__u16 pointer;          /* what lies there is copied by the class */
	__u16 pad;
	__u32 row;
	__u32 pad2;
};

enum driver_seen { SEEN_BEFORE = 1, SEEN_AFTER = 2, SEEN_BEHIND = 4, LAST_CLOSE = 8 };

/* What follows the header of a system call on one of the driver's devices. */
struct driver_call {
	__u64 file;     /* tells open files apart */
	__u64 argument; /* its address; of mmap: bytes */
	__u32 word;     /* the request as passed */
	__u32 nr;       /* of the request, or of that inside of a wrapper; as is the size */
	__u32 bytes;
	__u32 minor;
	__u8 family;  /* enum driver_family */
	__u8 step;    /* enum driver_step */
	__u8 wrapped; /* the request came inside another one */
	__u8 seen;    /* enum driver_seen */
	__u32 pad;
	__u64 behind; /* what lay behind `pointer` */
	__u64 before[2][WIRE_PIECE / 8];
	__u64 after[2][WIRE_PIECE / 8];
};

/* One that has returned; its result is what the system call returned. */
struct driver_event {
	struct call_header head;
	struct driver_call call;
};

/* A function of one process. */
struct share_key {
	__u32 tgid;
	__u32 row;
};

/* Of the time of a function's calls: what system calls on the driver's devices took. */
struct driver_share {
	__u64 calls;
	__u64 ns;
};

enum notice_kind { NOTICE_THREAD = 1, NOTICE_FORK, NOTICE_EXEC, NOTICE_EXIT, NOTICE_LIBRARY };

/* What a thread does that has mapped libraries. */
enum waits {
	WAITS_NOT,     /* it goes on */
	WAITS,         /* it waits until its sequence is acknowledged */
	WAITS_FOR_NONE /* it goes on: all that it maps has been looked at before */
};

#define WAIT_NS (1000ull * 1000 * 1000) /* how long the thread of a notice waits in the kernel at most */
#define WIRE_OPEN 4                     /* open calls that a notice names */

/* A call that has not returned. */
struct open_call {
	__u64 entered; /* CLOCK_MONOTONIC ns; 0: none */
	__u32 row;
	__u32 pad;
};

/* What happens to processes, in its own ring, so that a flood of calls cannot hide it. */
struct notice {
	__u32 kind;
	__u32 tgid;
	__u32 tid;
	__u32 parent;   /* NOTICE_FORK: who forked; NOTICE_EXIT: the signal that ended it, 0: none */
	__u64 at;       /* CLOCK_MONOTONIC ns */
	__u64 sequence; /* NOTICE_LIBRARY: to be stored in its slot of `control.acknowledged` */
	__u64 place;    /* NOTICE_THREAD: the key of its cgroups' path, 0: not known */
	__u32 waits;    /* NOTICE_LIBRARY: enum waits */
	__u32 pad;
	char comm[WIRE_COMM];
	struct open_call
		open[WIRE_OPEN]; /* NOTICE_LIBRARY: calls that the thread is in, the outermost first */
};

/* Where a process runs: for each hierarchy of cgroups that is looked at, the names of a cgroup and of those that it lies
 * in, the innermost first, each with its NUL, and a NUL behind them all.
 */
struct cgroup_path {
	__u32 length; /* 0: it is being written */
	__u32 cut;    /* it is longer */
	char text[WIRE_CGROUP + WIRE_CGROUP_NAME];
};

/* One Xid, from the driver's tracepoint. */
struct xid_event {
	__u64 at; /* CLOCK_MONOTONIC ns */
	__u32 code;
	__u32 pad;
	char device[24]; /* name on the PCI bus; empty: not known */
	char message[WIRE_XID_TEXT];
};

/* Fixed before loading. */
struct options {
	__u64 min_ns;
	__u64 cgroup;
	__u64 ring_soft_limit;   /* bytes in the ring above which the reader is woken */
	__u64 memory_soft_limit; /* the same of the memory ring */
	__u64 work_soft_limit;   /* and of the ring of work */
	__u32 uid;
	__u32 comms;
	__u32 own;                       /* user space's own process, which never waits */
	__u32 driver_row[STEP_POLL + 1]; /* by step; of ioctls: those of the front end that no plan has */
	__u32 uvm_row;                   /* the same of UVM's */
	__u8 only_targets;
	__u8 follow_forks;
	__u8 by_uid;
	__u8 by_cgroup;
	__u8 only_errors;
	__u8 wait_for_attach; /* threads wait whenever they map something */
	__u8 wait_for_new;    /* they wait if that was not looked at before */
	__u8 never;           /* 0, which the compiler does not know */
	__u8 every_frame;     /* calls that are only counted are remembered while they are open, too */
	__u8 fleet; /* threads that call for the first time say where they run, open submissions are counted */
	__u8 driver_counted; /* system calls on the driver's devices are counted, and none is told of */
	__u8 samples;        /* stacks of threads are sampled, see sample.bpf.h */
	char comm[WIRE_COMMS][WIRE_COMM]; /* names, or beginnings of names */
	__u8 comm_length[WIRE_COMMS];     /* bytes compared; NUL included when exact */
};

/* Shared both ways while running. */
struct control {
	__u64 acknowledged[WIRE_WAITS]; /* by sequence: last NOTICE_LIBRARY that user space has acted on */
	__u64 alive;                    /* CLOCK_MONOTONIC ns: user space's last sign of life */
	__u64 sequence;
	__u64 waits_expired;
	__u64 notices_lost;
	__u64 events_lost;
	__u64 totals_overflowed;
	__u64 memory_lost; /* of all processes, also those that `memory_losses` has no room for */
	__u64 work_lost;
	__u64 unloads; /* calls after which handles may stand for other kernels */
	__u64 kernel_totals;
	__u64 kernels_lost;  /* names that found the ring full; they are sent again at a later launch */
	__u64 shapes_lost;   /* launches whose shape found no room */
	__u64 driver_lost;   /* system calls that found their ring full; they are counted */
	__u64 shares_lost;   /* of the time of functions, spells in the driver that found no room */
	__u64 uvm_major;     /* major number of UVM's devices, 0: not known */
	__u64 threads_ended; /* that had called */
	__u64 voluntary;     /* context switches of these, from their first call on */
	__u64 involuntary;
	__u64 known_files; /* what was looked at is known as long as this does not change */
	__u64 desks_missed; /* calls in the kernel, or returns of them, that too many others on their CPU were within */
	__u64 counting; /* whether calls count: one switch for all programs, so that all stop at one moment */
	__u64 samples_lost; /* stacks of threads outside CUDA that found their ring full */
};

#endif
