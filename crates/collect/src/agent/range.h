/* Ranges and marks of a program (NVTX), as the agent hands them over, and those that are open, as they lie in its memory.
 *
 * `scripts/wire.py` writes the Rust side. All fields are little endian and naturally aligned; a structure never has implicit
 * padding.
 */
#ifndef GPUSCOPE_RANGE_H
#define GPUSCOPE_RANGE_H

#define RANGE_NAME 256 /* bytes of a name; what goes on is cut */
#define RANGE_DOMAIN 64

enum range_kind {
	RANGE_PUSHED = 1, /* it is nested in those of its thread */
	RANGE_STARTED,    /* it may end on another thread */
	RANGE_MARK,       /* it is over at once */
	RANGE_THREAD,     /* none: a thread is called so, whose number is `category` */
	RANGE_CATEGORY,   /* none: that category of the domain is called so */
};

enum range_flag {
	RANGE_CUT = 1,    /* the name goes on */
	RANGE_UNREAD = 2, /* the name, or its end, could not be read */
	RANGE_OPEN = 4,   /* it has not ended: until then it was seen */
	RANGE_COLOR = 8,  /* it has one */
};

/* What a program calls a phase of its own (NVTX). The name follows, then that of its domain. */
struct range_record {
	__u64 begin; /* CLOCK_MONOTONIC ns */
	__u64 end;
	__u32 tgid;
	__u32 tid;
	__u32 end_tid; /* who has ended it */
	__u32 domain;  /* its number in the process; 0: the one without a name */
	__u32 category;
	__u32 color; /* ARGB */
	__u16 name_bytes;
	__u16 level; /* how many of the same domain are around it */
	__u8 domain_bytes;
	__u8 kind;  /* enum range_kind */
	__u8 flags; /* enum range_flag */
	__u8 pad;
};

#define MOST_OPEN_RANGES 128 /* of a thread */

/* A range that is open, or its record before it is submitted: the name, and from RANGE_NAME on the domain's. */
struct open_range {
	struct range_record record;
	__u8 text[RANGE_NAME + RANGE_DOMAIN];
};

/* Those that a thread has pushed, the outermost first. */
struct open_ranges {
	__u32 depth;
	__u32 beyond; /* those for which there is no room */
	struct open_range range[MOST_OPEN_RANGES];
};

#define STARTED_BUSY 1

/* One that no thread has on its stack. */
struct started_range {
	__u64 id; /* 0: none; STARTED_BUSY: it is being written or ended */
	__u64 pad;
	struct open_range range;
};

#endif
