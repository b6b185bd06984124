/* The files that the process has loaded, as its dynamic linker lists them, and which of them were met before. */
#ifndef GPUSCOPE_AGENT_LISTED_H
#define GPUSCOPE_AGENT_LISTED_H

#include <sys/stat.h>
#include "modules.h"
#include "path.h"
#include "table.h"

struct loaded {
	__u64 bias;
	const char *name;
	__u64 dynamic;
	struct loaded *next;
	struct loaded *previous;
};

struct linker_list {
	int version;
	int pad;
	struct loaded *first;
	__u64 notification;
	int state;
	int pad2;
	__u64 base;
};

enum linker_state { LIST_CONSISTENT, LIST_GROWS, LIST_SHRINKS };

/* The dynamic linker's own. */
extern struct linker_list _r_debug __attribute__((weak, visibility("default")));

#define MOST_LOADED 4096

struct seen {
	const struct loaded *loaded;
	__u64 bias;
	__u64 dynamic;
	__u64 listed; /* in which look at the list it was met last */
};

static struct seen seen[MOST_LOADED];
static __u32 seen_count;
static __u64 look;
static __u32 looking; /* the dynamic linker's lock keeps others out, mostly */
static bool has_shrunk;
static const struct loaded *last;

struct found_file {
	struct arena_file file;
	__u64 bytes;
	__u64 written; /* its mtime, ns */
	const char *path;
	__u64 bias;
	__u64 address;
};

static const struct table_shape FILES = {
	.offset = RUN_FILES,
	.most = RUN_FILES_MOST,
	.slots = RUN_FILES_SLOTS,
	.key_bytes = sizeof(struct arena_file),
	.value_bytes = sizeof(struct arena_planned),
};

/* What is planned for a file; NULL: nobody has looked at it. */
static const struct arena_planned *plan_of(char *plans, const struct arena_file *file)
{
	struct table_entry *entry;
	__u32 slot;

	entry = search((struct table *)(plans + RUN_FILES), &FILES, file, sizeof(*file),
		       sizeof(struct arena_planned), &slot);
	return entry ? value_of(entry, sizeof(*file)) : NULL;
}

/* The program itself, by a name that another process understands. */
static const char *path_of_program(void)
{
	static char path[32];

	append_text(append_number(append_text(path, "/proc/"), (__u32)SYS0(getpid)), "/exe");
	return path;
}

/* False: it is no file, as the kernel's page. */
static bool name_file(const struct loaded *loaded, struct found_file *found)
{
	found->path = loaded->name && loaded->name[0] ? loaded->name : path_of_program();
	found->bias = loaded->bias;
	found->address = loaded->dynamic;
	for (const char *at = found->path; *at; at++)
		if (*at == '/')
			return true;
	return false;
}

INLINE __u64 nanos_of(const struct timespec *time)
{
	return (__u64)time->tv_sec * 1000000000 + (__u64)time->tv_nsec;
}

/* False: the file is gone. */
static bool identify_file(struct found_file *found)
{
	struct arena_file *file = &found->file;
	struct stat status;

	if (SYS2(stat, found->path, &status))
		return false;
	file->device = status.st_dev;
	file->inode = status.st_ino;
	file->changed = nanos_of(&status.st_ctim);
	found->bytes = (__u64)status.st_size;
	found->written = nanos_of(&status.st_mtim);
	return true;
}

/* Where the program's own headers lie, which need not be at its bias. */
static __u64 program_headers;

static void note_module(const struct loaded *loaded)
{
	bool is_program = loaded == _r_debug.first;
	__u64 base = is_program ? program_headers & ~(ARENA_PAGE - 1ull) : loaded->bias;
	struct module module;

	if (base && read_module(base, loaded->bias, &module))
		add_module(&module);
}

/* Whether it was met before. */
static bool is_seen(const struct loaded *loaded)
{
	for (__u32 i = 0; i < seen_count; i++)
		if (seen[i].loaded == loaded && seen[i].bias == loaded->bias &&
		    seen[i].dynamic == loaded->dynamic) {
			seen[i].listed = look;
			return true;
		}
	if (seen_count < MOST_LOADED)
		seen[seen_count++] = (struct seen){ loaded, loaded->bias, loaded->dynamic, look };
	return false;
}

/* What is not listed any more may come again, at the same place. */
static void forget_others(void)
{
	__u32 kept = 0;

	for (__u32 i = 0; i < seen_count; i++)
		if (seen[i].listed == look)
			seen[kept++] = seen[i];
	seen_count = kept;
}

#endif
