/* The program's memory, which must never be touched where that may fail: what the library has followed itself, and the
 * thread's own stack, is read as it is; all else the kernel reads for us.
 */
#ifndef GPUSCOPE_AGENT_MEMORY_H
#define GPUSCOPE_AGENT_MEMORY_H

#include "table.h"
#include "thread.h"

#define LINE_BYTES 512
#define FAULT (-14)
#define INVALID_ARGUMENT (-22)
#define NO_SUCH_WAY (-1)
#define NOT_PERMITTED (-1)
#define NO_SUCH_CALL (-38)
#define LOWEST_ADDRESS 65536
#define HIGHEST_ADDRESS 0x7fffffffffff

struct io_vector {
	void *at;
	__u64 bytes;
};

void *memcpy(void *to, const void *from, size_t bytes)
{
	void *begin = to;

	asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
	return begin;
}

void *memset(void *to, int byte, size_t bytes)
{
	void *begin = to;

	asm volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(byte) : "memory");
	return begin;
}

int memcmp(const void *one, const void *other, size_t bytes)
{
	const unsigned char *a = one, *b = other;

	for (size_t i = 0; i < bytes; i++)
		if (a[i] != b[i])
			return a[i] - b[i];
	return 0;
}

/* ---- what the kernel reads for us ---- */

static long read_from_file(void *to, __u64 bytes, __u64 from)
{
	long fd = SYS3(open, "/proc/self/mem", 02000000 /* O_CLOEXEC */, 0), read;

	if (failed_call(fd))
		return fd;
	read = SYS4(pread64, fd, to, bytes, from);
	SYS1(close, fd);
	return read;
}

static long read_by_kernel(void *to, __u64 bytes, __u64 from)
{
	struct io_vector ours = { to, bytes }, theirs = { (void *)from, bytes };
	long read = SYS6(process_vm_readv, SYS0(getpid), &ours, 1, &theirs, 1, 0);

	/* the profiles of some containers refuse it */
	if (read == NOT_PERMITTED || read == NO_SUCH_CALL)
		read = read_from_file(to, bytes, from);
	return read == (long)bytes ? 0 : FAULT;
}

/* Whether there is memory at `at`: the kernel reads eight bytes there before it refuses what it is asked for. */
INLINE bool kernel_can_read(__u64 at)
{
	return SYS4(rt_sigprocmask, NO_SUCH_WAY, at & ~7ull, 0, 8) == INVALID_ARGUMENT;
}

INLINE __u64 left_of(const __u64 *range, __u64 from)
{
	__u64 within = from - range[0], bytes = range[1] - range[0];

	return within < bytes ? bytes - within : 0;
}

/* How much of the thread's stack is known to be there from an address on. */
INLINE __u64 own_stack_from(__u64 from)
{
	__u64 of_area = left_of(local()->stack, from), of_near = left_of(local()->near, from);

	return of_area > of_near ? of_area : of_near;
}

INLINE bool on_own_stack(__u64 from, __u64 bytes)
{
	return bytes <= own_stack_from(from);
}

/* Whether the bytes are there to be read, as far as anybody can tell. */
INLINE bool may_read(__u64 from, __u64 bytes)
{
	if (!SELDOM(!on_own_stack(from, bytes)))
		return true;
	return local()->trusted && from >= LOWEST_ADDRESS && from <= HIGHEST_ADDRESS - bytes;
}

INLINE void copy_words(void *to, const void *from, __u32 bytes)
{
	__u32 i = 0;

	for (; i + 8 <= bytes; i += 8)
		*(__u64 *)((char *)to + i) = *(const __u64 *)((const char *)from + i);
	for (; i < bytes; i++)
		((char *)to)[i] = ((const char *)from)[i];
}

/* Where a page is remembered, and the one that was there before it. */
INLINE __u64 *pages_like(__u64 page)
{
	return &local()->pages[2 * (page & (PAGES_KNOWN / 2 - 1))];
}

INLINE bool is_known(__u64 page)
{
	const __u64 *pages = pages_like(page);

	return pages[0] == page || pages[1] == page;
}

INLINE void know_page(__u64 page)
{
	__u64 *pages = pages_like(page);

	if (is_known(page))
		return;
	pages[1] = pages[0];
	pages[0] = page;
}

/* Whether the kernel has read there for us, and what lies there stays as long as the call that we are in. */
INLINE bool was_read(__u64 from, __u32 bytes)
{
	return local()->alive && from >= LOWEST_ADDRESS && is_known(from / ARENA_PAGE) &&
	       is_known((from + bytes - 1) / ARENA_PAGE);
}

long read_memory(void *to, __u32 bytes, const void *from)
{
	__u64 at = (__u64)from;

	if (!SELDOM(!may_read(at, bytes)) || was_read(at, bytes)) {
		copy_words(to, from, bytes);
		return 0;
	}
	if (at < LOWEST_ADDRESS || read_by_kernel(to, bytes, at)) {
		memset(to, 0, bytes);
		return FAULT;
	}
	if (local()->alive) {
		know_page(at / ARENA_PAGE);
		know_page((at + bytes - 1) / ARENA_PAGE);
	}
	return 0;
}

/* Bytes up to the end of the page, `bytes` at most: beyond it there may be nothing. */
INLINE __u32 within_page(__u64 from, __u32 bytes)
{
	__u64 left = ARENA_PAGE - (from & (ARENA_PAGE - 1));

	return left < bytes ? (__u32)left : bytes;
}

/* Bytes of the text with its NUL; less than 0: it cannot be read. One that is too long is cut. */
long read_string(char *to, __u32 bytes, const void *from)
{
	__u64 at = (__u64)from;
	__u32 have = 0;

	if (at < LOWEST_ADDRESS || !bytes)
		return FAULT;
	while (have < bytes) {
		__u32 some = within_page(at + have, bytes - have < 64 ? bytes - have : 64);

		if (read_memory(to + have, some, (const void *)(at + have)))
			return FAULT;
		for (__u32 i = 0; i < some; i++)
			if (!to[have + i])
				return have + i + 1;
		have += some;
	}
	to[bytes - 1] = 0;
	return bytes;
}

/* What a handle leads to. It may be any number, also where the call has succeeded: nobody need have followed it. */
long read_by_handle(void *to, __u32 bytes, const void *from)
{
	__u64 trusted = local()->trusted;
	long failed;

	local()->trusted = 0;
	failed = read_memory(to, bytes, from);
	local()->trusted = trusted;
	return failed;
}

long read_string_by_handle(char *to, __u32 bytes, const void *from)
{
	__u64 trusted = local()->trusted;
	long have;

	local()->trusted = 0;
	have = read_string(to, bytes, from);
	local()->trusted = trusted;
	return have;
}

long name_of_thread(char *to)
{
	return SYS6(prctl, 16 /* PR_GET_NAME */, to, 0, 0, 0, 0);
}

#endif
