/* Domains and registered texts of NVTX, which a program keeps by the handles that it is given; a handle may be anything. They
 * are made whether anybody traces or not.
 */
#ifndef GPUSCOPE_AGENT_DOMAIN_H
#define GPUSCOPE_AGENT_DOMAIN_H

#include "text.h"

#define MOST_DOMAINS 1024
#define TEXTS_BYTES (4 << 20)

/* What stands for a domain: programs keep its address. The first one is the domain of all that names none. */
struct domain {
	__u32 bytes;
	__u32 is_named; /* its name is all there */
	__u8 name[RANGE_DOMAIN];
};

/* What stands for a text that was registered; of the text as much as there is. */
struct registered {
	__u32 bytes;
	__u32 flags;
	__u8 text[RANGE_NAME];
};

#define REGISTERED_HEAD offsetof(struct registered, text)

/* They are the process's own, and outlive any run that it is traced in. */
static struct domain domains[MOST_DOMAINS];
static __u32 domain_count = 1;
static char texts[TEXTS_BYTES] __attribute__((aligned(8)));
static __u64 texts_used;

static __u32 number_of(const struct domain *domain)
{
	__u64 apart = (__u64)domain - (__u64)domains;

	return apart < sizeof(domains) && !(apart % sizeof(*domain)) ? (__u32)(apart / sizeof(*domain)) : 0;
}

static struct copied copy_registered(__u8 *to, __u64 handle)
{
	__u64 apart = handle - (__u64)texts;
	const struct registered *known = (const struct registered *)handle;

	if (apart >= TEXTS_BYTES || apart % 8 || known->bytes > RANGE_NAME ||
	    known->bytes > TEXTS_BYTES - apart - REGISTERED_HEAD)
		return (struct copied){ 0, RANGE_UNREAD };
	copy_words(to, known->text, known->bytes);
	return (struct copied){ known->bytes, (__u8)known->flags };
}

static struct copied copy_given(__u8 *to, __u32 most, bool wide, const void *from)
{
	return wide ? copy_wide(NULL, to, most, (__u64)from) : copy_text(NULL, to, most, (__u64)from);
}

static struct domain *domain_named(const struct domain *wanted)
{
	for (__u32 i = 1; i < MOST_DOMAINS && i < domain_count; i++)
		if (__atomic_load_n(&domains[i].is_named, __ATOMIC_ACQUIRE) &&
		    domains[i].bytes == wanted->bytes &&
		    !memcmp(domains[i].name, wanted->name, wanted->bytes))
			return &domains[i];
	return NULL;
}

/* The same name is the same domain, unless two threads make it at one moment: nobody waits for another. Those for which there is
 * no room are the last one together.
 */
static struct domain *create_domain(const void *name, bool wide)
{
	static const struct domain others = { .bytes = 15, .name = "(other domains)" };
	struct domain made = { 0 }, *domain;
	__u32 number;

	made.bytes = copy_given(made.name, RANGE_DOMAIN, wide, name).bytes;
	domain = domain_named(&made);
	if (domain)
		return domain;
	number = __sync_fetch_and_add(&domain_count, 1);
	if (number >= MOST_DOMAINS - 1) {
		__sync_fetch_and_sub(&domain_count, 1);
		number = MOST_DOMAINS - 1;
		made = others;
	}
	domain = &domains[number];
	domain->bytes = made.bytes;
	memcpy(domain->name, made.name, sizeof(made.name));
	__atomic_store_n(&domain->is_named, 1, __ATOMIC_RELEASE);
	return domain;
}

/* NULL: there is no room for it. */
static const struct registered *register_text(const void *text, bool wide)
{
	struct registered made = { 0 };
	struct copied copied = copy_given(made.text, RANGE_NAME, wide, text);
	__u64 bytes = (REGISTERED_HEAD + copied.bytes + 7) & ~7ull, at;

	made.bytes = copied.bytes;
	made.flags = copied.flags;
	at = __sync_fetch_and_add(&texts_used, bytes);
	if (at > TEXTS_BYTES - sizeof(made)) {
		__sync_fetch_and_sub(&texts_used, bytes);
		return NULL;
	}
	memcpy(texts + at, &made, REGISTERED_HEAD + copied.bytes);
	return (const struct registered *)(texts + at);
}

#endif
