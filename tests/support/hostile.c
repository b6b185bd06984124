/* A program that claims to be CPython 3.12 and whose interpreter is nonsense. Arguments: the simulated libcuda, and
 * what is wrong. Steps as caller.c does.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned char byte;
const unsigned long Py_Version = 0x030c01f0;
byte _PyRuntime[4096];
static byte interpreter[256], thread[256], cframe[16], frames[3][80], code[512], type[64], name[256];

static void word(byte *at, int offset, const void *value)
{
	memcpy(at + offset, &value, 8);
}

static void make(void)
{
	word(_PyRuntime, 40, interpreter);
	word(interpreter, 72, thread);
	word(thread, 136, (void *)pthread_self());
	word(thread, 56, cframe);
	word(cframe, 0, frames[0]);
	for (int i = 0; i < 3; i++) {
		word(frames[i], 0, code);
		word(frames[i], 8, i < 2 ? frames[i + 1] : NULL);
		word(frames[i], 56, code + 192);
	}
	word(code, 8, type);
	word(type, 24, "code");
	word(code, 112, name);
	word(code, 120, name);
	word(code, 128, name);
	word(code, 136, code);
	word(name, 16, (void *)5);
	name[32] = 1 << 2 | 1 << 5 | 1 << 6;
	memcpy(name + 40, "hello", 5);
}

static void break_it(const char *what)
{
	if (!strcmp(what, "frames in a circle"))
		word(frames[2], 8, frames[0]);
	else if (!strcmp(what, "threads in a circle"))
		word(thread, 136, NULL), word(thread, 8, thread);
	else if (!strcmp(what, "interpreters in a circle"))
		word(interpreter, 72, NULL), word(interpreter, 0, interpreter);
	else if (!strcmp(what, "no frames there"))
		word(frames[0], 8, (void *)0xdead0000);
	else if (!strcmp(what, "a name without end"))
		word(name, 16, (void *)-1L);
	else if (!strcmp(what, "a name that is none"))
		word(code, 128, (void *)0xfffffffffffffff8);
	else if (!strcmp(what, "no code"))
		word(type, 24, "dict");
	else if (!strcmp(what, "code nowhere"))
		word(frames[0], 0, (void *)0x7fffffffffffffff);
	else if (!strcmp(what, "lines without end"))
		word(code, 16, (void *)-1L);
	else if (strcmp(what, "nothing"))
		exit(2);
}

static void step(const char *word)
{
	puts(word);
	fflush(stdout);
	getchar();
}

int main(int argc, char **argv)
{
	void *cuda = dlopen(argv[1], RTLD_NOW), *context;
	int (*init)(int) = dlsym(cuda, "cuInit");
	int (*create)(void **, int, int) = dlsym(cuda, "cuCtxCreate_v2");
	int (*allocate)(unsigned long long *, size_t) = dlsym(cuda, "cuMemAlloc_v2");
	unsigned long long pointer;

	make();
	break_it(argv[2]);
	if (argc != 3 || init(0) || create(&context, 0, 0))
		exit(1);
	step("ready");
	allocate(&pointer, 100);
	step("done");
	return 0;
}
