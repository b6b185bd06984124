/* Launches kernels by name through the driver alone. usage: launcher WHAT, one of
 *   mixed THREADS TIMES   eight kernels through three functions, some launches refused
 *   reload TIMES          each time a module with one kernel, whose handle and name lie where the last one's did
 *   hostile               names that are none, and very long ones; a handle that is none
 *   many KERNELS          so many different ones, once each
 *   wait                  launches eight kernels eleven times each, waits for a line, launches more
 *   streams               a kernel on one stream, one on two, one on the default stream; says which
 *   twice                 launches, becomes `launcher again`, which launches another kernel by the same handle
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
	unsigned grid[3], block[3], shared;
	void *stream, *attributes;
	unsigned count;
} config;

static int (*cuInit)(unsigned);
static int (*cuDevicePrimaryCtxRetain)(void **, int);
static int (*cuCtxSetCurrent)(void *);
static int (*cuModuleLoadData)(void **, const void *);
static int (*cuModuleUnload)(void *);
static int (*cuModuleGetFunction)(void **, void *, const char *);
static int (*cuLibraryLoadData)(void **, const void *, void *, void *, unsigned, void *, void *, unsigned);
static int (*cuLibraryGetKernel)(void **, void *, const char *);
static int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
			     void *, void *);
static int (*cuLaunchCooperativeKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
					void *, void *);
static int (*cuLaunchKernelEx)(const config *, void *, void *, void *);

static int (*cuStreamCreate)(void **, unsigned);

static const char *const NAMES[] = {
	"_Z4gemmIfLi128EEvPKT_", "_Z4gemmIdLi64EEvPKT_", "_ZN5flash9fwd_innerEPKfS1_Pfi", "triton_poi_fused_add_0",
	"_Z6vecAddPKfS0_Pfi", "plain", "_ZN12_GLOBAL__N_14fillIdEEvPT_", "_Z9reduceSumILi256EEvPKfPfi",
};
static const unsigned long long IMAGE[2] = { 1, 0 };
static void *context, *module, *library, *kernels[8];

static void must(int code)
{
	if (code) {
		fprintf(stderr, "launcher: failed with %d\n", code);
		exit(1);
	}
}

static void load(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

	if (!driver)
		exit(2);
#define FIND(name) *(void **)&name = dlsym(driver, #name)
	FIND(cuInit), FIND(cuDevicePrimaryCtxRetain), FIND(cuCtxSetCurrent), FIND(cuModuleLoadData);
	FIND(cuModuleUnload), FIND(cuModuleGetFunction), FIND(cuLibraryLoadData), FIND(cuLibraryGetKernel);
	FIND(cuLaunchKernel), FIND(cuLaunchCooperativeKernel), FIND(cuLaunchKernelEx);
	FIND(cuStreamCreate);
	must(cuInit(0));
	must(cuDevicePrimaryCtxRetain(&context, 0));
	must(cuCtxSetCurrent(context));
}

static int launch(void *kernel, unsigned way, unsigned grid, unsigned block)
{
	config same = { { grid, 2, 1 }, { block, 1, 1 }, 1024, NULL, NULL, 0 };

	switch (way % 3) {
	case 0:
		return cuLaunchKernel(kernel, grid, 2, 1, block, 1, 1, 1024, NULL, NULL, NULL);
	case 1:
		return cuLaunchCooperativeKernel(kernel, grid, 2, 1, block, 1, 1, 1024, NULL, NULL);
	default:
		return cuLaunchKernelEx(&same, kernel, NULL, NULL);
	}
}

static void find_kernels(void)
{
	must(cuModuleLoadData(&module, IMAGE));
	must(cuLibraryLoadData(&library, IMAGE, NULL, NULL, 0, NULL, NULL, 0));
	for (int i = 0; i < 8; i++)
		must(i % 2 ? cuModuleGetFunction(&kernels[i], module, NAMES[i]) :
			     cuLibraryGetKernel(&kernels[i], library, NAMES[i]));
}

static long times;

static void *mixed(void *seed)
{
	unsigned state = (unsigned)(size_t)seed;

	must(cuCtxSetCurrent(context));
	for (long i = 0; i < times; i++) {
		state = state * 1103515245 + 12345;
		unsigned which = state >> 20 & 7;
		/* one in 64 has no block, and fails */
		launch(kernels[which], state >> 16, 1 + which + (state >> 24 & 1), state >> 10 & 63 ? 128 : 0);
	}
	return NULL;
}

