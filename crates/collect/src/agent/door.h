/* The door of a program that stands by: a page that the same user's gpuscope may write. */
#ifndef GPUSCOPE_AGENT_DOOR_H
#define GPUSCOPE_AGENT_DOOR_H

#include <sys/stat.h>
#include "path.h"
#include "room.h"

#define CREATE_OWN \
	(2 | 0100 | 0200 | 0400000 | 02000000) /* O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC */
#define DOORS "/gpuscope-doors-"               /* of a user, in /dev/shm or /tmp; the number follows */
#define FOR_OTHERS 077
#define MAP_SHARED_FIXED 0x11
#define BEAT_NS 60000000000ull /* a gpuscope that was not heard of for so long is gone */

GIVEN struct door door;

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

	return SELDOM(beat && now > beat && now - beat > BEAT_NS);
}

#endif
