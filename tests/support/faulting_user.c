/* Launches, and between launches touches fresh memory, where nearly all of the time passes in the kernel, and computes.
 * usage: faulting_user LIBCUDA ROUNDS */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define BYTES (256ul << 20)

typedef int launch_kernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			  void *, void **, void **);

static void *function(void *library, const char *name)
{
	void *found = library ? dlsym(library, name) : NULL;

	if (!found) {
		puts(name);
		exit(1);
	}
	return found;
}

__attribute__((noinline)) static void touch(volatile char *memory)
{
	for (unsigned long at = 0; at < BYTES; at += 4096)
		memory[at] = 1;
}

__attribute__((noinline)) static unsigned compute(unsigned value)
{
	for (int i = 0; i < 10000000; i++)
		value = value * 1664525 + 1013904223;
	return value;
}

int main(int argc, char **argv)
{
	void *cuda = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*init)(int) = function(cuda, "cuInit");
	int (*retain)(void **, int) = function(cuda, "cuDevicePrimaryCtxRetain");
	int (*set)(void *) = function(cuda, "cuCtxSetCurrent");
	int (*load)(void **, const void *) = function(cuda, "cuModuleLoadData");
	int (*find)(void **, void *, const char *) = function(cuda, "cuModuleGetFunction");
	int (*wait)(void) = function(cuda, "cuCtxSynchronize");
	launch_kernel *launch = function(cuda, "cuLaunchKernel");
	static const char code[64] = "\x7f"
				     "ELF";
	void *context, *module, *kernel;
	unsigned value = 1;

	if (init(0) || retain(&context, 0) || set(context) || load(&module, code) ||
	    find(&kernel, module, "step"))
		return 1;
	for (int round = 0; round < atoi(argv[2]); round++) {
		char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED || madvise(memory, BYTES, MADV_HUGEPAGE))
			return 1;
		touch(memory);
		value = compute(value);
		munmap(memory, BYTES);
		if (launch(kernel, 4, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL) || wait())
			return 1;
	}
	printf("%u\n", value);
	return 0;
}
