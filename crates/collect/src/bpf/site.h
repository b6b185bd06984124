/* Call sites as they cross to user space: the stack that leads to a call, sent once for each stack.
 *
 * `scripts/wire.py` writes the Rust side of it (`crates/collect/src/stack/wire/generated.rs`), as it does of wire.h. All fields are little endian and naturally aligned; a structure never has implicit padding.
 */
#ifndef GPUSCOPE_SITE_H
#define GPUSCOPE_SITE_H

#define SITE_NATIVE 64 /* return addresses of one stack */
#define SITE_PYTHON 48 /* Python frames of one stack */

/* What a call carries in place of a site's id. Ids are larger than all of these. */
enum site_special {
	SITE_NONE = 0,      /* the call has no site */
	SITE_UNSAMPLED = 1, /* beyond the budget of stacks per second */
	SITE_UNKNOWN = 2,   /* the stack could not be kept or sent */
	SITE_FIRST_ID = 16, /* ids begin here */
};

enum site_flag {
	SITE_NATIVE_FULL = 1,    /* there may be more native frames than were kept */
	SITE_NATIVE_CUT = 2,     /* cut where the chain of frame pointers left the code */
	SITE_NATIVE_NONE = 4,    /* the kernel gave no stack: the innermost address alone */
	SITE_PYTHON_FULL = 8,    /* more Python frames than were kept, or a list without end */
	SITE_PYTHON_BROKEN = 16, /* a Python frame could not be read */
	SITE_THREADS_FULL = 32,  /* the thread was not among those of the interpreter that were looked at */
	SITE_AT_ENTRY = 64,      /* taken at entry: the first address may be there twice */
	SITE_AT_PLACE = 128,     /* taken inside a function: the first address is that place */
	SITE_ON_CPU = 256,       /* the thread ran when it was taken */
	SITE_BETWEEN = 512,      /* taken a moment after a call: it stands for no time but a look */
	SITE_WAITED = 1024,      /* the thread was off its CPU while one beside Python was looked at */
};

enum site_python {
	PYTHON_NONE = 0,   /* the process is not known to run Python */
	PYTHON_THREAD = 1, /* it does, and this thread runs no Python code now */
	PYTHON_FRAMES = 2,
};

#define PYTHON_FRAME_ENTRY \
	1 /* in `code`: the native evaluation loop that runs this frame was entered with it */

/* One Python frame. */
struct python_frame {
	__u64 code;        /* address of the code object, and PYTHON_FRAME_ENTRY */
	__u64 instruction; /* its address, or (up to 3.10) its index in the code */
};

/* The stack of one site, innermost first. */
struct site_event {
	__u32 kind; /* MEMORY_SITE */
	__u32 tgid;
	__u32 tid;
	__u16 native_count;
	__u16 python_count;
	__u32 python; /* enum site_python */
	__u32 flags;  /* enum site_flag */
	__u64 id;
	__u64 native[SITE_NATIVE]; /* innermost first: where the call returns to */
	struct python_frame frames[SITE_PYTHON];
};

#define PYTHON_WINDOW 128      /* bytes of a frame that hold all that is read of it */
#define PYTHON_ABSENT 0xffffff /* an offset of something that a version lacks */

enum python_entry {
	PYTHON_ENTRY_EACH = 0, /* each frame has an evaluation loop of its own */
	PYTHON_ENTRY_BYTE = 1, /* a byte of the frame says so */
	PYTHON_ENTRY_SHIM = 2, /* a frame that is no function's lies below it */
};

/* Where the interpreter of a process keeps what is read of it: offsets in bytes. */
struct python {
	__u64 runtime;   /* address of _PyRuntime */
	__u64 code_mask; /* bits of a reference to code that are the address */
	__u32 interpreters_head;
	__u32 interpreter_next;
	__u32 threads_head;
	__u32 thread_next;
	__u32 thread_id;
	__u32 thread_frame;
	__u32 cframe_frame; /* PYTHON_ABSENT: `thread_frame` is the frame itself */
	__u32 frame_bytes;  /* at most PYTHON_WINDOW */
	__u32 frame_previous;
	__u32 frame_code;
	__u32 frame_instruction;
	__u32 instruction_bytes; /* 4 or 8 */
	__u32 frame_owner;       /* PYTHON_ABSENT: every frame is a function's */
	__u32 frame_entry;       /* PYTHON_ENTRY_BYTE */
	__u32 entry;             /* enum python_entry */
	__u32 first_no_function; /* owners from here on are no functions */
};

/* Fixed before loading. */
struct site_options {
	__u32 stacks_per_second;
	__u8 python;
	__u8 pad[3];
};

/* What has become of call sites. */
struct site_counters {
	__u64 second; /* which the next one counts for */
	__u64 asked;  /* in this second */
	__u64 taken;  /* the same */
	__u64 stride; /* one of so many that ask is served */
	__u64 sent;
	__u64 lost;      /* new sites that found the ring full */
	__u64 full;      /* new sites that found the table of known ones full */
	__u64 unsampled; /* calls beyond the budget */
	__u64 no_memory; /* calls of threads that got no memory for a stack */
};

#endif
