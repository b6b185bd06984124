/* A library with variables of threads. Compiled with PAUSE_NS, its code takes so long to be linked: its function's address is
 * chosen then.
 */
#include <sys/syscall.h>
#include <time.h>

__thread int of_thread[4];

#ifdef PAUSE_NS
static int chosen(void)
{
	return of_thread[0];
}

/* Nothing may be called yet. */
static int (*choose(void))(void)
{
	struct timespec pause = { .tv_nsec = PAUSE_NS };
	long done;

	__asm__ volatile("syscall"
			 : "=a"(done)
			 : "a"((long)SYS_nanosleep), "D"(&pause), "S"(0L)
			 : "rcx", "r11", "memory");
	return chosen;
}

int pausing(void) __attribute__((ifunc("choose")));
int (*const used)(void) = pausing;
#endif
