/* Looks all the time whether somebody follows it, as programs do that refuse to be debugged, while it loads libraries that
 * nobody has mapped before and calls them. Argument: a file; it begins to load when that is there.
 */
#define _GNU_SOURCE
#include "cuda.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_int done, looked, followed;

static void *look(void *nothing)
{
	char text[4096];

	while (!done) {
		int status = open("/proc/self/status", O_RDONLY);
		ssize_t length = read(status, text, sizeof(text) - 1);

		close(status);
		text[length > 0 ? length : 0] = 0;
		followed += !strstr(text, "TracerPid:\t0\n");
		looked++;
	}
	return nothing;
}

static int load_and_call(void)
{
	char path[] = "/tmp/libcuda.so.1.XXXXXX";
	int copy = mkstemp(path), library, failed;
	int (*init)(unsigned);
	void *loaded;
	Dl_info info;
	struct stat about;

	dladdr((void *)cuInit, &info);
	library = open(info.dli_fname, O_RDONLY);
	fstat(library, &about);
	failed = sendfile(copy, library, NULL, (size_t)about.st_size) != about.st_size;
	close(library);
	close(copy);
	loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unlink(path);
	init = loaded ? (int (*)(unsigned))dlsym(loaded, "cuInit") : NULL;
	return failed || !init || init(0);
}

int main(int count, char **arguments)
{
	int failed = cuInit(0);
	pthread_t thread;

	pthread_create(&thread, NULL, look, NULL);
	while (!looked || (count > 1 && access(arguments[1], F_OK)))
		usleep(1000);
	for (int i = 0; i < 20; i++) {
		failed += load_and_call();
		usleep(100 * 1000);
	}
	done = 1;
	pthread_join(thread, NULL);
	printf("%s, %d failed\n", followed ? "followed" : "not followed", failed);
	return failed != 0;
}