static void run_mixed(int threads)
{
	pthread_t all[64];

	find_kernels();
	for (long i = 0; i < threads; i++)
		pthread_create(&all[i], NULL, mixed, (void *)(i + 1));
	for (int i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
}

static void reload(void)
{
	void *first = NULL, *kernel;
	char name[64];

	for (long i = 0; i < times; i++) {
		sprintf(name, "kernel_%ld", i);
		must(cuModuleLoadData(&module, IMAGE));
		must(cuModuleGetFunction(&kernel, module, name));
		first = first ? first : kernel;
		if (kernel != first)
			exit(3);
		for (long j = 0; j <= i; j++)
			must(launch(kernel, 0, i + 1, 32));
		must(cuModuleUnload(module));
	}
}

static void launch_named(const char *name, long count)
{
	void *kernel;

	must(cuModuleGetFunction(&kernel, module, name));
	for (long i = 0; i < count; i++)
		must(launch(kernel, i, 1, 32));
}

static int launch_on(void *kernel, unsigned way, void *stream)
{
	config same = { { 1, 1, 1 }, { 32, 1, 1 }, 0, stream, NULL, 0 };

	return way % 2 ? cuLaunchKernelEx(&same, kernel, NULL, NULL) :
			 cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

static void streams(void)
{
	void *first, *second;

	find_kernels();
	must(cuStreamCreate(&first, 0));
	must(cuStreamCreate(&second, 0));
	for (int i = 0; i < 6; i++) {
		must(launch_on(kernels[0], i, first));
		must(launch_on(kernels[1], i, i < 3 ? first : second));
		must(launch_on(kernels[2], i, NULL));
	}
	printf("%p\n", first);
}

static void hostile(void)
{
	char *huge = malloc((64 << 10) + 1);

	memset(huge, 'x', 64 << 10);
	huge[64 << 10] = 0;
	must(cuModuleLoadData(&module, IMAGE));
	launch_named("\033[2J\"\n\\\302\233", 5);
	launch_named(huge, 7);
	launch_named("_ZNNNNNNNNN", 2);
	launch_named("1st", 3);
	for (int i = 0; i < 4; i++)
		launch((void *)0xdead000, i, 1, 32);
	launch(NULL, 0, 1, 32);
	free(huge);
}

static void many(long kernels_wanted)
{
	char name[64];

	must(cuModuleLoadData(&module, IMAGE));
	for (long i = 0; i < kernels_wanted; i++) {
		sprintf(name, "kernel_%ld", i);
		launch_named(name, 1);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	char line[16];

	load();
	times = argc > 2 ? atol(argv[argc - 1]) : 1;
	if (!strcmp(what, "mixed")) {
		run_mixed(atoi(argv[2]));
	} else if (!strcmp(what, "reload")) {
		reload();
	} else if (!strcmp(what, "hostile")) {
		hostile();
	} else if (!strcmp(what, "streams")) {
		streams();
	} else if (!strcmp(what, "many")) {
		many(times);
	} else if (!strcmp(what, "wait")) {
		find_kernels();
		for (int i = 0; i < 8; i++)
			for (int j = 0; j < 11; j++)
				must(launch(kernels[i], j, 1, 32));
		puts("ready");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 4;
		times = 1000;
		for (long i = 0; i < 2; i++)
			mixed((void *)(i + 7));
	} else if (!strcmp(what, "twice") || !strcmp(what, "again")) {
		must(cuModuleLoadData(&module, IMAGE));
		launch_named(*what == 't' ? "before_exec" : "after_exec", 3);
		if (*what == 't') {
			((void (*)(void))dlsym(RTLD_DEFAULT, "gpusim_driver_flush"))();
			execl("/proc/self/exe", argv[0], "again", (char *)NULL);
		}
	}
	return 0;
}
