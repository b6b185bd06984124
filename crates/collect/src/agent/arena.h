/* What gpuscope and the agent inside of a process share: two pieces of memory, and messages on a socket.
 *
 * The run is written by gpuscope and read by all agents. Each process has a piece of its own that its agent writes: what is
 * found there is never believed. `scripts/wire.py` writes the Rust side, as it does of wire.h. All fields are little endian
 * and naturally aligned; a structure never has implicit padding.
 */
#ifndef GPUSCOPE_ARENA_H
#define GPUSCOPE_ARENA_H

#define ARENA_MAGIC 0x61656e6100010005 /* of this layout */
#define ARENA_PAGE 4096

/* ---- the run ---- */

#define RUN_BYTES 1073741824
#define RUN_OPTIONS 4096      /* `struct options` */
#define RUN_SITE_OPTIONS 8192 /* `struct site_options` */
#define RUN_SPECS 65536       /* one for each row */
#define ARENA_ROWS 16384      /* at most */
#define RUN_FILES 16777216    /* a table: files that were looked at */
#define RUN_FILES_MOST 16384
#define RUN_FILES_SLOTS 65536
#define RUN_PROBE_SITES 33554432 /* `struct probe_site` by number */
#define RUN_PLANS 67108864       /* what to do to each of them */

struct run_head {
	__u64 magic;
	__u32 rows;
	__u32 patience; /* how long a thread waits until a library was looked at, s */
	__u32 ranges;   /* 1: somebody wants those of the program */
	__u32 pad;
};

/* A file, as stat() names it. */
struct arena_file {
	__u64 device;
	__u64 inode;
	__u64 changed; /* its ctime, ns */
};

/* Where its plan lies in the run; 0 bytes: nothing is done to it. */
struct arena_planned {
	__u64 at;
	__u64 patches; /* of functions */
	__u64 calls;   /* of the dynamic linker's notification, behind them */
};

#define PATCH_ORIGINAL 32 /* bytes that a patch covers */
#define PATCH_UNDO 16
#define PATCH_COPY 96
#define PATCH_FIXUPS 6

/* A field of 32 bits within moved code that is relative to where it is put. */
struct patch_fixup {
	__u64 target; /* address in the file */
	__u32 at;     /* where it lies in the copy */
	__u32 next;   /* where its instruction ends there */
};

/* How the entry of a function is patched. Addresses are the file's. */
struct arena_patch {
	__u64 entry;
	__u64 cookie; /* as a probe's */
	__u32 returns;
	__u8 kept;    /* bytes of the first instruction, which stay; the jump follows them */
	__u8 covered; /* bytes that are moved */
	__u8 undo_bytes;
	__u8 copy_bytes;
	__u32 fixups;
	__u32 stack_words; /* of its arguments */
	__u64 semaphore;   /* of a static probe; 0: it has none */
	__u32 place;       /* 1: it lies within a function, which goes on there */
	__u32 pad;
	__u8 original[PATCH_ORIGINAL];
	__u8 undo[PATCH_UNDO];
	__u8 copy[PATCH_COPY];
	struct patch_fixup fixup[PATCH_FIXUPS];
};

/* A call of the dynamic linker's notification, which becomes one of ours. */
struct arena_call {
	__u64 at;     /* of its opcode, e8 */
	__u64 target; /* that it has */
};

/* ---- plans that are kept ---- */

#define KEPT_MAGIC 0x7470656b00010001 /* of this layout */
#define KEPT_BYTES 16777216           /* of the file, at most */

/* Of digests, which are FNV-1a. */
#define KEPT_BASIS 0xcbf29ce484222325
#define KEPT_PRIME 0x100000001b3

/* The file of plans of earlier loads, in the folder of programs that stand by: files and their patches follow, one behind the
 * other.
 */
struct kept_head {
	__u64 magic;
	__u64 build;  /* of the agents that read it */
	__u64 bytes;  /* of what follows */
	__u64 digest; /* of its words */
};

