/* tls_loader CUDA NUMBER LIBRARY…: loads NUMBER libraries, starts CUDA, loads the others, and says how many it has loaded. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int start(const char *cuda)
{
	void *library = dlopen(cuda, RTLD_NOW);
	int (*start)(unsigned) = library ? (int (*)(unsigned))dlsym(library, "cuInit") : NULL;

	return start ? start(0) : 1;
}

int main(int argc, char **argv)
{
	int before = 3 + atoi(argv[2]), loaded = 0;

	for (int i = 3; i < argc; i++) {
		if (i == before && start(argv[1]))
			return 1;
		loaded += dlopen(argv[i], RTLD_NOW) != NULL;
	}
	printf("%d libraries loaded\n", loaded);
	return 0;
}
