/* Which files may hold functions of CUDA. */
#ifndef GPUSCOPE_AGENT_CANDIDATE_H
#define GPUSCOPE_AGENT_CANDIDATE_H

#include "door.h"
#include "modules.h"

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

/* What every program has loaded: it is not worth a look. */
static const char *const OF_C[] = { "libc.so.",       "ld-linux-", "libm.so.",
				    "libpthread.so.", "libdl.so.", "librt.so." };

INLINE bool is_of_c(const char *name)
{
	for (__u32 i = 0; i < sizeof(OF_C) / sizeof(*OF_C); i++)
		if (begins_with(name, OF_C[i]))
			return true;
	return false;
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
	if (is_of_c(name))
		return false;
	if (module_at(bias) && module_at(bias) == module_at((__u64)&door))
		return false; /* the agent itself names it */
	if (!constants_of(path, &at, &bytes) || !module_at(at + bias))
		return false;
	return names_driver((const char *)(at + bias), bytes);
}

#endif
