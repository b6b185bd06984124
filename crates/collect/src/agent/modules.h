/* Where the code of what is loaded lies, and what unwinds it. Written by the thread that looks at the dynamic linker's list,
 * read by all: what is read while it changes is wrong for that moment, which nobody depends on.
 */
#ifndef GPUSCOPE_AGENT_MODULES_H
#define GPUSCOPE_AGENT_MODULES_H

#include <elf.h>
#include "memory.h"

#define MOST_MODULES 4096
#define MOST_SEGMENTS 16

/* From its first byte to behind its last one. */
struct module {
	__u64 from;
	__u64 to;
	__u64 index; /* its .eh_frame_hdr; 0: it has none */
};

static struct module modules[MOST_MODULES];
static __u32 module_count;
/* counts their changes: what was learnt of an address before may not hold any more */
static __u32 modules_changed = 1;

/* Reads the ELF file that is mapped at `base`; false: none is. */
static bool read_module(__u64 base, __u64 bias, struct module *module)
{
	/* the segments lie right behind the head, mostly: one question for both */
	struct {
		Elf64_Ehdr of_file;
		Elf64_Phdr segment[MOST_SEGMENTS];
	} head;
	const Elf64_Phdr *segment = head.segment;
	__u32 count;

	if (read_by_kernel(&head, sizeof(head), base) || memcmp(head.of_file.e_ident, ELFMAG, SELFMAG))
		return false;
	count = head.of_file.e_phnum < MOST_SEGMENTS ? head.of_file.e_phnum : MOST_SEGMENTS;
	if (head.of_file.e_phoff != sizeof(head.of_file) &&
	    read_by_kernel(head.segment, count * sizeof(*segment), base + head.of_file.e_phoff))
		return false;
	*module = (struct module){ ~0ull, 0, 0 };
	for (__u32 i = 0; i < count; i++) {
		__u64 at = segment[i].p_vaddr + bias, end = at + segment[i].p_memsz;

		if (segment[i].p_type == PT_GNU_EH_FRAME)
			module->index = at;
		if (segment[i].p_type != PT_LOAD)
			continue;
		module->from = at < module->from ? at : module->from;
		module->to = end > module->to ? end : module->to;
	}
	return module->from < module->to;
}

static void add_module(const struct module *module)
{
	if (module_count == MOST_MODULES)
		return;
	modules[module_count] = *module;
	__atomic_store_n(&module_count, module_count + 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&modules_changed, 1, __ATOMIC_RELEASE);
}

static void forget_modules(void)
{
	__atomic_store_n(&module_count, 0, __ATOMIC_RELEASE);
	__atomic_fetch_add(&modules_changed, 1, __ATOMIC_RELEASE);
}

/* NULL: nothing that is loaded lies there. */
static const struct module *module_at(__u64 address)
{
	__u32 count = __atomic_load_n(&module_count, __ATOMIC_ACQUIRE);

	for (__u32 i = 0; i < count; i++)
		if (address - modules[i].from < modules[i].to - modules[i].from)
			return &modules[i];
	return NULL;
}

#endif
