/* Programs that forbid themselves system calls, on pain of death perhaps: once one installs a filter, no system call is made in
 * its name any more. What needs one stays unknown then.
 */
#ifndef GPUSCOPE_AGENT_CONFINED_H
#define GPUSCOPE_AGENT_CONFINED_H

#include "syscall.h"

#define SET_SECCOMP 22
#define SET_NO_NEW_PRIVS 38

/* The C library's own, where there is one. */
extern int *__errno_location(void) __attribute__((weak, visibility("default")));

/* Whether the memory that we share with our parent is not ours: a child of `vfork` is about to become another program. */
static bool is_borrowed(void);

/* In place of the C library's function, by which filters are installed, or prepared: nobody without rights may install one who
 * might get new privileges.
 */
__attribute__((visibility("default"))) int prctl(int option, unsigned long a, unsigned long b,
						 unsigned long c, unsigned long d)
{
	bool confines = option == SET_SECCOMP || option == SET_NO_NEW_PRIVS, was_quiet = is_quiet;
	long result;

	if (confines && !is_borrowed())
		is_quiet = true;
	result = kernel_call(__NR_prctl, option, (long)a, (long)b, (long)c, (long)d, 0);
	if (!failed_call(result))
		return (int)result;
	if (confines)
		is_quiet = was_quiet;
	if (__errno_location)
		*__errno_location() = (int)-result;
	return -1;
}

#endif
