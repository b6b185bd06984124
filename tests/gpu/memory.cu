// Allocates and frees through the driver API, as often as told: memory ROUNDS [HOLD]; prints ns per pair.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <ctime>
#include <unistd.h>

static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 20000;
    long hold = argc > 2 ? atol(argv[2]) : 0;
    void *p;
    cudaFree(0);
    for (int i = 0; i < 200; i++) {
        cudaMalloc(&p, 4096);
        cudaFree(p);
    }
    double start = now();
    for (long i = 0; i < rounds; i++) {
        if (cudaMalloc(&p, 4096) != cudaSuccess)
            return 1;
        cudaFree(p);
    }
    double pair = (now() - start) / rounds;
    for (long i = 0; i < hold; i++)
        if (cudaMalloc(&p, 1 << 20) != cudaSuccess)
            return 1;
    if (hold)
        sleep(2);
    printf("PAIR %.1f ns, held %ld bytes\n", pair, hold << 20);
    return 0;
}
