/* The beginning: whether the program that has loaded the agent is one of gpuscope's, and what the agent must know of it. */
#ifndef GPUSCOPE_AGENT_PROGRAM_H
#define GPUSCOPE_AGENT_PROGRAM_H

#include "membership.h"
#include "places.h"

/* whether this process may be traced at all */
static bool has_begun;

#define NAME "GPUSCOPE_AGENT="

/* Where gpuscope listens, from the environment that the program was started with, which lies on its stack. */
static bool read_address(const char *const *environment)
{
	const char *path = NULL;

	for (; *environment && !path; environment++)
		if (begins_with(*environment, NAME))
			path = *environment + sizeof(NAME) - 1;
	if (!path)
		return false;
	append_path(address.path, path);
	address.family = AF_UNIX_;
	if (begins_with(path, STANDBY))
		append_path(folder, path + sizeof(STANDBY) - 1);
	return address.path[0] && !address.path[LONGEST_PATH - 1];
}

/* What the kernel has told the program, behind its environment: where its clock is, and the program's headers. */
static void read_auxiliaries(const char *const *environment)
{
	const __u64 *pair;

	while (*environment)
		environment++;
	for (pair = (const __u64 *)(environment + 1); *pair; pair += 2) {
		if (*pair == 33 /* AT_SYSINFO_EHDR */)
			clock_of_kernel =
				(clock_function)exported((const char *)pair[1], "__vdso_clock_gettime");
		if (*pair == 3 /* AT_PHDR */)
			program_headers = pair[1];
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
		if (calls[i].target + work.bias == _r_debug.notification)
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

/* The dynamic linker of glibc gives constructors what it gives `main`, as it lies on the stack. */
__attribute__((constructor)) static void begin_program(int count, const char *const *words,
						       const char *const *environment)
{
	(void)count, (void)words;
	if (!&_r_debug || !is_preloaded() || !read_address(environment) || !make_membership())
		return;
	bind();
	read_auxiliaries(environment);
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
