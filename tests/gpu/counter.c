/* Counts every call into libcuda, whoever makes it, independently of gpuscope: an LD_PRELOAD library.
 *
 * A caller gets at a driver function by linking to it, by dlsym, or (as libcudart, cuBLAS and Triton do) by
 * cuGetProcAddress. All three are given a wrapper that counts and jumps on; it needs no signature because it
 * touches no argument. The counts lie in the shared file CUDA_CALLS_FILE, one u64 per line of names.h, so they
 * survive any end of the process and add up over forks.
 *
 * Build: cc -O2 -shared -fPIC -I DIR_OF_NAMES counter.c -o counter.so     (-O2: `dlsym` must stay a tail call,
 * since RTLD_NEXT depends on its caller). names.h holds FUNCTION(index, name) lines.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define HIDDEN __attribute__((visibility("hidden")))

enum {
	FUNCTIONS = 0
#define FUNCTION(index, name) +1
#include "names.h"
#undef FUNCTION
};

static const char *const names[] = {
#define FUNCTION(index, name) #name,
#include "names.h"
#undef FUNCTION
};

#define FUNCTION(index, name) extern void name(void);
#include "names.h"
#undef FUNCTION

static void (*const wrappers[])(void) = {
#define FUNCTION(index, name) name,
#include "names.h"
#undef FUNCTION
};

/* whole pages, so that the file can be mapped over them */
HIDDEN uint64_t counter_calls[(FUNCTIONS * 8 + PAGE - 1) / PAGE * PAGE / 8] __attribute__((aligned(PAGE)));
/* where the wrapper goes on to */
HIDDEN void *counter_targets[FUNCTIONS];
/* what libcuda exports under that name */
static void *exported[FUNCTIONS];

/* clang-format off */
#define TEXT(x) #x
#define FUNCTION(index, name)                                                   \
	__asm__(".text\n.globl " #name "\n.type " #name ",@function\n" #name ":\n"  \
		"endbr64\n"                                                             \
		"lock incq counter_calls+8*" TEXT(index) "(%rip)\n"                     \
		"cmpq $0, counter_targets+8*" TEXT(index) "(%rip)\n"                    \
		"je 1f\n"                                                               \
		"jmp *counter_targets+8*" TEXT(index) "(%rip)\n"                        \
		"1: pushq $" TEXT(index) "\n"                                           \
		"jmp counter_first_call\n"                                              \
		".size " #name ",.-" #name "\n");
#include "names.h"
#undef FUNCTION

/* The first call of a linked function: all argument registers are kept over the look-up. */
__asm__(".text\n.hidden counter_first_call\ncounter_first_call:\n"
	"pushq %rdi\npushq %rsi\npushq %rdx\npushq %rcx\npushq %r8\npushq %r9\n"
	"movq 48(%rsp), %rdi\n"
	"subq $128, %rsp\n"
	"movups %xmm0, (%rsp)\nmovups %xmm1, 16(%rsp)\nmovups %xmm2, 32(%rsp)\nmovups %xmm3, 48(%rsp)\n"
	"movups %xmm4, 64(%rsp)\nmovups %xmm5, 80(%rsp)\nmovups %xmm6, 96(%rsp)\nmovups %xmm7, 112(%rsp)\n"
	"call counter_resolve\n"
	"movups (%rsp), %xmm0\nmovups 16(%rsp), %xmm1\nmovups 32(%rsp), %xmm2\nmovups 48(%rsp), %xmm3\n"
	"movups 64(%rsp), %xmm4\nmovups 80(%rsp), %xmm5\nmovups 96(%rsp), %xmm6\nmovups 112(%rsp), %xmm7\n"
	"addq $128, %rsp\n"
	"popq %r9\npopq %r8\npopq %rcx\npopq %rdx\npopq %rsi\npopq %rdi\n"
	"addq $8, %rsp\n"
	"jmp *%rax\n");
/* clang-format on */

typedef void *dlsym_fn(void *, const char *);
typedef int get_proc_fn(const char *, void **, int, uint64_t);
typedef int get_proc_v2_fn(const char *, void **, int, uint64_t, void *);

static dlsym_fn *real_dlsym;

static dlsym_fn *find_dlsym(void)
{
	if (!real_dlsym)
		real_dlsym = (dlsym_fn *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	return real_dlsym;
}

/* The wrapper of an address that libcuda exports, else the address itself. */
static void *wrapped(void *address)
{
	for (int i = 0; address && i < FUNCTIONS; i++)
		if (exported[i] == address)
			return (void *)wrappers[i];
	return address;
}

static void *exported_as(const char *name)
{
	for (int i = 0; i < FUNCTIONS; i++)
		if (!strcmp(names[i], name))
			return exported[i];
	return NULL;
}

static int get_proc(const char *name, void **function, int version, uint64_t flags)
{
	int status = ((get_proc_fn *)exported_as("cuGetProcAddress"))(name, function, version, flags);

	if (!status && function)
		*function = wrapped(*function);
	return status;
}

static int get_proc_v2(const char *name, void **function, int version, uint64_t flags, void *found)
{
	int status =
		((get_proc_v2_fn *)exported_as("cuGetProcAddress_v2"))(name, function, version, flags, found);

	if (!status && function)
		*function = wrapped(*function);
	return status;
}

static void learn(void *libcuda)
{
	for (int i = 0; i < FUNCTIONS; i++) {
		exported[i] = find_dlsym()(libcuda, names[i]);
		if (!strcmp(names[i], "cuGetProcAddress"))
			counter_targets[i] = exported[i] ? (void *)get_proc : NULL;
		else if (!strcmp(names[i], "cuGetProcAddress_v2"))
			counter_targets[i] = exported[i] ? (void *)get_proc_v2 : NULL;
		else
			counter_targets[i] = exported[i];
	}
}

/* Learns what libcuda exports, once it is loaded. */
static void learn_once(int flags)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int known;
	void *libcuda;

	if (__atomic_load_n(&known, __ATOMIC_ACQUIRE))
		return;
	libcuda = dlopen("libcuda.so.1", RTLD_LAZY | flags);
	if (!libcuda)
		return;
	pthread_mutex_lock(&lock);
	if (!known)
		learn(libcuda);
	__atomic_store_n(&known, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

HIDDEN void *counter_resolve(uint64_t index)
{
	learn_once(0);
	if (!counter_targets[index]) {
		fprintf(stderr, "counter.so: libcuda has no %s\n", names[index]);
		abort();
	}
	return counter_targets[index];
}

void *dlsym(void *handle, const char *name)
{
	void *address;

	if (name[0] != 'c' || name[1] != 'u')
		return find_dlsym()(handle, name);
	address = find_dlsym()(handle, name);
	learn_once(RTLD_NOLOAD);
	return wrapped(address);
}

__attribute__((constructor)) static void map_counts(void)
{
	const char *path = getenv("CUDA_CALLS_FILE");
	int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644) : -1;

	if (file < 0)
		return;
	if (ftruncate(file, sizeof(counter_calls)) ||
	    mmap(counter_calls, sizeof(counter_calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
		 0) == MAP_FAILED)
		perror("counter.so: CUDA_CALLS_FILE");
	close(file);
}
