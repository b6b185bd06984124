/* NVTX: what a program calls its own phases. At its first annotation NVTX loads the library that NVTX_INJECTION64_PATH names,
 * which is this one and loaded already, and asks it for the functions to call. Their prototypes, numbers and structures are
 * those of nvtx3's headers.
 */
#ifndef GPUSCOPE_AGENT_NVTX_H
#define GPUSCOPE_AGENT_NVTX_H

#include "annotation.h"

static void mark_ex(const void *attributes)
{
	mark(domains, ATTRIBUTES, attributes);
}
static void mark_a(const char *message)
{
	mark(domains, MESSAGE_ASCII, message);
}
static void mark_w(const void *message)
{
	mark(domains, MESSAGE_WIDE, message);
}
static __u64 start_ex(const void *attributes)
{
	return start(domains, ATTRIBUTES, attributes);
}
static __u64 start_a(const char *message)
{
	return start(domains, MESSAGE_ASCII, message);
}
static __u64 start_w(const void *message)
{
	return start(domains, MESSAGE_WIDE, message);
}
static int push_ex(const void *attributes)
{
	return push(domains, ATTRIBUTES, attributes);
}
static int push_a(const char *message)
{
	return push(domains, MESSAGE_ASCII, message);
}
static int push_w(const void *message)
{
	return push(domains, MESSAGE_WIDE, message);
}
static int pop_default(void)
{
	return pop(domains);
}
static void mark_of(const struct domain *domain, const void *attributes)
{
	mark(domain, ATTRIBUTES, attributes);
}
static __u64 start_of(const struct domain *domain, const void *attributes)
{
	return start(domain, ATTRIBUTES, attributes);
}
static void stop_of(const struct domain *domain, __u64 id)
{
	stop(id);
}
static int push_of(const struct domain *domain, const void *attributes)
{
	return push(domain, ATTRIBUTES, attributes);
}
static const void *register_a(const void *domain, const char *text)
{
	return register_text(text, false);
}
static const void *register_w(const void *domain, const void *text)
{
	return register_text(text, true);
}
static void *create_a(const char *name)
{
	return create_domain(name, false);
}
static void *create_w(const void *name)
{
	return create_domain(name, true);
}

static void name_category_a(__u32 number, const char *name)
{
	call_so(domains, RANGE_CATEGORY, number, MESSAGE_ASCII, name);
}
static void name_category_w(__u32 number, const void *name)
{
	call_so(domains, RANGE_CATEGORY, number, MESSAGE_WIDE, name);
}
static void name_thread_a(__u32 number, const char *name)
{
	call_so(domains, RANGE_THREAD, number, MESSAGE_ASCII, name);
}
static void name_thread_w(__u32 number, const void *name)
{
	call_so(domains, RANGE_THREAD, number, MESSAGE_WIDE, name);
}
static void name_category_of_a(const struct domain *domain, __u32 number, const char *name)
{
	call_so(domain, RANGE_CATEGORY, number, MESSAGE_ASCII, name);
}
static void name_category_of_w(const struct domain *domain, __u32 number, const void *name)
{
	call_so(domain, RANGE_CATEGORY, number, MESSAGE_WIDE, name);
}

/* By NvtxCallbackIdCore and NvtxCallbackIdCore2. What is missing NVTX does not call. */
static const void *const of_core[] = {
	NULL,    mark_ex, mark_a, mark_w,      start_ex,        start_a,         start_w,       stop,
	push_ex, push_a,  push_w, pop_default, name_category_a, name_category_w, name_thread_a, name_thread_w,
};
static const void *const of_core2[] = {
	NULL,
	mark_of,
	start_of,
	stop_of,
	push_of,
	pop,
	NULL,
	NULL,
	name_category_of_a,
	name_category_of_w,
	register_a,
	register_w,
	create_a,
	create_w,
};

#define CALLBACKS 1
#define MODULE_CORE 1
#define MODULE_CORE2 5

struct callbacks {
	__u64 bytes;
	int (*functions_of)(int module, const void ****table, unsigned *size);
};

static void subscribe(const struct callbacks *callbacks, int module, const void *const *functions,
		      __u32 count)
{
	const void ***table = NULL;
	unsigned size = 0;

	if (!callbacks->functions_of(module, &table, &size) || !table)
		return;
	for (__u32 i = 0; i < count && i < size; i++)
		if (functions[i] && table[i])
			*table[i] = functions[i];
}

/* 0: NVTX goes on as without a tool. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void *(*table)(__u32 id))
{
	const struct callbacks *callbacks = has_begun && table ? table(CALLBACKS) : NULL;

	if (!callbacks || callbacks->bytes < sizeof(*callbacks))
		return 0;
	subscribe(callbacks, MODULE_CORE, of_core, sizeof(of_core) / sizeof(*of_core));
	subscribe(callbacks, MODULE_CORE2, of_core2, sizeof(of_core2) / sizeof(*of_core2));
	return 1;
}

#endif
