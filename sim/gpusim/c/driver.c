/* A program of the driver API alone, in C: physical memory that only its mapping holds, and
 * device memory that goes with the last release of the primary context.
 *
 *     gpusim-driver [BLOCKS=4] [leak|release]
 */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long u64;
typedef struct {
    int type, handles, location, device;
    void *windows;
    u64 flags;
} properties;
typedef struct {
    int location, device, flags;
} access_rights;

enum { BLOCK = 2 << 20 };

static int (*cuInit)(unsigned);
static int (*cuDevicePrimaryCtxRetain)(void **, int);
static int (*cuDevicePrimaryCtxRelease_v2)(int);
static int (*cuCtxSetCurrent)(void *);
static int (*cuMemAlloc_v2)(u64 *, size_t);
static int (*cuMemAddressReserve)(u64 *, size_t, size_t, u64, u64);
static int (*cuMemAddressFree)(u64, size_t);
static int (*cuMemCreate)(u64 *, size_t, const properties *, u64);
static int (*cuMemRelease)(u64);
static int (*cuMemMap)(u64, size_t, size_t, u64, u64);
static int (*cuMemUnmap)(u64, size_t);
static int (*cuMemSetAccess)(u64, size_t, const access_rights *, size_t);

static int load(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        return 0;
#define FIND(name) (*(void **)&name = dlsym(driver, #name))
    return FIND(cuInit) && FIND(cuDevicePrimaryCtxRetain) && FIND(cuDevicePrimaryCtxRelease_v2) &&
           FIND(cuCtxSetCurrent) && FIND(cuMemAlloc_v2) &&
           FIND(cuMemAddressReserve) && FIND(cuMemAddressFree) && FIND(cuMemCreate) &&
           FIND(cuMemRelease) && FIND(cuMemMap) && FIND(cuMemUnmap) && FIND(cuMemSetAccess);
}

static void must(const char *what, int code) {
    if (code == 0)
        return;
    fprintf(stderr, "gpusim-driver: %s failed with %d\n", what, code);
    exit(1);
}
#define CALL(function, ...) must(#function, function(__VA_ARGS__))

static void fill_block(u64 address) {
    properties pinned = {.type = 1, .location = 1};
    u64 handle;
    CALL(cuMemCreate, &handle, BLOCK, &pinned, 0);
    CALL(cuMemMap, address, BLOCK, 0, handle, 0);
    CALL(cuMemRelease, handle);
}

static void print_family(const char *family, int device, u64 made, u64 freed, u64 bytes, char end) {
    printf("{\"family\":\"%s\",\"device\":%d,\"outstanding\":%llu,\"held_bytes\":%llu,"
           "\"allocations\":%llu,\"allocated_bytes\":%llu,\"frees\":%llu,\"freed_bytes\":%llu,"
           "\"failed_allocations\":0}%c",
           family, device, made - freed, (made - freed) * bytes, made, made * bytes, freed, freed * bytes, end);
}

int main(int argc, char **argv) {
    u64 blocks = argc > 1 ? strtoull(argv[1], NULL, 10) : 4, space;
    int leak = argc > 2 && strcmp(argv[2], "leak") == 0;
    int release = argc > 2 && strcmp(argv[2], "release") == 0;
    void *context, *again;
    if (!load())
        return fprintf(stderr, "gpusim-driver: no driver\n"), 1;
    CALL(cuInit, 0);
    CALL(cuDevicePrimaryCtxRetain, &context, 0);
    CALL(cuCtxSetCurrent, context);
    CALL(cuMemAddressReserve, &space, blocks * BLOCK, 0, 0, 0);
    for (u64 i = 0; i < blocks; i++) {
        u64 lost;
        fill_block(space + i * BLOCK);
        CALL(cuMemAlloc_v2, &lost, BLOCK);
    }
    access_rights all = {.location = 1, .flags = 3};
    CALL(cuMemSetAccess, space, blocks * BLOCK, &all, 1);
    if (!leak) {
        CALL(cuMemUnmap, space, blocks * BLOCK);
        CALL(cuMemAddressFree, space, blocks * BLOCK);
    }
    if (release) {
        CALL(cuDevicePrimaryCtxRetain, &again, 0);
        CALL(cuDevicePrimaryCtxRelease_v2, 0);
        CALL(cuDevicePrimaryCtxRelease_v2, 0);
    }
    printf("driver: %llu blocks of 2 MiB, %s\n", blocks, leak ? "never unmapped" : "unmapped again");
    printf("GPUSIM-BOOK {\"pid\":%d,\"failed_frees\":0,\"double_frees\":0,\"unknown_frees\":0,\"families\":[", getpid());
    print_family("physical", 0, blocks, leak ? 0 : blocks, BLOCK, ',');
    print_family("device", 0, blocks, release ? blocks : 0, BLOCK, ',');
    print_family("mapped", 0, blocks, leak ? 0 : blocks, BLOCK, ',');
    print_family("reserved", -1, 1, !leak, blocks * BLOCK, ']');
    printf("}\n");
    return 0;
}
