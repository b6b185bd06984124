/* Makes the library's code writable and writes it as it is in the file; then unloads and loads it, again and again. */
#include "cuda.h"
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef int (*synchronize)(void);

/* One byte that is not the program's own is put back: what is there may be a breakpoint of somebody's. */
static int rewritten(void *function)
{
	char *page = (char *)((uintptr_t)function & ~(uintptr_t)4095), copy[4096];

	if (mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
		return 0;
	memcpy(copy, page, sizeof(copy));
	memcpy(page, copy, sizeof(copy));
	return !mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

int main(int count, char **arguments)
{
	int right = 0;

	for (int i = 0; i < 100; i++) {
		void *library = dlopen(count > 1 ? arguments[1] : "libcuda.so.1", RTLD_NOW);
		synchronize call = library ? (synchronize)dlsym(library, "cuCtxSynchronize") : NULL;
		if (!call)
			return 2;
		right += !call() && rewritten((void *)call) && !call();
		dlclose(library);
	}
	printf("right %d\n", right);
	return right == 100 ? 0 : 1;
}
