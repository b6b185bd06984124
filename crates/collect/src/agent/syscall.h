/* System calls, which leave the program's errno alone: the agent needs no library. */
#ifndef GPUSCOPE_AGENT_SYSCALL_H
#define GPUSCOPE_AGENT_SYSCALL_H

#include <asm/unistd.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define INLINE static inline __attribute__((always_inline))
/* Of a condition: what follows is laid aside, so that the usual way is one piece of code without a jump. */
#define SELDOM(condition) __builtin_expect(!!(condition), 0)

#define NOT_ALLOWED (-1)

/* The program has forbidden itself system calls (confined.h): all of ours fail from then on, and none is made. */
static bool is_quiet;

INLINE long kernel_call(long number, long a, long b, long c, long d, long e, long f)
{
	long result;
	register long r10 asm("r10") = d;
	register long r8 asm("r8") = e;
	register long r9 asm("r9") = f;

	asm volatile("syscall"
		     : "=a"(result)
		     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
		     : "rcx", "r11", "memory");
	return result;
}

INLINE long call6(long number, long a, long b, long c, long d, long e, long f)
{
	return is_quiet ? NOT_ALLOWED : kernel_call(number, a, b, c, d, e, f);
}

#define SYS0(name) call6(__NR_##name, 0, 0, 0, 0, 0, 0)
#define SYS1(name, a) call6(__NR_##name, (long)(a), 0, 0, 0, 0, 0)
#define SYS2(name, a, b) call6(__NR_##name, (long)(a), (long)(b), 0, 0, 0, 0)
#define SYS3(name, a, b, c) call6(__NR_##name, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define SYS4(name, a, b, c, d) call6(__NR_##name, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define SYS6(name, a, b, c, d, e, f) \
	call6(__NR_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* The compiler calls these where it copies structures. */
void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *one, const void *other, size_t bytes);

INLINE bool failed_call(long result)
{
	return (unsigned long)result > -4096ul;
}

#endif
