/* The few functions of the driver that these programs call; `cuda.c` is the library. */
#pragma once
#include <stddef.h>
#include <time.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef void (*host_function)(void *data);
typedef void (*stream_callback)(void *stream, int status, void *data);
typedef size_t (*shared_memory_of)(int block);

int cuInit(unsigned flags);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
int cuMemFree_v2(unsigned long long address);
int cuCtxSynchronize(void);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamSynchronize(void *stream);
int cuLaunchKernel(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
		   unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **arguments,
		   void **extra);
int cuLaunchHostFunc(void *stream, host_function function, void *data);
int cuStreamAddCallback(void *stream, stream_callback function, void *data, unsigned flags);
int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *kernel, shared_memory_of shared,
				     size_t fixed, int limit);
/* For programs that are told how long they are to run. */
static inline long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
#ifdef __cplusplus
}
#endif
