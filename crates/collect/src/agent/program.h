/* The beginning: whether the program that has loaded the agent is one of gpuscope's, and what the agent must know of it. */
#ifndef GPUSCOPE_AGENT_PROGRAM_H
#define GPUSCOPE_AGENT_PROGRAM_H

#include "membership.h"
#include "places.h"

/* whether this process may be traced at all */
static bool has_begun;

#define NAME "GPUSCOPE_AGENT="

/* Where gpuscope listens, from the environment that the program was started with. */
static bool read_address(void)
{
	long fd = SYS3(open, "/proc/self/environ", 02000000, 0), read;
	__u32 matched = 0, length = 0;
	bool skips = false, takes = false;
	char text[LINE_BYTES];

	if (failed_call(fd))
		return false;
	while ((read = SYS3(read, fd, text, sizeof(text))) > 0) {
		for (long i = 0; i < read; i++) {
			if (takes) {
				if (!text[i] || length >= LONGEST_PATH)
					goto done;
				address.path[length++] = text[i];
			} else if (!text[i]) {
				matched = 0;
				skips = false;
			} else if (!skips && text[i] == NAME[matched]) {
				takes = !NAME[++matched];
			} else {
				skips = true;
			}
		}
	}
done:
	SYS1(close, fd);
	address.family = AF_UNIX_;
	if (begins_with(address.path, STANDBY))
		append_path(folder, address.path + sizeof(STANDBY) - 1);
	return length && length < LONGEST_PATH;
}

/* What the kernel has told the program: where its clock is, and the program's headers. */
static void read_auxiliaries(void)
{
	__u64 pairs[64];
	long fd = SYS3(open, "/proc/self/auxv", 02000000, 0), bytes;

	if (failed_call(fd))
		return;
	bytes = SYS3(read, fd, pairs, sizeof(pairs));
	SYS1(close, fd);
	for (long i = 0; i + 1 < bytes / 8 && pairs[i]; i += 2) {
		if (pairs[i] == 33 /* AT_SYSINFO_EHDR */)
			clock_of_kernel =
				(clock_function)exported((const char *)pairs[i + 1], "__vdso_clock_gettime");
		if (pairs[i] == 3 /* AT_PHDR */)
			program_headers = pairs[i + 1];
	}
}

static bool make_membership(void)
{
	long page = SYS6(mmap, &membership, ARENA_PAGE, PROT_RW, MAP_PRIVATE_ANON | MAP_FIXED_, -1, 0);

	return !failed_call(page) && !SYS3(madvise, page, ARENA_PAGE, MADV_WIPE_ON_FORK);
}

/* Has the dynamic linker's notification lead to us, where its calls are among those that gpuscope has found in linkers. */
static void redirect_linker(void)
{
	static struct arena_call calls[MOST_LINKER_CALLS];
	struct work work = { .call = calls, .bias = _r_debug.base };
	struct arena_file none = { 0 };
	char path[LONGEST_PATH + sizeof(LINKERS)];
	long fd, bytes;

	append_text(append_text(path, folder), LINKERS);
	fd = SYS3(open, path, 02000000, 0);
	if (failed_call(fd))
		return;
	bytes = SYS3(read, fd, calls, sizeof(calls));
	SYS1(close, fd);
	for (long i = 0; !failed_call(bytes) && i < bytes / (long)sizeof(*calls); i++)
		if (is_call_of(&calls[i], work.bias, _r_debug.notification))
			calls[work.calls++] = calls[i];
	if (work.calls)
		patch(&work, &none);
}

extern const char _DYNAMIC[] __attribute__((visibility("hidden")));

/* Whether the dynamic linker has loaded us before the program's own libraries: who loads us later, as NVTX does where
 * LD_PRELOAD was taken away, runs already, and its functions must not be changed under it.
 */
static bool is_preloaded(void)
{
	const struct loaded *loaded = _r_debug.first;

	for (; loaded && (__u64)_DYNAMIC != loaded->dynamic; loaded = loaded->next)
		for (const char *at = loaded->name; at && *at; at++)
			if (begins_with(at, "/libc.so."))
				return false;
	return true;
}

__attribute__((constructor)) static void begin_program(void)
{
	if (!&_r_debug || !is_preloaded() || !read_address() || !make_membership())
		return;
	bind();
	read_auxiliaries();
	if (stands_by()) {
		set_epoch(0, false);
		redirect_linker();
	} else if (join(MESSAGE_PROGRAM)) {
		set_epoch(0, true);
	} else {
		return;
	}
	has_begun = true;
	agent_libraries();
}

#endif
