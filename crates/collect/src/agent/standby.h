/* A program that carries the agent without being traced: its functions are patched as they are loaded, and switched off. It
 * has a door, a page that the same user's gpuscope may write: by it, calls are switched on and off again in a program that
 * runs, as often as wanted. What to patch is planned by gpuscope's own program, in a process of its own, while the library is
 * loaded.
 */
#ifndef GPUSCOPE_AGENT_STANDBY_H
#define GPUSCOPE_AGENT_STANDBY_H

#include <sys/stat.h>
#include "join.h"
#include "patch.h"

/* Behind this a folder follows, in place of a socket: where the agent, the linkers' plan and gpuscope lie. */
#define STANDBY "standby:"
#define PLANNER "/gpuscope"
#define LINKERS "/linkers"

#define CREATE_OWN \
	(2 | 0100 | 0200 | 0400000 | 02000000) /* O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC */
#define DOORS "/gpuscope-doors-"               /* of a user, in /dev/shm or /tmp; the number follows */
#define FOR_OTHERS 077
#define MAP_SHARED_FIXED 0x11
#define MOST_LINKER_CALLS 256
#define PLAN_FD 3
#define PLANNING_MS 10000
#define WALL 0x40000000
#define CLONE_LIKE_VFORK 0x4100
#define SIGCHLD_ 17
#define ALL_SIGNALS_BYTES 8
#define BEAT_NS 60000000000ull /* a gpuscope that was not heard of for so long is gone */

static char folder[LONGEST_PATH + 8];

GIVEN struct door door;

INLINE bool stands_by(void)
{
	return folder[0];
}

/* ---- texts ---- */

INLINE char *append_text(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	*to = 0;
	return to;
}

/* A path, as far as there is room. */
INLINE void append_path(char *to, const char *from)
{
	for (__u32 i = 0; i < LONGEST_PATH && from[i]; i++) {
		to[i] = from[i];
		to[i + 1] = 0;
	}
}

INLINE bool begins_with(const char *text, const char *first)
{
	while (*first && *text == *first)
		text++, first++;
	return !*first;
}

static char *append_number(char *to, __u32 number)
{
	char digits[12];
	__u32 count = 0;

	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		*to++ = digits[--count];
	*to = 0;
	return to;
}

/* ---- the door ---- */

static bool is_ours_alone(const char *path)
{
	struct stat status;

	return !SYS2(lstat, path, &status) && (status.st_mode & S_IFMT) == S_IFDIR &&
	       status.st_uid == (__u32)SYS0(geteuid) && !(status.st_mode & FOR_OTHERS);
}

/* A file of one page in a folder that only this user may look at; what is full or read-only is passed over. */
static long door_file(const char *place)
{
	char path[64], *end = append_text(path, place);
	long fd;

	end = append_number(append_text(end, DOORS), (__u32)SYS0(geteuid));
	SYS2(mkdir, path, 0700);
	if (!is_ours_alone(path))
		return -1;
	append_number(append_text(end, "/"), (__u32)SYS0(getpid));
	SYS1(unlink, path); /* of a process that had our number */
	fd = SYS3(open, path, CREATE_OWN, 0600);
	if (failed_call(fd))
		return fd;
	/* a page that is not there would kill the program when it is looked at */
	if (failed_call(SYS4(fallocate, fd, 0, 0, ARENA_PAGE))) {
		SYS1(unlink, path);
		SYS1(close, fd);
		return -1;
	}
	return fd;
}

/* Makes the door of this process, in place of its parent's. */
static void make_door(void)
{
	long fd = door_file("/dev/shm");

	if (failed_call(fd))
		fd = door_file("/tmp");
	if (failed_call(fd)) {
		SYS6(mmap, &door, ARENA_PAGE, PROT_RW, MAP_PRIVATE_ANON | MAP_FIXED_, -1, 0);
		return;
	}
	if (!failed_call(SYS6(mmap, &door, ARENA_PAGE, PROT_RW, MAP_SHARED_FIXED, fd, 0))) {
		door.tgid = (__u32)SYS0(getpid);
		door.build = AGENT_BUILD;
		__atomic_store_n(&door.magic, ARENA_MAGIC, __ATOMIC_RELEASE);
	}
	SYS1(close, fd);
}

/* Whether gpuscope has ended without a word. */
INLINE bool is_left(__u64 now)
{
	__u64 beat = door.beat;

	return beat && now > beat && now - beat > BEAT_NS;
}

/* ---- what may hold functions of CUDA ---- */

static const char DRIVER[] = "libcuda.so";

INLINE bool begins_with_driver(const char *at)
{
	for (__u32 i = 0; i < sizeof(DRIVER) - 1; i++)
		if (at[i] != DRIVER[i])
			return false;
	return true;
}

/* Whether the name of the driver's library is among these bytes. In a constructor, or in a call of the dynamic linker's,
 * vector registers are nobody's.
 */
__attribute__((target("sse2"))) static bool names_driver(const char *at, __u64 bytes)
{
	typedef char sixteen __attribute__((vector_size(16), aligned(1)));
	const sixteen first = DRIVER[0] - (sixteen){ 0 }, fourth = DRIVER[3] - (sixteen){ 0 };
	__u64 i = 0;

	for (; i + 16 + sizeof(DRIVER) <= bytes; i += 16) {
		sixteen hits =
			(*(const sixteen *)(at + i) == first) & (*(const sixteen *)(at + i + 3) == fourth);
		int mask = __builtin_ia32_pmovmskb128(hits);

		for (; mask; mask &= mask - 1)
			if (begins_with_driver(at + i + __builtin_ctz((unsigned)mask)))
				return true;
	}
	for (; i + sizeof(DRIVER) <= bytes; i++)
		if (begins_with_driver(at + i))
			return true;
	return false;
}

