/* Copies as it is told: reads one command a line, answers each with "ok".
 * commands: take (new memory: of a device, pinned, pageable) | copy TIMES (each way, of what was taken last) */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 1000

typedef unsigned long long u64;

static void *driver;
static u64 device, pinned, pageable;

/* The function of that name; pointers and numbers of 64 bits are passed alike. */
static void call(const char *name, u64 first, u64 second, u64 third, u64 fourth) {
    int (*found)(u64, u64, u64, u64) = dlsym(driver, name);
    if (!found || found(first, second, third, fourth))
        exit(1);
}

static void begin(void) {
    void *context;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        exit(1);
    call("cuInit", 0, 0, 0, 0);
    call("cuDevicePrimaryCtxRetain", (u64)&context, 0, 0, 0);
    call("cuCtxSetCurrent", (u64)context, 0, 0, 0);
}

static void take(void) {
    call("cuMemAlloc_v2", (u64)&device, BYTES, 0, 0);
    call("cuMemHostAlloc", (u64)&pinned, BYTES, 0, 0);
    pageable = (u64)malloc(BYTES);
}

static void copy(void) {
    call("cuMemcpyHtoD_v2", device, pinned, BYTES, 0);
    call("cuMemcpyHtoD_v2", device, pageable, BYTES, 0);
    call("cuMemcpyDtoH_v2", pinned, device, BYTES, 0);
    call("cuMemcpyDtoD_v2", device, device, BYTES, 0);
    call("cuMemcpy", device, pinned, BYTES, 0);
    call("cuMemcpyHtoDAsync_v2", device, pinned, BYTES, 0);
    call("cuCtxSynchronize", 0, 0, 0, 0);
}

int main(void) {
    char line[256];
    setvbuf(stdout, NULL, _IOLBF, 0);
    begin();
    while (fgets(line, sizeof(line), stdin)) {
        if (!strncmp(line, "take", 4))
            take();
        else if (!strncmp(line, "copy ", 5))
            for (u64 left = strtoull(line + 5, NULL, 0); left; left--)
                copy();
        else
            exit(1);
        puts("ok");
    }
    return 0;
}
