/* Preloaded: counts the ioctls that a program makes on NVIDIA's devices, without any tracer. At its end it writes to
 * $IOCTLS_FILE one line for each kind: family ("f", "u"), number, class or method ("-": none), how often.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KINDS 4096

static struct kind {
	int uvm, has_subject;
	uint32_t nr, subject;
	unsigned long count;
} kinds[KINDS];
static int used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void note(struct kind kind)
{
	pthread_mutex_lock(&lock);
	int i = 0;
	while (i < used && (kinds[i].uvm != kind.uvm || kinds[i].nr != kind.nr || kinds[i].subject != kind.subject ||
			    kinds[i].has_subject != kind.has_subject))
		i++;
	if (i < KINDS) {
		if (i == used)
			kinds[used++] = kind;
		kinds[i].count++;
	}
	pthread_mutex_unlock(&lock);
}

/* RM_CONTROL names its method at 8, RM_ALLOC and its older forms the class at 12. */
static void look(int fd, unsigned long request, const void *argument)
{
	char link[32], device[64] = "";
	struct kind kind = { 0 };

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, device, sizeof(device) - 1) < 0 || strncmp(device, "/dev/nvidia", 11))
		return;
	kind.uvm = !strncmp(device, "/dev/nvidia-uvm", 15);
	kind.nr = kind.uvm ? request : request & 0xff;
	kind.has_subject = !kind.uvm && (kind.nr == 0x27 || kind.nr == 0x28 || kind.nr == 0x2a || kind.nr == 0x2b);
	if (kind.has_subject)
		memcpy(&kind.subject, (const char *)argument + (kind.nr == 0x2a ? 8 : 12), 4);
	note(kind);
}

int ioctl(int fd, unsigned long request, ...)
{
	static int (*real)(int, unsigned long, void *);
	va_list list;

	va_start(list, request);
	void *argument = va_arg(list, void *);
	va_end(list);
	if (!real)
		real = dlsym(RTLD_NEXT, "ioctl");
	look(fd, request, argument);
	return real(fd, request, argument);
}

static __attribute__((destructor)) void write_all(void)
{
	const char *path = getenv("IOCTLS_FILE");
	FILE *file = path ? fopen(path, "w") : NULL;

	if (!file)
		return;
	for (int i = 0; i < used; i++) {
		fprintf(file, "%s %x ", kinds[i].uvm ? "u" : "f", kinds[i].nr);
		if (kinds[i].has_subject)
			fprintf(file, "%x", kinds[i].subject);
		else
			fputc('-', file);
		fprintf(file, " %lu\n", kinds[i].count);
	}
	fclose(file);
}