/* A file, as nothing else on this machine is: who loads it has these patches done, and asks nobody. */
struct kept_file {
	struct arena_file file;
	__u64 bytes;
	__u64 written; /* its mtime, ns */
	__u64 name;    /* a digest of its last name's bytes: what a file holds goes by it, too */
	__u64 patches; /* behind it */
};

/* ---- a process ---- */

#define PROCESS_CONTROL 4096 /* `struct control`, a page, as the next two */
#define PROCESS_SITE_COUNTERS 8192
#define PROCESS_AGGREGATE_COUNTERS 12288
#define PROCESS_STARTED 65536  /* `struct started_range`, MOST_STARTED of them */
#define PROCESS_TABLES 1048576 /* where tables begin */
#define MOST_STARTED 2048

/* Tables. Those of a thread are changed by nobody else. */
enum arena_table {
	OWN_ROWS, /* an array, by row */
	OWN_TOTALS,
	OWN_FAILURES,
	PROCESS_FLOWS, /* an array */
	PROCESS_SHAPES,
	PROCESS_KERNELS,
	PROCESS_NAMED_HANDLES,
	PROCESS_AGGREGATES,
	PROCESS_AGGREGATE_TEXTS,
	PROCESS_LANES,
	PROCESS_WORK_LOSSES,
	PROCESS_MEMORY_LOSSES,
	PROCESS_KNOWN_SITES,
	PROCESS_PYTHONS,
	ARENA_TABLES,
};

/* Where a table lies and how large it is: in its thread's block, or in the process. */
struct table_shape {
	__u64 offset;
	__u32 most;  /* entries */
	__u32 slots; /* of its index, a power of two, more than entries; 0: an array */
	__u32 key_bytes;
	__u32 value_bytes;
};

/* A table begins with this. Then its index follows: for each slot 0, or the number of an entry from 1 on, or SLOT_GONE; then
 * its entries. */
struct table {
	__u32 owner; /* TID of the thread that changes it; 0: none */
	__u32 used;  /* entries that are or were in use */
	__u32 free;  /* the number of one that is not any more, from 1 on; 0: none */
	__u32 stuck; /* an owner that was waited for in vain: nobody waits as long for it again; 0: none */
};

#define SLOT_GONE 0xffffffff

/* An entry begins with this. Then its key and its value follow, each filled up to 8 bytes. */
struct table_entry {
	__u32 in_use;
	__u32 next; /* free one */
};

#define PROCESS_BLOCKS 268435456 /* where the blocks of threads begin */
#define BLOCK_BYTES 16056320
#define MOST_BLOCKS 12288
#define PROCESS_LARGE_RINGS \
	197568495616               /* behind the blocks: the rings of the first threads, RING_MOST for each */
#define PROCESS_BYTES 214748364800 /* of which hardly any are in use */

/* What agent and gpuscope know of each other. */
struct process_head {
	__u64 magic;
	__u64 image;       /* tells one program in one process from any other */
	__u64 mapped;      /* 1: the agent has this, and all else that it needs */
	__u32 tgid;        /* as gpuscope names it */
	__u32 blocks;      /* of threads, that were claimed */
	__u64 unseen;      /* calls that found nowhere to be counted */
	__u64 nested;      /* calls of a signal's handler that has interrupted a hook of another handler's */
	__u64 patched;     /* functions */
	__u64 refused;     /* functions whose bytes are not those of the file, or that lie beyond reach */
	__u64 waited;      /* how long threads have waited for room in their rings, ns */
	__u64 waits;       /* how often */
	__u64 rounds;      /* how often gpuscope has read all rings: that it is there */
	__u64 gave_up;     /* `rounds` + 1 when a thread last waited in vain; 0: never */
	__s64 clock_ahead; /* of the program's time namespace, ns */
	__u64 ranges_lost; /* ranges and marks that found no room */
	__u64 large_ring;  /* bytes of the ring of each of the first LARGE_RINGS threads, a power of two */
	struct table_shape shape[ARENA_TABLES];
};