/* The constant data of a file, where it is mapped. */
static bool constants_of(const char *path, __u64 *at, __u64 *bytes)
{
	long fd = SYS3(open, path, 02000000, 0);
	char names[4096] = { 0 };
	Elf64_Shdr section[64];
	Elf64_Ehdr head;
	bool found = false;
	long read;

	if (failed_call(fd))
		return false;
	read = SYS4(pread64, fd, &head, sizeof(head), 0);
	if (read == sizeof(head) && !memcmp(head.e_ident, ELFMAG, SELFMAG) && head.e_shnum <= 64 &&
	    head.e_shstrndx < head.e_shnum &&
	    SYS4(pread64, fd, section, head.e_shnum * sizeof(*section), head.e_shoff) ==
		    (long)(head.e_shnum * sizeof(*section)) &&
	    !failed_call(SYS4(pread64, fd, names, sizeof(names) - 16, section[head.e_shstrndx].sh_offset)))
		for (__u32 i = 0; i < head.e_shnum && !found; i++) {
			found = section[i].sh_name < sizeof(names) - 16 &&
				!memcmp(names + section[i].sh_name, ".rodata", 8);
			*at = section[i].sh_addr;
			*bytes = section[i].sh_size;
		}
	SYS1(close, fd);
	return found;
}

/* Whether functions of CUDA may lie in a file that is mapped: it is the driver's library, or names it. */
static bool may_hold_functions(const char *path, __u64 bias)
{
	__u64 at, bytes;
	const char *name = path;

	for (const char *next = path; *next; next++)
		name = *next == '/' ? next + 1 : name;
	if (begins_with_driver(name))
		return true;
	if (module_at(bias) && module_at(bias) == module_at((__u64)&door))
		return false; /* the agent itself names it */
	if (!constants_of(path, &at, &bytes) || !module_at(at + bias))
		return false;
	return names_driver((const char *)(at + bias), bytes);
}

/* ---- the planner ---- */

#define MOST_WORDS (5 + MESSAGE_FILES)

struct pause {
	__s64 seconds;
	__s64 nanos;
};

/* Whether a child has ended as it should, in time. */
static bool ends_well(long child)
{
	struct pause pause = { 0, 1000000 };
	int status = -1;

	for (__u32 waited = 0;; waited++) {
		long ended = SYS4(wait4, child, &status, 1 /* WNOHANG */, 0);

		if (ended == child)
			return !status;
		if (failed_call(ended) && ended != INTERRUPTED)
			return false;
		if (waited == PLANNING_MS)
			SYS2(kill, child, 9);
		SYS2(nanosleep, &pause, 0);
	}
}

static void become(const char *program, const char *const *words, long file)
{
	static const char *const nothing[] = { NULL };
	long nowhere;

	if (file == PLAN_FD)
		SYS3(fcntl, file, 2 /* F_SETFD */, 0);
	else
		SYS3(dup3, file, PLAN_FD, 0);
	/* what it has to say is not the program's output */
	nowhere = SYS3(open, "/dev/null", 2, 0);
	for (long stream = 0; stream <= 2; stream++)
		if (stream != nowhere)
			SYS3(dup3, nowhere, stream, 0);
	SYS3(execve, program, words, nothing);
	SYS1(exit_group, 127);
}

/* Runs `words`, with `file` as a descriptor of its own; whether that ends as it should. The program must not meet a child that
 * it does not know: who execs has a parent that is told of its end, so there is one in between, who does not and is not.
 */
static __noinline bool run_program(const char *program, const char *const *words, long file)
{
	__u64 all = ~0ull, before = 0;
	volatile bool well = false;
	long between;

	/* a handler of the program's must not run in a child, which shares our memory */
	SYS4(rt_sigprocmask, 2, &all, &before, ALL_SIGNALS_BYTES);
	between = SYS6(clone, CLONE_LIKE_VFORK, 0, 0, 0, 0, 0);
	if (!between) {
		long child = SYS6(clone, CLONE_LIKE_VFORK | SIGCHLD_, 0, 0, 0, 0, 0);

		if (!child)
			become(program, words, file);
		well = !failed_call(child) && ends_well(child);
		SYS1(exit_group, 0);
	}
	SYS4(rt_sigprocmask, 2, &before, 0, ALL_SIGNALS_BYTES);
	if (!failed_call(between))
		SYS4(wait4, between, 0, WALL, 0);
	return well;
}

/* Has gpuscope plan what to do to files; where its plans are, NULL: nowhere. */
static char *plans_for(const char *const *paths, __u32 count)
{
	const char *words[MOST_WORDS] = { "gpuscope", "preload", "--plan=3", "--" };
	char planner[LONGEST_PATH + sizeof(PLANNER)];
	long file = SYS2(memfd_create, "gpuscope", 1 /* CLOEXEC */), at = -1;

	append_text(append_text(planner, folder), PLANNER);
	for (__u32 i = 0; i < count; i++)
		words[4 + i] = paths[i];
	words[4 + count] = NULL;
	if (failed_call(file))
		return NULL;
	if (!failed_call(SYS2(ftruncate, file, RUN_BYTES)) && run_program(planner, words, file))
		at = SYS6(mmap, 0, RUN_BYTES, 1, MAP_SHARED_LAZY, file, 0);
	SYS1(close, file);
	return failed_call(at) ? NULL : (char *)at;
}

#endif
