/* Loads and calls CUDA as it is told: reads one command a line, answers each with "ok".
 * usage: stepper LIBRARY…    commands: load INDEX | unload | call TIMES | name TEXT */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static void *library;

static void fail(const char *what) {
    printf("%s\n", what);
    exit(1);
}

static void *function(const char *name) {
    void *found = library ? dlsym(library, name) : NULL;
    if (!found)
        fail(name);
    return found;
}

static void call(long times) {
    int (*allocate)(void **, size_t) = (int (*)(void **, size_t))function("cudaMalloc");
    int (*release)(void *) = (int (*)(void *))function("cudaFree");
    void *place;
    for (long i = 0; i < times; i++)
        if (allocate(&place, 4096) || release(place))
            fail("a call failed");
}

int main(int argc, char **argv) {
    char line[256];
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ok");
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "load ", 5) && atoi(line + 5) < argc - 1) {
            library = dlopen(argv[1 + atoi(line + 5)], RTLD_NOW);
            if (!library)
                fail(dlerror());
        } else if (!strcmp(line, "unload")) {
            dlclose(library);
            library = NULL;
        } else if (!strncmp(line, "call ", 5)) {
            call(atol(line + 5));
        } else if (!strncmp(line, "name ", 5)) {
            prctl(PR_SET_NAME, line + 5);
        } else {
            fail("unknown command");
        }
        puts("ok");
    }
    return 0;
}
