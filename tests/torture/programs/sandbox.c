/* Filters of system calls, installed while running: what is not on the list kills, or fails with EPERM. */
#include "cuda.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int LISTED[] = { SYS_read,       SYS_write,        SYS_brk,      SYS_mmap,
			      SYS_munmap,     SYS_exit,         SYS_fstat,    SYS_newfstatat,
			      SYS_exit_group, SYS_rt_sigreturn, SYS_getrandom };
enum { COUNT = sizeof(LISTED) / sizeof(*LISTED) };

static int confine(unsigned otherwise)
{
	struct sock_filter code[COUNT + 3];
	struct sock_fprog program = { .len = COUNT + 3, .filter = code };

	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < COUNT; i++)
		code[i + 1] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LISTED[i], COUNT - i, 0);
	code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
	code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int count, char **arguments)
{
	int strict = count > 1 && arguments[1][0] == 'k', done = 0;
	unsigned long long address;

	cuInit(0);
	if (confine(strict ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM))
		return 2;
	for (int i = 0; i < 10000; i++)
		done += !cuMemAlloc_v2(&address, 64) && !cuCtxSynchronize() && !cuMemFree_v2(address);
	printf("done %d\n", done);
	fflush(stdout);
	_exit(done == 10000 ? 0 : 1);
}
