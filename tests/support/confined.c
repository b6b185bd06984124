/* Runs a command as containers do: without privileges to gain, and with a filter that refuses what their profiles refuse. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int REFUSED[] = { SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_bpf, SYS_perf_event_open,
                               SYS_userfaultfd, SYS_mount, SYS_umount2, SYS_unshare, SYS_setns, SYS_keyctl, SYS_kcmp };
enum { COUNT = sizeof(REFUSED) / sizeof(*REFUSED) };

int main(int count, char **arguments) {
    struct sock_filter code[COUNT + 3];
    struct sock_fprog program = {COUNT + 3, code};

    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < COUNT; i++)
        code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)REFUSED[i], COUNT - i, 0);
    code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    if (count < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 2;
    execvp(arguments[1], arguments + 1);
    return 127;
}
