/* Holds an event that follows a task: the kernel's scheduler, which it patches for the first of them and when none is left, stays
 * patched until this ends.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	struct perf_event_attr clock = { .type = PERF_TYPE_SOFTWARE,
					 .size = sizeof(clock),
					 .config = PERF_COUNT_SW_TASK_CLOCK,
					 .disabled = 1 };

	if (syscall(SYS_perf_event_open, &clock, 0, -1, -1, 0) < 0) {
		perror("perf_event_open");
		return 1;
	}
	pause();
	return 0;
}
