/* Makes the library's code writable and writes it as it is in the file; then unloads and loads it, again and again.
 * Argument: for how many ms at least.
 */
#include "cuda.h"
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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
	long end = now_ms() + (count > 1 ? atoi(arguments[1]) : 0);
	int wrong = 0;

	for (int i = 0; i < 100 || now_ms() < end; i++) {
		void *library = dlopen("libcuda.so.1", RTLD_NOW);
		synchronize call = library ? (synchronize)dlsym(library, "cuCtxSynchronize") : NULL;
		if (!call)
			return 2;
		wrong += call() || !rewritten((void *)call) || call();
		dlclose(library);
	}
	printf("wrong %d\n", wrong);
	return wrong != 0;
}
