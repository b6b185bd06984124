/* CLOCK_MONOTONIC, as the kernel's page in every process gives it. */
#ifndef GPUSCOPE_AGENT_CLOCK_H
#define GPUSCOPE_AGENT_CLOCK_H

#include <elf.h>
#include "thread.h"

struct time_of {
	__s64 seconds;
	__s64 ns;
};

typedef int (*clock_function)(int clock, struct time_of *time);
static clock_function clock_of_kernel;
/* by how much the clock of the program's time namespace is ahead of the kernel's own, which is that of all records */
static __s64 clock_ahead;

static __u64 read_clock(void)
{
	struct time_of time = { 0 };

	if (SELDOM(!clock_of_kernel) || SELDOM(clock_of_kernel(1 /* CLOCK_MONOTONIC */, &time)))
		SYS2(clock_gettime, 1, &time);
	return (__u64)(time.seconds * 1000000000 + time.ns - clock_ahead);
}

__u64 now_ns(void)
{
	__u64 now = read_clock();

	local()->now = now;
	return now;
}

INLINE bool is_text(const char *one, const char *other)
{
	while (*one && *one == *other)
		one++, other++;
	return *one == *other;
}

/* The address of a function that the kernel's page exports; NULL: it does not. */
static void *exported(const char *page, const char *wanted)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)page;
	const Elf64_Phdr *segment = (const Elf64_Phdr *)(page + head->e_phoff);
	const Elf64_Dyn *dynamic = NULL;
	const Elf64_Sym *symbols = NULL;
	const char *names = NULL, *base = page;
	const __u32 *hash = NULL;

	for (int i = 0; i < head->e_phnum; i++) {
		if (segment[i].p_type == PT_LOAD && !segment[i].p_offset)
			base = page - segment[i].p_vaddr;
		if (segment[i].p_type == PT_DYNAMIC)
			dynamic = (const Elf64_Dyn *)(page + segment[i].p_offset);
	}
	for (; dynamic && dynamic->d_tag; dynamic++) {
		if (dynamic->d_tag == DT_SYMTAB)
			symbols = (const Elf64_Sym *)(base + dynamic->d_un.d_ptr);
		if (dynamic->d_tag == DT_STRTAB)
			names = base + dynamic->d_un.d_ptr;
		if (dynamic->d_tag == DT_HASH)
			hash = (const __u32 *)(base + dynamic->d_un.d_ptr);
	}
	for (__u32 i = 0; symbols && names && hash && i < hash[1]; i++)
		if (symbols[i].st_shndx && is_text(names + symbols[i].st_name, wanted))
			return (void *)(base + symbols[i].st_value);
	return NULL;
}

#endif