#define BLOCK_LOCAL 4096          /* what nobody else reads */
#define BLOCK_THREAD 5120         /* `struct thread`, of which gpuscope reads the open calls */
#define BLOCK_ROWS 131072         /* OWN_ROWS */
#define BLOCK_FAILURES 917504     /* OWN_FAILURES */
#define BLOCK_TOTALS 983040       /* OWN_TOTALS */
#define BLOCK_RANGES 15728640     /* `struct open_ranges` */
#define BLOCK_RING 15794176       /* of threads behind LARGE_RINGS */
#define BLOCK_PLAIN 15925248      /* calls of which nothing but their number is wanted, a word for each row */
#define RING_BYTES 4194304        /* of the first threads', unless something else is asked for */
#define RING_MOST 1073741824      /* that may be asked for */
#define RING_BYTES_OF_MANY 131072 /* of those behind LARGE_RINGS */
#define LARGE_RINGS 16

/* What a thread writes to; the block of one that has ended goes to another one of the same process. */
struct block {
	__u32 owner; /* TID; 0: none */
	__u32 ring_bytes;
	__u64 busy; /* when the hook was entered that the thread is in, CLOCK_MONOTONIC ns, and no record that it submits has a
		       smaller stamp; 1: not known yet; 0: it is in none */
	__u64 pointer; /* the thread's own, as pthread_self() gives it; 0: this is its other block */
	__u64 ring_at; /* where its ring lies, from here on */
	__u64 pad[4];
	__u64 head; /* bytes submitted */
	__u64 base; /* of these, what was submitted when the ring last began anew, at its first byte */
	__u64 pad2[6];
	__u64 tail; /* bytes taken by gpuscope */
	__u64 pad3[7];
};

enum arena_stream { RING_CALLS, RING_MEMORY, RING_WORK, RING_NOTICES, RING_RANGES, RING_FILLER = 255 };

/* A record in a ring; its bytes follow, and the next one at a multiple of 16. */
struct ring_record {
	__u32 bytes;
	__u32 stream; /* enum arena_stream; RING_FILLER: nothing, the ring begins anew behind it */
	__u64 stamp;  /* CLOCK_MONOTONIC ns */
};

/* ---- a program that stands by ---- */

/* By it the same user's gpuscope reaches a program that carries the agent and is not traced: a file of one page. */
struct door {
	__u64 magic;
	__u32 tgid;     /* as the process names itself */
	__u32 wake;     /* enum door_wake, written by gpuscope; the agent takes it away with its next call */
	__u64 beat;     /* when gpuscope was there last, CLOCK_MONOTONIC ns; 0: it does not say */
	__u64 joined;   /* how often the agent has followed; an odd number: calls are recorded now */
	__u64 patched;  /* functions */
	__u64 refused;  /* functions that cannot be, and files that could not be looked at */
	__u64 build;    /* of which sources the agent is: only their gpuscope reads its memory */
	char path[112]; /* where gpuscope listens */
};

enum door_wake {
	DOOR_JOIN = 1, /* calls are to be recorded */
	DOOR_LEAVE,    /* and no longer */
};

/* ---- messages ---- */

enum message_kind {
	MESSAGE_PROGRAM = 1, /* a program begins: gpuscope answers with both pieces of memory */
	MESSAGE_CHILD,       /* a forked child makes its first call: the same */
	MESSAGE_LIBRARIES,   /* files were mapped that are not known: the thread waits for the answer */
	MESSAGE_LATE, /* a program that has stood by follows: gpuscope answers with both pieces of memory */
};

#define MESSAGE_FILES 64
#define MESSAGE_OPEN 4

/* From the agent. */
struct message {
	__u64 magic;
	__u32 kind; /* enum message_kind */
	__u32 tid;
	__u32 parent;
	__u32 files; /* of those that follow */
	__u64 at;    /* CLOCK_MONOTONIC ns */
	struct arena_file file[MESSAGE_FILES];
	__u64 address[MESSAGE_FILES];     /* where each is mapped */
	__u64 open_entered[MESSAGE_OPEN]; /* calls that the thread is in, the outermost first; 0: none */
	__u64 open_row[MESSAGE_OPEN];
};

/* From gpuscope. */
struct answer {
	__u64 magic;
	__u64 accepted; /* 0: the agent stays dormant */
};

#endif
