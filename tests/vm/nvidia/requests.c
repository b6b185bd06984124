/* Asks the stand-in for the driver: `requests N` opens /dev/nvidiactl, makes N allocations, N control calls and N frees,
 * then N migrations through /dev/nvidia-uvm, and prints how many handles it was given. `requests N M [T]`: after
 * that M processes are in a request that sleeps for T microseconds (half a second), all at once.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct rm_alloc {
	unsigned hRoot, hObjectParent, hObjectNew, hClass;
	unsigned long long pAllocParms, pRightsRequested;
	unsigned paramsSize, flags, status, pad;
};

struct rm_control {
	unsigned hClient, hObject, cmd, flags;
	unsigned long long params;
	unsigned paramsSize, status;
};

struct rm_free {
	unsigned hRoot, hObjectParent, hObjectOld, status;
};

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1, sleepers = argc > 2 ? atoi(argv[2]) : 0, handles = 0,
	    wrong = 0;
	unsigned long sleep = argc > 3 ? strtoul(argv[3], NULL, 10) : 500000;
	int control = open("/dev/nvidiactl", O_RDWR), uvm = open("/dev/nvidia-uvm", O_RDWR);

	if (control < 0 || uvm < 0) {
		perror("open");
		return 1;
	}
	for (int i = 0; i < count; i++) {
		struct rm_alloc alloc = { .hClass = 0x41, .status = 0x55 };
		struct rm_control ask = { .cmd = 0x101, .status = 0x55 };
		struct rm_free release = { .status = 0x55 };

		wrong += ioctl(control, _IOWR('F', 0x2b, struct rm_alloc), &alloc) || alloc.status;
		wrong += ioctl(control, _IOWR('F', 0x2a, struct rm_control), &ask) || ask.status;
		release.hObjectOld = alloc.hObjectNew;
		wrong += ioctl(control, _IOWR('F', 0x29, struct rm_free), &release) || release.status;
		wrong += ioctl(uvm, 37, 0) != 0;
		handles += alloc.hObjectNew != 0;
	}
	for (int i = 0; i < sleepers; i++)
		if (!fork())
			_exit(ioctl(control, _IO('F', 0xff), sleep) != 0);
	for (int i = 0, status; i < sleepers; i++)
		wrong += wait(&status) < 0 || status;
	printf("%d handles, %d wrong\n", handles, wrong);
	return wrong != 0;
}
