/* Functions that lose memory, each an amount of its own, for those who look for the place. */

#include <stddef.h>

extern int cudaMalloc(void **, size_t);
extern int cudaFree(void *);

#define NOINLINE __attribute__((noinline))

enum { BYTES_A = 4096, BYTES_B = 10000, BYTES_C = 1 << 20 };

/* Keeps the compiler from turning the calls below into jumps, which have no frame. */
static int after(int code) {
    __asm__ volatile("" ::: "memory");
    return code;
}

NOINLINE int leak_a(void) {
    void *lost;
    return after(cudaMalloc(&lost, BYTES_A));
}

NOINLINE int leak_b(void) {
    void *lost;
    return after(cudaMalloc(&lost, BYTES_B));
}

NOINLINE int leak_c(void) {
    void *lost;
    return after(cudaMalloc(&lost, BYTES_C));
}

/* What it takes it gives back. */
NOINLINE int leak_none(void) {
    void *kept;
    int code = cudaMalloc(&kept, BYTES_A);
    return after(code ? code : cudaFree(kept));
}

/* One step of the first `sites` places; how many bytes each place loses goes to `bytes`. */
NOINLINE int gpusim_leak_step(unsigned sites, size_t *bytes) {
    static int (*const places[])(void) = {leak_a, leak_b, leak_c};
    static const size_t sizes[] = {BYTES_A, BYTES_B, BYTES_C};
    for (unsigned i = 0; i < sites && i < 3; i++) {
        int code = places[i]();
        if (code)
            return code;
        bytes[i] = sizes[i];
    }
    return after(leak_none());
}
