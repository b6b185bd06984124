/* What gpuscope shares with the library that CUDA loads into a process: one piece of memory, and a message on a socket.
 *
 * Each process has a piece of its own: what is found there is never believed. `scripts/wire.py` writes the Rust side. All
 * fields are little endian and naturally aligned; a structure never has implicit padding.
 */
#ifndef GPUSCOPE_ACTIVITY_H
#define GPUSCOPE_ACTIVITY_H

#define ACTIVITY_MAGIC 0x6770756163740009 /* of this layout */

#define SHARED_BYTES 16912384
#define SHARED_NAMES 4096   /* `struct activity_name`, by number */
#define SHARED_TEXTS 135168 /* what they name */
#define SHARED_RING 4329472 /* `struct activity_record` */
#define MOST_NAMES 16384
#define MOST_TEXT_BYTES 4194304
#define MOST_NAME_BYTES 4096 /* of one name; what goes on is cut */
#define MOST_RECORDS 131072  /* in the ring */

/* How far the library has got. */
enum activity_state {
	ACTIVITY_NONE,
	ACTIVITY_ABSENT,  /* no CUPTI was found */
	ACTIVITY_REFUSED, /* `step` ended with `error` */
	ACTIVITY_ON,
	ACTIVITY_ENDED, /* everything was handed over */
	ACTIVITY_CUT,   /* handing over took too long */
	ACTIVITY_LEFT,  /* gpuscope went away first */
	ACTIVITY_GIVEN, /* the program asked CUPTI itself, and has got it */
	ACTIVITY_ASKED, /* CUPTI is, and has not answered yet */
};

/* What CUPTI was asked for. */
enum activity_step {
	STEP_NONE,
	STEP_LOAD, /* an entry is missing in the library */
	STEP_SUBSCRIBE,
	STEP_CALLBACKS,
	STEP_KERNELS,
	STEP_COPIES,
	STEP_MEMSETS,
	STEP_THREAD,
	STEP_GRAPHS,
};

/* Whose clock records have. */
enum activity_clock {
	CLOCK_UNKNOWN,
	CLOCK_ASKED,  /* CUPTI asks for CLOCK_MONOTONIC */
	CLOCK_FITTED, /* CUPTI has its own, and what it differs by is measured */
};

#define LIBRARY_BYTES 256

/* Where the piece begins. */
struct activity_head {
	__u64 magic;
	__u32 state;
	__u32 step;
	__u32 error;   /* CUPTI's */
	__u32 version; /* CUPTI_API_VERSION of the library */
	__u32 clock;
	__u32 overheads; /* 1: what CUPTI itself takes is told, too */
	__u32 graphs;    /* 1: graphs are to be told of as a whole, not by node; gpuscope writes it */
	__u32 guarded;   /* 1: the program gets CUPTI as soon as it asks */
	__u64 written;   /* records so far */
	__u64 full;      /* of those for which there was no room */
	__u64 dropped;   /* by CUPTI */
	__u64 invalid;   /* without a time, or with an end before the begin */
	__u64 unnamed;   /* records whose name found no room */
	__u64 other;     /* of kinds that nobody has asked for */
	__u64 untimed;   /* of what CUPTI itself took, without a time or with an end before the begin */
	__u64 window;    /* ns of each period in which activities are recorded; gpuscope writes it */
	__u64 period;    /* 0: they are recorded all the time */
	__u64 windows;   /* that have been opened */
	__u64 unopened;  /* and that CUPTI refused to open */
	__u64 names;
	__u64 text_bytes;
	__u64 flushed; /* when what was done had been handed over last, CLOCK_MONOTONIC ns */
	__u64 began;   /* CLOCK_MONOTONIC ns */
	__u64 copies; /* until when copies were told of, as the program puts some into graphs by hand; 0: all the time */
	__u64 given; /* what was done until then was told of; 0: all was, as long as it was asked for */
	__u8 library[LIBRARY_BYTES]; /* its path */
	__u8 second[LIBRARY_BYTES];  /* path of another one that was mapped later; empty: none was */
};

#define SHARED_TAKEN 2048 /* a word that gpuscope writes: records that it has taken */

struct activity_name {
	__u32 at;
	__u32 bytes;
};

enum activity_kind {
	ACTIVITY_UNKNOWN,
	ACTIVITY_KERNEL,
	ACTIVITY_COPY,
	ACTIVITY_MEMSET,
	ACTIVITY_GRAPH,    /* the launch of one, from its first node to its last */
	ACTIVITY_STREAM,   /* no work: a stream was made, or a default one was met first */
	ACTIVITY_OVERHEAD, /* no work: time that CUPTI or the driver took */
	ACTIVITY_WINDOW,   /* no work: recording began, or has ended for a while */
	ACTIVITY_DEVICE,   /* no work: how many multiprocessors a device has, and what each has room for */
};

enum activity_turn {
	TURN_OPENED,
	TURN_CLOSED,
	TURN_LATE, /* the program had run before, and is recorded from now on */
};

/* What a device has done. */
struct activity_record {
	__u64 begin; /* CLOCK_MONOTONIC ns */
	__u64 end;
	__u64 bytes; /* of a stream: its handle; of overhead: CUPTI's kind; of a device: its multiprocessors; of a window: enum activity_turn */
	__u64 node;  /* of a graph */
	__u32 graph; /* 0: of none */
	__u32 device;
	__u32 context;
	__u32 stream;
	__u32 name;     /* from 1 on; 0: it has none */
	__u32 grid[3];  /* of a device: warps, blocks and registers of a multiprocessor */
	__u32 block[3]; /* of a device: shared memory of a multiprocessor, compute capability */
	__u32 shared_static;
	__u32 shared_dynamic;
	__u32 peer; /* the device that a copy between devices comes from */
	__u16 registers;
	__u8 kind;
	__u8 copy; /* CUPTI's kind of copy */
	__u8 from; /* CUPTI's kinds of memory; of a memset `to` */
	__u8 to;
	__u8 flags; /* CUPTI's */
	__u8 pad;
};

/* What a process says when it calls. */
struct activity_message {
	__u64 magic;
	__u64 pad;
};

#endif
