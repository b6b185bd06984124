/* Eight threads allocate GPU memory at the same time, each from a function of its own. Argument: the simulated libcuda.
 * Steps as caller.c does.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define TIMES 3000

static int (*allocate)(unsigned long long *, size_t);
static int (*set_current)(void *);
static void *context;

#define FUNCTION(name)                                   \
	__attribute__((noinline)) void name(void)        \
	{                                                \
		unsigned long long pointer;              \
		for (int i = 0; i < TIMES; i++)          \
			if (allocate(&pointer, 1))       \
				abort();                 \
	}
FUNCTION(f0)
FUNCTION(f1)
FUNCTION(f2)
FUNCTION(f3)
FUNCTION(f4)
FUNCTION(f5)
FUNCTION(f6)
FUNCTION(f7)

static void (*const functions[8])(void) = { f0, f1, f2, f3, f4, f5, f6, f7 };

static void *work(void *function)
{
	set_current(context);
	((void (*)(void))function)();
	return NULL;
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
	pthread_t threads[8];

	allocate = dlsym(cuda, "cuMemAlloc_v2");
	set_current = dlsym(cuda, "cuCtxSetCurrent");
	if (argc != 2 || init(0) || create(&context, 0, 0))
		exit(1);
	step("ready");
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, work, (void *)functions[i]);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	step("done");
	return 0;
}
