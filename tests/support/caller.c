/* Allocates GPU memory from nested functions, one of them inlined, in two threads. Argument: the simulated libcuda.
 * Says "ready", waits for a line, allocates, says "done" and waits for another line. Tests name its lines.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int (*allocate)(unsigned long long *, size_t);
static int (*set_current)(void *);
static void *context;

static inline __attribute__((always_inline)) int grow(size_t bytes)
{
	unsigned long long pointer;
	return allocate(&pointer, bytes) + 1; /* line 16 */
}

__attribute__((noinline)) int reserve(size_t bytes)
{
	return grow(bytes) + 1; /* line 21 */
}

static void *work(void *bytes)
{
	set_current(context);
	return (void *)(size_t)(reserve((size_t)bytes) + 1); /* line 27 */
}

static void step(const char *word)
{
	puts(word);
	fflush(stdout);
	getchar();
}

int main(int argc, char **argv)
{
	void *cuda = dlopen(argv[1], RTLD_NOW);
	int (*init)(int) = dlsym(cuda, "cuInit");
	int (*create)(void **, int, int) = dlsym(cuda, "cuCtxCreate_v2");
	pthread_t thread;

	allocate = dlsym(cuda, "cuMemAlloc_v2");
	set_current = dlsym(cuda, "cuCtxSetCurrent");
	if (argc != 2 || init(0) || create(&context, 0, 0))
		exit(1);
	step("ready");
	reserve(100); /* line 49 */
	pthread_create(&thread, NULL, work, (void *)200);
	pthread_join(thread, NULL);
	step("done");
	return 0;
}
