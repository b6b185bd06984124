/* The files that the process has loaded, as its dynamic linker lists them, and what is done when there are new ones. */
#ifndef GPUSCOPE_AGENT_LOADED_H
#define GPUSCOPE_AGENT_LOADED_H

#include <sys/stat.h>
#include "join.h"
#include "modules.h"
#include "standby.h"

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

/* False: it is no file, as the kernel's page, or it is gone. */
static bool name_file(const struct loaded *loaded, struct found_file *found)
{
	const char *path = loaded->name && loaded->name[0] ? loaded->name : path_of_program();
	struct arena_file *file = &found->file;
	struct stat status;
	bool has_folder = false;

	for (const char *at = path; *at; at++)
		has_folder |= *at == '/';
	if (!has_folder || SYS2(stat, path, &status))
		return false;
	file->device = status.st_dev;
	file->inode = status.st_ino;
	file->changed = (__u64)status.st_ctim.tv_sec * 1000000000 + (__u64)status.st_ctim.tv_nsec;
	found->path = path;
	found->bias = loaded->bias;
	found->address = loaded->dynamic;
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

static void note_open_calls(struct message *message);
static bool is_member(void);

/* Has gpuscope look at files that nobody has looked at, and waits for it. */
static void wait_for(const struct found_file *found, __u32 count)
{
	struct message message = {
		.magic = ARENA_MAGIC, .kind = MESSAGE_LIBRARIES, .files = count, .at = read_clock()
	};

	message.tid = (__u32)SYS0(gettid);
	for (__u32 i = 0; i < count; i++) {
		message.file[i] = found[i].file;
		message.address[i] = found[i].address;
	}
	note_open_calls(&message);
	ask(&message, NULL, ((struct run_head *)run)->patience);
}

static void patch_found(char *plans, const struct found_file *found, __u32 count, bool on)
{
	for (__u32 i = 0; i < count; i++) {
		const struct arena_planned *plan = plan_of(plans, &found[i].file);

		if (plan)
			patch_file(plans, plan, &found[i].file, found[i].bias, on);
	}
}

/* Patches what nobody traces yet, so that it can be switched on. */
static void stand_by_for(const struct found_file *found, __u32 count)
{
	const char *paths[MESSAGE_FILES];
	char *plans;

	if (door.tgid != (__u32)SYS0(getpid))
		make_door();
	for (__u32 i = 0; i < count; i++)
		paths[i] = found[i].path;
	plans = plans_for(paths, count);
	if (!plans) {
		count_patched(0, count);
		return;
	}
	patch_found(plans, found, count, false);
	SYS2(munmap, plans, RUN_BYTES);
}

static void take_up(const struct found_file *found, __u32 count, bool traced)
{
	if (!count)
		return;
	if (!traced) {
		stand_by_for(found, count);
		return;
	}
	wait_for(found, count);
	patch_found(run, found, count, true);
}

/* Whether nothing is to be asked about a file: it was patched, or nobody would want it. */
static bool is_settled(const struct found_file *found, bool traced)
{
	const struct arena_planned *plan;

	if (!traced)
		return !may_hold_functions(found->path, found->bias);
	plan = plan_of(run, &found->file);
	if (plan)
		patch_file(run, plan, &found->file, found->bias, true);
	return plan;
}

/* What was patched and is not loaded any more will not be called. */
static void forget_patched(void)
{
	__u32 kept = 0;

	for (__u32 i = 0; i < patched_count; i++)
		for (const struct loaded *loaded = _r_debug.first; loaded; loaded = loaded->next)
			if (loaded->bias == patched_files[i].bias) {
				patched_files[kept++] = patched_files[i];
				break;
			}
	patched_count = kept;
}

/* Patches what is new in the list. */
static void look_at_list(bool traced)
{
	const struct loaded *loaded = has_shrunk || !last ? _r_debug.first : last->next;
	struct found_file found[MESSAGE_FILES];
	__u32 count = 0;

	look++;
	if (has_shrunk) {
		forget_modules();
		forget_patched();
	}
	for (; loaded; loaded = loaded->next) {
		last = loaded;
		note_module(loaded);
		if (is_seen(loaded) || !name_file(loaded, &found[count]) ||
		    is_settled(&found[count], traced) || ++count < MESSAGE_FILES)
			continue;
		take_up(found, count, traced);
		count = 0;
	}
	take_up(found, count, traced);
	if (has_shrunk)
		forget_others();
	has_shrunk = false;
}

/* The dynamic linker has changed what is loaded, or is about to. */
void agent_libraries(void)
{
	bool traced;

	if (_r_debug.state == LIST_SHRINKS)
		has_shrunk = true;
	if (_r_debug.state != LIST_CONSISTENT)
		return;
	traced = is_member();
	if ((!traced && !stands_by()) || __atomic_exchange_n(&looking, 1, __ATOMIC_ACQUIRE))
		return;
	look_at_list(traced);
	__atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
}

/* Has calls of what is loaded recorded, by a gpuscope that has looked at it already, mostly. What it has not looked at waits
 * for that here. The dynamic linker's list may be changing: what was patched is known without it.
 */
static void switch_on_loaded(void)
{
	struct found_file found[MESSAGE_FILES];
	__u32 count = 0;

	for (__u32 i = 0; i < patched_count && count < MESSAGE_FILES; i++)
		if (!plan_of(run, &patched_files[i].file))
			found[count++] = (struct found_file){ .file = patched_files[i].file };
	if (count)
		wait_for(found, count);
	for (__u32 i = 0; i < patched_count; i++) {
		const struct arena_planned *plan = plan_of(run, &patched_files[i].file);

		if (plan)
			switch_on(run, plan, &patched_files[i]);
	}
}

#endif
